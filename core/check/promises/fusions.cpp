#include <cmath>
#include <cstring>
#include <iterator>

#include "core/check/promises/passes.h"
#include "core/plugin/host.h"

namespace tandem::checker {

namespace {

constexpr uint32_t relu_bit = 1U << TANDEM_ACTIVATION_RELU;

// What is fused into the layer in one try.
struct Fusion {
  bool adds = false, rectifies = false, follows_relu = false;
  [[nodiscard]] std::string text() const {
    std::string what = adds && rectifies ? "a fused sum and ReLU"
                       : adds            ? "a fused sum"
                       : rectifies       ? "a fused ReLU"
                                         : "";
    if (!follows_relu) return what;
    return what + (what.empty() ? "" : " and ") + "a ReLU before the layer";
  }
};

// Sums and ReLUs after the layer are asked for where it has one output.
std::vector<Fusion> fusions_of(const tandem_kernel& kernel, size_t outputs, bool may_follow_relu) {
  const bool one = outputs == 1, adds = one && kernel.fuses_sum == 1,
             rectifies = one && (kernel.fused_activations & relu_bit) != 0,
             follows = may_follow_relu && (kernel.gradients_before & relu_bit) != 0;
  std::vector<Fusion> result;
  for (const Fusion& fusion : {Fusion{false, true, false},
                               {true, false, false},
                               {true, true, false},
                               {false, false, true},
                               {false, true, true}}) {
    const bool is_offered = (adds || !fusion.adds) && (rectifies || !fusion.rectifies) &&
                            (follows || !fusion.follows_relu);
    if (is_offered) result.push_back(fusion);
  }
  return result;
}

void rectify(PlainTensor& tensor) {
  for (float& value : tensor.values) value = value < 0 ? 0.0F : value;
}

// The gradient of a ReLU of the values: 0 where they are not above zero.
PlainTensor through_relu(PlainTensor gradient, const PlainTensor& values) {
  for (size_t i = 0; i < gradient.values.size(); ++i) {
    if (!(values.values[i] > 0)) gradient.values[i] = 0;
  }
  return gradient;
}

// The element whose bits differ, where any NaN is as good as another; -1: there is none.
int64_t other_bits(const PlainTensor& a, const PlainTensor& b) {
  for (size_t i = 0; i < a.values.size(); ++i) {
    const bool both_nan = std::isnan(a.values[i]) && std::isnan(b.values[i]);
    if (both_nan || std::memcmp(&a.values[i], &b.values[i], sizeof(float)) == 0) continue;
    return int64_t(i);
  }
  return -1;
}

class FusionCheck {
 public:
  // `setup`: without a fusion.
  FusionCheck(const Subject& subject, LayerSetup setup)
      : subject_(subject),
        setup_(std::move(setup)),
        run_(subject, setup_),
        plain_(run_.all_passes()) {}

  [[nodiscard]] size_t outputs() const { return plain_.outputs.size(); }

  // How the results differ from those of layers of their own; "" if they do not.
  std::string differs_with(const Fusion& fusion) {
    LayerSetup fused = setup_;
    Results expected = plain_;
    if (fusion.adds) add(fused, expected.outputs[0]);
    if (fusion.rectifies) {
      fused.activation = TANDEM_ACTIVATION_RELU;
      rectify(expected.outputs[0]);
    }
    if (fusion.follows_relu) fused.activation_before = TANDEM_ACTIVATION_RELU;
    Trial run(subject_, fused);
    run.tolerate_violations(false);
    const std::vector<PlainTensor> outputs = run.forward();
    std::string differs = differ_in_outputs(outputs, expected.outputs);
    if (differs.empty()) differs = differ("weight", run.weights_after(), plain_.weights);
    if (!differs.empty() || setup_.phase != TANDEM_TRAIN || setup_.flags == 0) return differs;
    return differ_backward(fusion, run, outputs);
  }

 private:
  // One value is a NaN, and one cancels the layer's.
  void add(LayerSetup& fused, PlainTensor& expected) const {
    PlainTensor& addend = fused.addend;
    addend = rounded_to(setup_.output_dtype, random_tensor(expected.shape, 98));
    addend.values.back() = -expected.values.back();
    addend.values[addend.values.size() / 2] = NAN;
    for (size_t i = 0; i < expected.values.size(); ++i) {
      expected.values[i] = rounded_to(setup_.output_dtype, expected.values[i] + addend.values[i]);
    }
  }

  [[nodiscard]] std::string differ_in_outputs(const std::vector<PlainTensor>& actual,
                                              const std::vector<PlainTensor>& expected) const {
    const double allowed = tolerance_of(setup_.output_dtype);
    std::string differs = differ("output", actual, expected, allowed);
    if (!differs.empty() || setup_.output_dtype != TANDEM_FLOAT32) return differs;
    for (size_t k = 0; k < actual.size(); ++k) {
      const int64_t at = other_bits(actual[k], expected[k]);
      if (at < 0) continue;
      return fmt::format("element {} of output {} is {:.9g}, not {:.9g},", at, k,
                         shown(double{actual[k].values[size_t(at)]}),
                         shown(double{expected[k].values[size_t(at)]}));
    }
    return "";
  }

  // The gradients are those of the plain passes, of factors that went through the ReLU after the
  // layer: by its own pass or by the kernel. The host may have applied it all the same.
  std::string differ_backward(const Fusion& fusion, Trial& run,
                              const std::vector<PlainTensor>& outputs) {
    std::vector<PlainTensor> before = run_.factors();
    if (fusion.rectifies) before[0] = through_relu(before[0], outputs[0]);
    Results expected = run_.all_passes(before);
    if (fusion.follows_relu && !expected.input_gradients.empty()) {
      expected.input_gradients[0] = through_relu(expected.input_gradients[0], setup_.inputs[0]);
    }
    const std::string differs = differ_gradients(run, before, expected);
    const bool applies_gradient =
        fusion.rectifies && !fusion.adds && (subject_.kernel.fused_gradients & relu_bit) != 0;
    if (!differs.empty() || !applies_gradient) return differs;
    return differ_gradients(run, run_.factors(), expected);
  }

  std::string differ_gradients(Trial& run, const std::vector<PlainTensor>& factors,
                               Results expected) const {
    const Results actual = run.all_passes(factors);
    expected.outputs = actual.outputs;
    return differ(actual, expected, tolerance_of(setup_.output_dtype));
  }

  const Subject& subject_;
  LayerSetup setup_;
  Trial run_;
  Results plain_;
};

LayerSetup in_form(const Subject& subject, LayerSetup setup, int32_t dtype,
                   const tandem_layout_option& layout) {
  setup = in_dtype(subject, std::move(setup), dtype);
  setup.input_layout = layout.input;
  setup.output_layout = layout.output;
  return setup;
}

// How the outputs differ where input 0 has a NaN at this place. A run ends after its forward pass.
std::string differs_with_nan(const Subject& subject, LayerSetup setup, size_t place) {
  setup.flags = 0;
  setup.inputs[0].values[place] = NAN;
  try {
    FusionCheck check(subject, setup);
    for (const Fusion& fusion : fusions_of(subject.kernel, check.outputs(), false)) {
      const std::string differs = check.differs_with(fusion);
      if (differs.empty()) continue;
      return fmt::format("{} with {}, where element {} of input 0 is NaN", differs, fusion.text(),
                         place);
    }
  } catch (const Violation&) {
    throw;
  } catch (const Error&) {  // it refuses a NaN
  }
  return "";
}

std::string differs_in(const Subject& subject, const Case& one, const LayerSetup& setup) {
  const bool has_values =
      one.plain[0] && input_role(subject.type, 0) != TANDEM_INPUT_NON_DIFFERENTIABLE;
  // Nothing after it is fused into a layer whose backward pass reads its outputs.
  LayerSetup after = setup;
  if (subject.has(TANDEM_BACKWARD_READS_OUTPUTS)) after.flags = 0;
  LayerSetup before = setup;
  if (has_values) rectify(before.inputs[0]);
  FusionCheck usual(subject, after), rectified(subject, before);
  for (const Fusion& fusion : fusions_of(subject.kernel, usual.outputs(), has_values)) {
    const std::string differs = (fusion.follows_relu ? rectified : usual).differs_with(fusion);
    if (!differs.empty()) return fmt::format("{} with {}", differs, fusion.text());
  }
  if (!has_values) return "";
  const size_t last = setup.inputs[0].values.size() - 1;
  const std::string differs = differs_with_nan(subject, setup, 0);
  return differs.empty() ? differs_with_nan(subject, setup, last) : differs;
}

// Negative, zero, tiny and large values among the usual ones.
constexpr float values_of_activations[] = {-0.5F, 0.0F, 0.5F,   -0.0F, 7.0F,  -7.0F,
                                           1e-6F, 21,   -1e-6F, 1e4F,  -1e4F, 1e-30F};

bool names_relu(const Subject& subject, const LayerSetup& setup) {
  if (subject.type.activation == nullptr) return false;
  const LayerRun run(setup, subject.registry, subject.device);
  const tandem_layer_query query = run.query();
  int32_t activation = TANDEM_ACTIVATION_NONE;
  check(subject.type.activation(&query, &activation), setup.type);
  return activation == TANDEM_ACTIVATION_RELU;
}

// The first element that differs, in which a zero has any sign; "" if there is none.
std::string differs_from(const std::vector<float>& actual, const std::vector<float>& expected,
                         const char* what, const std::vector<float>& inputs) {
  for (size_t i = 0; i < expected.size() && i < actual.size(); ++i) {
    if (actual[i] == expected[i]) continue;
    return fmt::format(
        "{} is {:.6g} where the input is {:.6g}, but the type says TANDEM_ACTIVATION_RELU, which "
        "gives {:.6g}",
        what, shown(double{actual[i]}), inputs[i], expected[i]);
  }
  return "";
}

}  // namespace

// A host may apply a ReLU in the kernel of the layer before, and never run this one.
Outcome computes_its_activation(const Subject& subject, const Case& one) {
  if (one.setup.inputs.size() != 1 || one.setup.output_count != 1 || !one.plain[0] ||
      !names_relu(subject, one.setup)) {
    return not_applicable();
  }
  LayerSetup setup = one.setup;
  std::vector<float>& inputs = setup.inputs[0].values;
  constexpr size_t count = std::size(values_of_activations);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i / count % 2 == 0) inputs[i] = values_of_activations[i % count];
  }
  Trial run(subject, setup);
  const Results results = run.all_passes();
  if (results.outputs[0].values.size() != inputs.size()) {
    return broken("the type says TANDEM_ACTIVATION_RELU, but the output has another size");
  }
  PlainTensor expected = setup.inputs[0];
  rectify(expected);
  const std::string differs =
      differs_from(results.outputs[0].values, expected.values, "the output", inputs);
  if (!differs.empty()) return broken(differs);
  if (results.input_gradients.empty()) return kept();
  const PlainTensor gradient = through_relu(run.factors()[0], setup.inputs[0]);
  return kept_unless(
      differs_from(results.input_gradients[0].values, gradient.values, "the gradient", inputs));
}

Outcome equal_with_fusions(const Subject& subject, const Case& one) {
  const tandem_kernel& kernel = subject.kernel;
  if (subject.has(TANDEM_LOSS | TANDEM_METRIC) || fusions_of(kernel, 1, true).empty() ||
      one.setup.output_count == 0) {
    return not_applicable();
  }
  for (const int32_t dtype : {TANDEM_FLOAT32, TANDEM_BFLOAT16, TANDEM_FLOAT16}) {
    if (dtype != TANDEM_FLOAT32 && (kernel.dtypes >> dtype & 1U) == 0) continue;
    std::vector<tandem_layout_option> layouts;
    try {
      const LayerSetup setup = in_form(subject, one.setup, dtype, {TANDEM_NCHW, TANDEM_NCHW, 0});
      layouts = LayerRun(setup, subject.registry, subject.device).layouts();
    } catch (const Error&) {
      if (dtype != TANDEM_FLOAT32) continue;  // not on this machine
      throw;
    }
    for (const tandem_layout_option& layout : layouts) {
      const std::string differs =
          differs_in(subject, one, in_form(subject, one.setup, dtype, layout));
      if (differs.empty()) continue;
      return broken(fmt::format("{} (in {}, {} to {})", differs, dtype_name(dtype),
                                layout_name(layout.input), layout_name(layout.output)));
    }
  }
  return kept();
}

}  // namespace tandem::checker
