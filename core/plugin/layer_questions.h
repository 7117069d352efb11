// Questions to a plugin's layer type and kernel whose answers are arrays or may be left out, over
// the C ABI. A failing status leaves its reason with the host (take_reason).
#pragma once

#include <vector>

#include "plugins/abi.h"

namespace tandem {

// The role of input `input` (TANDEM_INPUT_...).
[[nodiscard]] int32_t input_role(const tandem_layer_type& type, size_t input);
// Whether it is a label, or a label or targets.
[[nodiscard]] bool is_label(const tandem_layer_type& type, size_t input);
// Whether a gradient flows into that input.
[[nodiscard]] bool takes_gradient(const tandem_layer_type& type, size_t input);
// Whether one flows into any of its inputs.
[[nodiscard]] bool has_data_gradient(const tandem_layer_type& type);

// The declared weights; more than 1024 are an error.
[[nodiscard]] tandem_status ask_weights(const tandem_layer_type& type,
                                        const tandem_layer_query& query,
                                        std::vector<tandem_weight>& weights);
// A type without a cost has one operation, one read and one write for each element of the inputs.
[[nodiscard]] tandem_status ask_cost(const tandem_layer_type& type, const tandem_layer_query& query,
                                     tandem_layer_cost& cost);
// After TANDEM_OK at least one: plain NCHW, if the kernel names none.
[[nodiscard]] tandem_status ask_layouts(const tandem_kernel& kernel, const tandem_binding& binding,
                                        std::vector<tandem_layout_option>& options);

}  // namespace tandem
