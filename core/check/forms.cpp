#include "core/check/passes.h"
#include "core/check/promises.h"

namespace tandem::checker {

Outcome needs_no_flag(const Subject& subject, const Case& one) {
  if (one.setup.flags == 0) return not_applicable();
  const Results both = results_of(subject, one.setup);
  LayerSetup setup = one.setup;
  setup.flags = TANDEM_WANTS_BACKWARD_WEIGHTS;
  const Results weights = results_of(subject, setup);
  std::string differs =
      differ("the gradient of weight", weights.weight_gradients, both.weight_gradients, rounding);
  if (!differs.empty()) return broken(differs + " if no input's gradient is wanted");
  differs = differ("output", weights.outputs, both.outputs, rounding);
  if (!differs.empty()) return broken(differs + " if no input's gradient is wanted");
  setup.flags = TANDEM_WANTS_BACKWARD_DATA;
  differs = differ("the gradient of input", results_of(subject, setup).input_gradients,
                   both.input_gradients, rounding);
  if (!differs.empty()) return broken(differs + " if no weight's gradient is wanted");
  setup.flags = 0;
  differs = differ("output", results_of(subject, setup).outputs, both.outputs, rounding);
  if (!differs.empty()) return broken(differs + " if no gradient is wanted");
  return kept();
}

Outcome runs_in_place(const Subject& subject, const Case& one) {
  if (!subject.has(TANDEM_IN_PLACE)) return not_applicable();
  LayerRun apart(one.setup, subject.registry, subject.device);
  if (apart.output_shapes().empty() ||
      !equal(apart.output_shapes()[0], one.setup.inputs[0].shape)) {
    return not_applicable();
  }
  LayerSetup setup = one.setup, alone = one.setup;
  // The host does not run a layer in place whose backward pass reads the inputs.
  if (subject.has(TANDEM_BACKWARD_READS_INPUTS)) setup.flags = alone.flags = 0;
  setup.flags |= TANDEM_RUNS_IN_PLACE;
  const std::string differs = differ(results_of(subject, setup), results_of(subject, alone));
  return differs.empty() ? kept() : broken(differs + " if it runs in place");
}

Outcome equal_in_every_layout(const Subject& subject, const Case& one) {
  LayerRun plain(one.setup, subject.registry, subject.device);
  const std::vector<tandem_layout_option> options = plain.layouts();
  const Results expected = results_of(subject, one.setup);
  bool looked = false;
  for (const tandem_layout_option& option : options) {
    LayerSetup setup = one.setup;
    setup.input_layout = option.input;
    setup.output_layout = option.output;
    if (option.input == TANDEM_NCHW && option.output == TANDEM_NCHW) continue;
    looked = true;
    const std::string differs = differ(results_of(subject, setup), expected, 1e-3);
    if (!differs.empty()) {
      return broken(fmt::format("{} in layout {} -> {}", differs, layout_name(option.input),
                                layout_name(option.output)));
    }
  }
  return looked ? kept() : not_applicable();
}

Outcome equal_in_every_dtype(const Subject& subject, const Case& one) {
  if (subject.has(TANDEM_LOSS | TANDEM_METRIC)) return not_applicable();
  bool looked = false;
  for (const auto& [dtype, tolerance] :
       {std::pair{TANDEM_BFLOAT16, 0.03}, {TANDEM_FLOAT16, 0.005}}) {
    if ((subject.kernel.dtypes >> dtype & 1U) == 0) continue;
    LayerSetup rounded = one.setup, narrow = one.setup;
    for (size_t i = 0; i < rounded.inputs.size(); ++i) {
      if (is_label(subject.type, i)) continue;
      rounded.inputs[i] = narrow.inputs[i] = rounded_to(dtype, one.setup.inputs[i]);
    }
    narrow.input_dtype = narrow.output_dtype = dtype;
    try {
      LayerRun run(narrow, subject.registry, subject.device);
    } catch (const Error&) {
      continue;  // not on this machine
    }
    looked = true;
    const std::string differs = differ("output", results_of(subject, narrow).outputs,
                                       results_of(subject, rounded).outputs, tolerance);
    if (!differs.empty()) return broken(fmt::format("{} in {}", differs, dtype_name(dtype)));
  }
  return looked ? kept() : not_applicable();
}

Outcome slices_are_parts(const Subject& subject, const Case& one) {
  if (!subject.has(TANDEM_SLICED_OUTPUTS)) return not_applicable();
  LayerRun whole(one.setup, subject.registry, subject.device);
  const Shape shape = whole.output_shapes()[0];
  if (shape.c < 2 || whole.output_shapes().size() != 1) return not_applicable();
  const std::vector<PlainTensor> expected = whole.forward();
  for (const auto& [begin, end] : {std::pair{int64_t{0}, shape.c / 2}, {shape.c / 2, shape.c}}) {
    LayerSetup setup = one.setup;
    setup.slice_begin = begin;
    setup.slice_end = end;
    LayerRun part(setup, subject.registry, subject.device);
    const std::vector<PlainTensor> outputs = part.forward();
    const PlainTensor cut = channels_of(expected[0], begin, end);
    if (difference(outputs[0].values, cut.values) > rounding) {
      return broken(fmt::format("output channels {} to {} differ if a binding computes only them",
                                begin, end - 1));
    }
  }
  return kept();
}

}  // namespace tandem::checker
