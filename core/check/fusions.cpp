#include "core/check/fusions.h"

#include <algorithm>

namespace tandem::checker {

namespace {

constexpr uint32_t relu_bit = 1U << TANDEM_ACTIVATION_RELU;

// What is fused into the layer in one try.
struct Fusion {
  bool adds = false, rectifies = false;
  [[nodiscard]] std::string text() const {
    return adds && rectifies ? "a fused sum and ReLU" : adds ? "a fused sum" : "a fused ReLU";
  }
};

std::vector<Fusion> fusions_of(const tandem_kernel& kernel) {
  const bool adds = kernel.fuses_sum == 1, rectifies = (kernel.fused_activations & relu_bit) != 0;
  std::vector<Fusion> result;
  if (rectifies) result.push_back({false, true});
  if (adds) result.push_back({true, false});
  if (adds && rectifies) result.push_back({true, true});
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

// The difference that is allowed: of float32 none. In 16 bits a library's kernel may round once
// less.
double tolerance_of(int32_t dtype) {
  return dtype == TANDEM_FLOAT32 ? 0 : dtype == TANDEM_BFLOAT16 ? 0.03 : 0.005;
}

class FusionCheck {
 public:
  // `setup`: without a fusion.
  FusionCheck(const Subject& subject, LayerSetup setup)
      : subject_(subject),
        setup_(std::move(setup)),
        run_(setup_, subject.registry, subject.device) {
    run_.tolerate_violations();
    factors_ = factors_of(run_);
    plain_ = pass_all(subject, run_, factors_);
  }

  [[nodiscard]] bool has_output() const { return !plain_.outputs.empty(); }

  // How the results differ from those of layers of their own; "" if they do not.
  std::string differs_with(const Fusion& fusion) {
    LayerSetup fused = setup_;
    PlainTensor expected = plain_.outputs[0];
    if (fusion.adds) {
      fused.addend = rounded_to(setup_.output_dtype, random_tensor(expected.shape, 98));
      for (size_t i = 0; i < expected.values.size(); ++i) {
        expected.values[i] =
            rounded_to(setup_.output_dtype, expected.values[i] + fused.addend.values[i]);
      }
    }
    if (fusion.rectifies) {
      fused.activation = TANDEM_ACTIVATION_RELU;
      rectify(expected);
    }
    LayerRun run(fused, subject_.registry, subject_.device);
    run.tolerate_violations();
    const Results results = pass_all(subject_, run, factors_);
    std::vector<PlainTensor> outputs = plain_.outputs;
    outputs[0] = expected;
    const double allowed = tolerance_of(setup_.output_dtype);
    const std::string differs = differ("output", results.outputs, outputs, allowed);
    if (!differs.empty()) return differs;
    const bool applies_gradient =
        fusion.rectifies && !fusion.adds && (subject_.kernel.fused_gradients & relu_bit) != 0;
    return differ_backward(run, results, expected, applies_gradient);
  }

  // With a ReLU before the layer, whose output is input 0.
  std::string differs_after_relu() {
    LayerSetup before = setup_;
    before.activation_before = TANDEM_ACTIVATION_RELU;
    LayerRun run(before, subject_.registry, subject_.device);
    run.tolerate_violations();
    const Results results = pass_all(subject_, run, factors_);
    Results expected = plain_;
    if (!expected.input_gradients.empty()) {
      expected.input_gradients[0] = through_relu(expected.input_gradients[0], setup_.inputs[0]);
    }
    return differ(results, expected, tolerance_of(setup_.input_dtype));
  }

 private:
  // The gradients are those of the plain passes, of factors that went through the ReLU if the
  // kernel applies its gradient. The host may have applied it, too.
  std::string differ_backward(LayerRun& run, Results results, const PlainTensor& rectified,
                              bool applies_gradient) {
    Results expected = plain_;
    std::vector<PlainTensor> before = factors_;
    if (applies_gradient) {
      before[0] = through_relu(before[0], rectified);
      expected = pass_all(subject_, run_, before);
    }
    const double allowed = tolerance_of(setup_.output_dtype);
    expected.outputs = results.outputs;
    std::string differs = differ(results, expected, allowed);
    if (!differs.empty() || !applies_gradient) return differs;
    results = pass_all(subject_, run, before);
    differs = differ(results, expected, allowed);
    return differs.empty() ? "" : differs + " where the host has applied the ReLU's gradient";
  }

  const Subject& subject_;
  LayerSetup setup_;
  LayerRun run_;
  std::vector<PlainTensor> factors_;
  Results plain_;
};

// The case in the dtype. Nothing is fused into a layer whose backward pass reads its outputs.
LayerSetup in_dtype(const Subject& subject, LayerSetup setup, int32_t dtype) {
  if (subject.has(TANDEM_BACKWARD_READS_OUTPUTS)) setup.flags = 0;
  for (size_t i = 0; i < setup.inputs.size(); ++i) {
    if (!is_label(subject.type, i)) setup.inputs[i] = rounded_to(dtype, setup.inputs[i]);
  }
  setup.input_dtype = setup.output_dtype = dtype;
  return setup;
}

std::string differs_in(const Subject& subject, const Case& one, const LayerSetup& setup) {
  FusionCheck usual(subject, setup);
  if (!usual.has_output()) return "";
  LayerSetup with_nan = setup;
  with_nan.flags = 0;  // the run ends after its forward pass
  if (one.plain[0]) with_nan.inputs[0].values[0] = NAN;
  FusionCheck of_nan(subject, with_nan);
  for (const Fusion& fusion : fusions_of(subject.kernel)) {
    std::string differs = usual.differs_with(fusion);
    if (!differs.empty()) return fmt::format("{} with {}", differs, fusion.text());
    differs = of_nan.differs_with(fusion);
    if (!differs.empty()) return fmt::format("{} with {} and a NaN", differs, fusion.text());
  }
  if ((subject.kernel.gradients_before & relu_bit) == 0 || !one.plain[0]) return "";
  LayerSetup after = setup;
  rectify(after.inputs[0]);
  const std::string differs = FusionCheck(subject, after).differs_after_relu();
  return differs.empty() ? "" : differs + " if a ReLU made input 0";
}

}  // namespace

Outcome equal_with_fusions(const Subject& subject, const Case& one) {
  const tandem_kernel& kernel = subject.kernel;
  if (subject.has(TANDEM_LOSS | TANDEM_METRIC) ||
      (fusions_of(kernel).empty() && (kernel.gradients_before & relu_bit) == 0)) {
    return not_applicable();
  }
  for (const int32_t dtype : {TANDEM_FLOAT32, TANDEM_BFLOAT16, TANDEM_FLOAT16}) {
    if (dtype != TANDEM_FLOAT32 && (kernel.dtypes >> dtype & 1U) == 0) continue;
    const LayerSetup setup = in_dtype(subject, one.setup, dtype);
    try {
      LayerRun run(setup, subject.registry, subject.device);
    } catch (const Error&) {
      if (dtype != TANDEM_FLOAT32) continue;  // not on this machine
      throw;
    }
    const std::string differs = differs_in(subject, one, setup);
    if (!differs.empty()) return broken(fmt::format("{} in {}", differs, dtype_name(dtype)));
  }
  return kept();
}

}  // namespace tandem::checker
