// PReLU on the cpu: one pass over memory for each pass of the layer.
#include "layers/prelu/prelu.h"

#include "layers/common/broadcast_cpu.h"
#include "layers/common/vector_math.h"

namespace {

using namespace tandem::cpu;
using namespace tandem::sdk;
using namespace tandem::layers;

class PreluCpu : public Needs {
 public:
  PreluCpu(const Binding& binding, const Call&)
      : broadcast_(binding.input(0), ParametricRelu::axes(binding.attributes)),
        dtype_(binding.input(0).dtype) {
    if (binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS)) scratch_bytes = sum_scratch_bytes(broadcast_);
  }

  static constexpr uint32_t dtypes = float32_and_bfloat16;

  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }

  void forward(const Call& call, const Pass& pass) const {
    const float* slopes = pass.weight(0);
    with_elements(dtype_, [&](auto element) {
      const auto* x = pass.input<decltype(element)>(0).data();
      apply_values(call.threads, broadcast_, x, x, slopes, slopes,
                   pass.output<decltype(element)>(0).data(),
                   [](float value, float, float slope, float) {
                     return select(value > 0, value, slope * value);
                   });
    });
  }

  void backward_data(const Call& call, const Pass& pass) const {
    const float* slopes = pass.weight(0);
    with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      apply_values(
          call.threads, broadcast_, pass.input<T>(0).data(), pass.output_gradient<T>(0).data(),
          slopes, slopes, pass.input_gradient<T>(0).data(),
          [](float value, float g, float slope, float) { return select(value > 0, g, slope * g); });
    });
  }

  void backward_weights(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      sum_values(
          call.threads, broadcast_, pass.input<T>(0).data(), pass.output_gradient<T>(0).data(),
          [](float value, float g) { return select(value > 0, 0, value * g); },
          pass.scratch<double>(), pass.weight_gradient(0).data(), pass.accumulate());
    });
  }

 private:
  Broadcast broadcast_;
  int32_t dtype_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "prelu", "1.0")
      .layer<ParametricRelu>()
      .kernel<ParametricRelu, PreluCpu>("cpu")
      .table();
}
