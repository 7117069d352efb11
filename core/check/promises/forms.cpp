#include "core/check/promises/passes.h"

namespace tandem::checker {

Outcome needs_no_flag(const Subject& subject, const Case& one) {
  if (one.setup.flags == 0) return not_applicable();
  const Results both = results_of(subject, one.setup);
  const auto with_flags = [&](uint32_t flags) {
    LayerSetup setup = one.setup;
    setup.flags = flags;
    return results_of(subject, setup);
  };
  const Results weights = with_flags(TANDEM_WANTS_BACKWARD_WEIGHTS);
  std::string differs =
      differ("the gradient of weight", weights.weight_gradients, both.weight_gradients, rounding);
  if (differs.empty()) differs = differ("output", weights.outputs, both.outputs, rounding);
  if (!differs.empty()) return broken(differs + " if no input's gradient is wanted");
  differs = differ("the gradient of input", with_flags(TANDEM_WANTS_BACKWARD_DATA).input_gradients,
                   both.input_gradients, rounding);
  if (!differs.empty()) return broken(differs + " if no weight's gradient is wanted");
  return kept_unless(differ("output", with_flags(0).outputs, both.outputs, rounding),
                     " if no gradient is wanted");
}

// Each alone. What may not be given beside others is refused.
Outcome equal_with_defaults_written(const Subject& subject, const Case& one) {
  constexpr int64_t max_elements = 5000;
  if (!one.setup.inputs.empty() && element_count(one.setup.inputs[0].shape) > max_elements) {
    return not_applicable();
  }
  const Attributes attributes = attributes_of(subject.type, one.setup);
  const Results expected = results_of(subject, one.setup);
  bool looked = false;
  for (uint32_t i = 0; i < subject.type.parameter_count; ++i) {
    const tandem_parameter& parameter = *subject.type.parameters[i];
    const Attribute* usual = attributes.find(parameter.name);
    if (parameter.default_value == nullptr || usual == nullptr || usual->is_set) continue;
    Attribute written = *usual;
    written.is_set = true;
    Attributes with = attributes;
    with.set(parameter.name, written);
    LayerSetup setup = one.setup;
    setup.attributes = std::make_shared<const Attributes>(with);
    Results results;
    try {
      results = results_of(subject, setup);
    } catch (const Error&) {
      continue;
    }
    looked = true;
    const std::string differs = differ(results, expected);
    if (!differs.empty()) {
      return broken(fmt::format("{} if {} is given, with its declared default {}", differs,
                                parameter.name, parameter.default_value));
    }
  }
  return looked ? kept() : not_applicable();
}

Outcome runs_in_place(const Subject& subject, const Case& one) {
  if (!subject.has(TANDEM_IN_PLACE)) return not_applicable();
  const LayerRun apart(one.setup, subject.registry, subject.device);
  if (apart.output_shapes().empty() ||
      !equal(apart.output_shapes()[0], one.setup.inputs[0].shape)) {
    return not_applicable();
  }
  LayerSetup setup = one.setup, alone = one.setup;
  // The host does not run a layer in place whose backward pass reads the inputs.
  if (subject.has(TANDEM_BACKWARD_READS_INPUTS)) setup.flags = alone.flags = 0;
  setup.flags |= TANDEM_RUNS_IN_PLACE;
  return kept_unless(differ(results_of(subject, setup), results_of(subject, alone)),
                     " if it runs in place");
}

Outcome equal_in_every_layout(const Subject& subject, const Case& one) {
  const LayerRun plain(one.setup, subject.registry, subject.device);
  const std::vector<tandem_layout_option> options = plain.layouts();
  const Results expected = results_of(subject, one.setup);
  bool looked = false;
  for (const tandem_layout_option& option : options) {
    if (option.input == TANDEM_NCHW && option.output == TANDEM_NCHW) continue;
    LayerSetup setup = one.setup;
    setup.input_layout = option.input;
    setup.output_layout = option.output;
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
  for (const int32_t dtype : {TANDEM_BFLOAT16, TANDEM_FLOAT16}) {
    if ((subject.kernel.dtypes >> dtype & 1U) == 0) continue;
    const LayerSetup narrow = in_dtype(subject, one.setup, dtype);
    try {
      const LayerRun run(narrow, subject.registry, subject.device);
    } catch (const Error&) {
      continue;  // not on this machine
    }
    LayerSetup rounded = narrow;
    rounded.input_dtype = rounded.output_dtype = TANDEM_FLOAT32;
    looked = true;
    const std::string differs =
        differ(results_of(subject, narrow), results_of(subject, rounded), tolerance_of(dtype));
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
