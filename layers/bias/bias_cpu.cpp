// Bias on the cpu: one pass over memory for each pass of the layer.
#include "layers/bias/bias.h"

#include "layers/elementwise_cpu.h"
#include "layers/spread_cpu.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;

class BiasCpu : public Needs {
 public:
  BiasCpu(const Binding& binding, const Call&)
      : spread_(binding.input(0), axes_of(binding)), trained_(binding.input_count() == 1) {
    const bool sums =
        binding.has(trained_ ? TANDEM_WANTS_BACKWARD_WEIGHTS : TANDEM_WANTS_BACKWARD_DATA);
    if (sums) scratch_bytes = sum_scratch_bytes(spread_);
  }

  static LayoutOptions layouts(const Binding& binding) { return layouts_for(binding); }

  void forward(const Call& call, const Pass& pass) const {
    const float *x = pass.input(0), *b = trained_ ? pass.weight(0) : pass.input(1);
    apply_values(call.threads, spread_, x, x, b, b, pass.output(0),
                 [](float value, float, float bias, float) { return value + bias; });
  }

  void backward_data(const Call& call, const Pass& pass) const {
    const float* dy = pass.output_gradient(0);
    if (!trained_ && pass.input_gradient(1) != nullptr) {
      if (spread_.one_value_an_element()) {
        copy(call, dy, pass.input_gradient(1));
      } else {
        sum(call, pass, pass.input_gradient(1), false);
      }
    }
    if (pass.input_gradient(0) != nullptr) copy(call, dy, pass.input_gradient(0));
  }

  void backward_weights(const Call& call, const Pass& pass) const {
    sum(call, pass, pass.weight_gradient(0), pass.accumulate());
  }

 private:
  void copy(const Call& call, const float* from, float* to) const {
    if (from != to) map(call.threads, spread_.elements(), from, to, [](float v) { return v; });
  }
  void sum(const Call& call, const Pass& pass, float* target, bool accumulate) const {
    const float* dy = pass.output_gradient(0);
    sum_values(
        call.threads, spread_, dy, dy, [](float, float g) { return g; }, pass.scratch<double>(),
        target, accumulate);
  }

  Spread spread_;
  bool trained_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "bias", "1.0").layer<Bias>().kernel<Bias, BiasCpu>("cpu").table();
}
