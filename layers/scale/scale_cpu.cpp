// Scale on the cpu: one pass over memory for each pass of the layer.
#include "layers/scale/scale.h"

#include "layers/elementwise_cpu.h"
#include "layers/spread_cpu.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;

class ScaleCpu : public Needs {
 public:
  ScaleCpu(const Binding& binding, const Call&)
      : spread_(binding.input(0), axes_of(binding)),
        trained_(binding.input_count() == 1),
        biased_(binding.weight_count() == 2) {
    const bool sums =
        binding.has(trained_ ? TANDEM_WANTS_BACKWARD_WEIGHTS : TANDEM_WANTS_BACKWARD_DATA);
    if (sums) scratch_bytes = sum_scratch_bytes(spread_);
  }

  static LayoutOptions layouts(const Binding& binding) { return layouts_for(binding); }

  void forward(const Call& call, const Pass& pass) const {
    const float *x = pass.input(0), *a = factors(pass);
    if (biased_) {
      apply_values(
          call.threads, spread_, x, x, a, pass.weight(1), pass.output(0),
          [](float value, float, float factor, float bias) { return factor * value + bias; });
    } else {
      multiply(call, x, a, pass.output(0));
    }
  }

  void backward_data(const Call& call, const Pass& pass) const {
    const float *x = pass.input(0), *dy = pass.output_gradient(0);
    if (!trained_ && pass.input_gradient(1) != nullptr) {
      float* da = pass.input_gradient(1);
      if (spread_.one_value_an_element()) {
        map(call.threads, spread_.elements(), x, dy, da, product);
      } else {
        sum_values(call.threads, spread_, x, dy, product, pass.scratch<double>(), da, false);
      }
    }
    if (pass.input_gradient(0) != nullptr)
      multiply(call, dy, factors(pass), pass.input_gradient(0));
  }

  void backward_weights(const Call& call, const Pass& pass) const {
    const float *x = pass.input(0), *dy = pass.output_gradient(0);
    if (float* da = pass.weight_gradient(0)) {
      sum_values(call.threads, spread_, x, dy, product, pass.scratch<double>(), da,
                 pass.accumulate());
    }
    if (biased_ && pass.weight_gradient(1) != nullptr) {
      sum_values(call.threads, spread_, dy, dy, second, pass.scratch<double>(),
                 pass.weight_gradient(1), pass.accumulate());
    }
  }

 private:
  static constexpr auto product = [](float x, float dy) { return x * dy; };
  static constexpr auto second = [](float, float dy) { return dy; };

  [[nodiscard]] const float* factors(const Pass& pass) const {
    return trained_ ? pass.weight(0) : pass.input(1);
  }
  void multiply(const Call& call, const float* x, const float* a, float* y) const {
    apply_values(call.threads, spread_, x, x, a, a, y,
                 [](float value, float, float factor, float) { return factor * value; });
  }

  Spread spread_;
  bool trained_, biased_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "scale", "1.0").layer<Scale>().kernel<Scale, ScaleCpu>("cpu").table();
}
