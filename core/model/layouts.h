// What the layout and dtype passes share: which layout and dtype a tensor has and its readers want,
// when a layer's option is chosen.
#pragma once

#include <compare>
#include <vector>

#include "core/model/net.h"

namespace tandem {

class Registry;

// A tensor of one pixel has the same bytes in every layout and is always called NCHW.
[[nodiscard]] int32_t effective_layout(const Shape& shape, int32_t layout);

// One option a layer.
using LayoutChoice = std::vector<tandem_layout_option>;

// How a tensor's elements are stored.
struct Form {
  int32_t layout = TANDEM_NCHW, dtype = TANDEM_FLOAT32;
  auto operator<=>(const Form&) const = default;
};

// The dtype a layer wants its input in, which is `made` in another.
[[nodiscard]] int32_t wanted_dtype(const Net& net, const Layer& layer, size_t input, int32_t made);
// The layout a layer wants its input in, which is `made` in another; labels are plain.
[[nodiscard]] int32_t wanted_layout(const Net& net, const Layer& layer, size_t input,
                                    const tandem_layout_option& option, int32_t made);
// The layout a tensor is made in; the data and the labels are plain.
[[nodiscard]] int32_t made_layout(const Net& net, int tensor, const LayoutChoice& choice);

[[nodiscard]] const tandem_kernel& kernel_of(const Layer& layer, const Registry& registry,
                                             const std::string& device_kind);
// The options of each layer's kernel that its tensors can have, best first.
[[nodiscard]] std::vector<std::vector<tandem_layout_option>> layout_options(
    const Net& net, const Registry& registry, const std::string& device_kind);

// The choice with the least extra bytes and reorders found.
[[nodiscard]] LayoutChoice least_cost_layouts(
    const Net& net, const std::vector<std::vector<tandem_layout_option>>& options);

}  // namespace tandem
