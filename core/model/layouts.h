// What the layout passes share: which layout a tensor has when a layer's option is chosen.
#pragma once

#include <vector>

#include "core/model/net.h"

namespace tandem {

class Registry;

// A tensor of one pixel has the same bytes in every layout and is always called NCHW.
[[nodiscard]] int32_t effective_layout(const Shape& shape, int32_t layout);

// One option a layer.
using LayoutChoice = std::vector<tandem_layout_option>;

// The layout a layer wants its input in, which is `made` in another; labels are plain.
[[nodiscard]] int32_t wanted_layout(const Net& net, const Layer& layer, size_t input,
                                    const tandem_layout_option& option, int32_t made);
// The layout a tensor is made in; the data and the labels are plain.
[[nodiscard]] int32_t made_layout(const Net& net, int tensor, const LayoutChoice& choice);

// The options of each layer's kernel that its tensors can have, best first.
[[nodiscard]] std::vector<std::vector<tandem_layout_option>> layout_options(
    const Net& net, const Registry& registry, const std::string& device_kind);

// The choice with the least extra bytes and reorders found.
[[nodiscard]] LayoutChoice least_cost_layouts(
    const Net& net, const std::vector<std::vector<tandem_layout_option>>& options);

}  // namespace tandem
