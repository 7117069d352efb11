#include "core/schedule/kernels/kernel_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/base/numbers/shape.h"
#include "core/base/text/strings.h"
#include "core/model/net/layer_calls.h"
#include "core/plugin/attributes.h"

namespace tandem {
namespace {

bool have_same_values(const Attributes* a, const Attributes* b) {
  if (a == nullptr || b == nullptr) return a == b;
  const auto is_same = [](const auto& left, const auto& right) {
    if (left.first != right.first || left.second.is_set != right.second.is_set) return false;
    if (left.second.value.index() != right.second.value.index()) return false;
    return std::visit(
        [&](const auto& value) {
          using Value = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<Value, Filler>)
            return true;
          else
            return value == std::get<Value>(right.second.value);
        },
        left.second.value);
  };
  return std::equal(a->values().begin(), a->values().end(), b->values().begin(), b->values().end(),
                    is_same);
}

bool same_tensors(const std::vector<tandem_tensor>& a, const std::vector<tandem_tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return equal(x.shape, y.shape) && x.dtype == y.dtype && x.layout == y.layout;
  });
}

}  // namespace

std::string choice_key(const std::string& hardware, const Net& net, const PlanBinding& use) {
  const Layer& layer = net.layer(use.layer);
  const int32_t precision = layer.allows_tf32 ? tf32_precision : layer.dtype;
  std::string key = fmt::format("{}: {}, {}, {} rows, {}", hardware, layer.name,
                                net.phase == TANDEM_TRAIN ? "training" : "testing",
                                use.rows.count(), dtype_name(precision));
  // Algorithms differ by the layout of their tensors.
  const int32_t layout = layer.inputs.empty() ? TANDEM_NCHW : net.tensor(layer.inputs[0]).layout;
  if (layout != TANDEM_NCHW) key += fmt::format(", {}", layout_name(layout));
  if (use.slice.end >= 0) key += fmt::format(", slice {} to {}", use.slice.begin, use.slice.end);
  if (use.input_slice.end >= 0)
    key += fmt::format(", input {} to {}", use.input_slice.begin, use.input_slice.end);
  if (use.adds_to_output) key += ", added";
  return key;
}

bool are_alike(const LayerBinding& a, const LayerBinding& b) {
  const tandem_binding &x = a.raw, &y = b.raw;
  const auto attributes = [](const tandem_binding& raw) {
    return reinterpret_cast<const Attributes*>(raw.attributes);
  };
  return x.phase == y.phase && ((x.flags ^ y.flags) & ~uint32_t{TANDEM_MAY_MEASURE}) == 0 &&
         x.slice_begin == y.slice_begin && x.slice_end == y.slice_end &&
         x.input_begin == y.input_begin && x.batch_size == y.batch_size &&
         x.fused_activation == y.fused_activation && x.activation_before == y.activation_before &&
         same_tensors(a.inputs, b.inputs) && same_tensors(a.outputs, b.outputs) &&
         std::equal(a.weights.begin(), a.weights.end(), b.weights.begin(), b.weights.end(),
                    equal) &&
         have_same_values(attributes(x), attributes(y));
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
