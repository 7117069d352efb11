// PReLU on the cpu: one pass over memory for each pass of the layer.
#include "layers/prelu/prelu.h"

#include "layers/spread_cpu.h"
#include "layers/vector_math.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;

class PreluCpu : public Needs {
 public:
  PreluCpu(const Binding& binding, const Call&)
      : spread_(binding.input(0), ParametricRelu::axes(binding.attributes)) {
    if (binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS)) scratch_bytes = sum_scratch_bytes(spread_);
  }

  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }

  void forward(const Call& call, const Pass& pass) const {
    const float *x = pass.input(0), *slopes = pass.weight(0);
    apply_values(call.threads, spread_, x, x, slopes, slopes, pass.output(0),
                 [](float value, float, float slope, float) {
                   return select(value > 0, value, slope * value);
                 });
  }

  void backward_data(const Call& call, const Pass& pass) const {
    const float* slopes = pass.weight(0);
    apply_values(call.threads, spread_, pass.input(0), pass.output_gradient(0), slopes, slopes,
                 pass.input_gradient(0), [](float value, float g, float slope, float) {
                   return select(value > 0, g, slope * g);
                 });
  }

  void backward_weights(const Call& call, const Pass& pass) const {
    sum_values(
        call.threads, spread_, pass.input(0), pass.output_gradient(0),
        [](float value, float g) { return select(value > 0, 0, value * g); },
        pass.scratch<double>(), pass.weight_gradient(0), pass.accumulate());
  }

 private:
  Spread spread_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "prelu", "1.0")
      .layer<ParametricRelu>()
      .kernel<ParametricRelu, PreluCpu>("cpu")
      .table();
}
