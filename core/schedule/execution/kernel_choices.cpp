#include "core/schedule/execution/kernel_choices.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/shape.h"
#include "core/base/strings.h"

namespace tandem {

std::string choice_key(const std::string& hardware, const Net& net, const PlanBinding& use) {
  const Layer& layer = net.layers[static_cast<size_t>(use.layer)];
  const int32_t precision = layer.allows_tf32 ? tf32_precision : layer.dtype;
  std::string key = fmt::format("{}: {}, {}, {} rows, {}", hardware, layer.name,
                                net.phase == TANDEM_TRAIN ? "training" : "testing",
                                use.rows.count(), dtype_name(precision));
  // Algorithms differ by the layout of their tensors.
  const int32_t layout =
      layer.inputs.empty() ? TANDEM_NCHW : net.tensors[static_cast<size_t>(layer.inputs[0])].layout;
  if (layout != TANDEM_NCHW) key += fmt::format(", {}", layout_name(layout));
  if (use.slice.end >= 0) key += fmt::format(", slice {} to {}", use.slice.begin, use.slice.end);
  if (use.input_slice.end >= 0)
    key += fmt::format(", input {} to {}", use.input_slice.begin, use.input_slice.end);
  if (use.adds_to_output) key += ", added";
  return key;
}

std::string tuning_text(const Tuning& tuning, const KernelChoices& before,
                        const std::string& kind) {
  const auto is_of_kind = [&](const auto& choice) { return choice.first.starts_with(kind + " "); };
  const auto all = std::count_if(tuning.choices.begin(), tuning.choices.end(), is_of_kind);
  const auto known = std::count_if(before.begin(), before.end(), is_of_kind);
  if (all == 0) {
    return fmt::format(
        "--tune changes nothing here: no kernel of this net on {} devices chooses by measuring",
        kind);
  }
  const auto by_model =
      std::count_if(tuning.choices.begin(), tuning.choices.end(), [&](const auto& choice) {
        return is_of_kind(choice) && choice.second.ends_with(by_model_suffix);
      });
  std::string text =
      fmt::format("algorithms chosen by measuring: {}; {} of an earlier run", all - known, known);
  if (by_model > 0) {
    text += fmt::format(
        "; of these {} chosen at least in part by a model, as measuring them found no memory or "
        "nothing that may be used",
        by_model);
  }
  return text;
}

}  // namespace tandem
