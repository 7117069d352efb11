#include <cmath>

#include "core/check/promises/passes.h"
#include "core/plugin/host.h"
#include "core/plugin/layer_questions.h"

namespace tandem::checker {

Outcome declares(const Subject& subject, const Case& one) {
  const LayerRun run(one.setup, subject.registry, subject.device);
  const bool is_scalar = subject.has(TANDEM_LOSS | TANDEM_METRIC);
  for (size_t i = 0; i < run.output_shapes().size(); ++i) {
    const Shape& shape = run.output_shapes()[i];
    if (is_scalar && i == 0 && element_count(shape) != 1) {
      return broken("a loss or metric has an output of more than one element");
    }
    if (subject.has(TANDEM_PER_SAMPLE) && !is_scalar && shape.n != one.rows()) {
      return broken(
          fmt::format("output {} has {} rows, but the input has {}", i, shape.n, one.rows()));
    }
  }
  if (subject.has(TANDEM_SAVES_NOTHING) && run.report().saved_bytes > 0) {
    return broken(fmt::format("the type says TANDEM_SAVES_NOTHING, but the kernel saves {} bytes",
                              run.report().saved_bytes));
  }
  if (is_trained(run) && subject.kernel.backward_weights == nullptr) {
    return broken("the type has trained weights, but the kernel has no backward_weights");
  }
  if (subject.kernel.backward_data == nullptr && has_data_gradient(subject.type) &&
      !run.output_shapes().empty()) {
    return broken(
        "the kernel has no backward_data; a type without one says so by TANDEM_METRIC or by inputs "
        "that are TANDEM_INPUT_NON_DIFFERENTIABLE");
  }
  tandem_layer_cost cost{};
  check(ask_cost(subject.type, run.query(), cost), "cost");
  for (const double number :
       {cost.forward_flops, cost.backward_data_flops, cost.backward_weights_flops,
        cost.forward_bytes, cost.backward_data_bytes, cost.backward_weights_bytes}) {
    if (!(number >= 0) || !std::isfinite(number)) {
      return broken(fmt::format("its cost has the number {}", shown(number)));
    }
  }
  for (const tandem_weight& weight : run.declared_weights()) {
    const int64_t of_row = weight.shape.c * weight.shape.h * weight.shape.w;
    if (weight.filler == nullptr || weight.fan_in > 1 || of_row < 2) continue;
    return note(fmt::format(
        "weight '{}' has {} values for each of its {} rows, but fan_in {}: the fillers xavier and "
        "msra draw large first values; name fan_in unless each output reads one value",
        weight.name, of_row, weight.shape.n, weight.fan_in));
  }
  return kept();
}

}  // namespace tandem::checker
