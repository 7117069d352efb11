// ReLU on the cpu: one pass over memory, in whatever order its elements lie.
#include "layers/relu/relu.h"

#include "layers/elementwise_cpu.h"

namespace {

using namespace tandem::cpu;
using namespace tandem::sdk;
using tandem::layers::map;
using tandem::layers::Relu;

class ReluCpu {
 public:
  ReluCpu(const Binding& binding, const Call&)
      : slope_(static_cast<float>(binding.attributes.number("negative_slope"))),
        dtype_(binding.input(0).dtype),
        elements_(count(binding.input(0).shape)) {}

  static constexpr uint32_t dtypes = float32_and_bfloat16;

  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }

  void forward(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) { forward_of<decltype(element)>(call, pass); });
  }
  void backward_data(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) { backward_of<decltype(element)>(call, pass); });
  }

 private:
  template <class T>
  void forward_of(const Call& call, const Pass& pass) const {
    const T* x = input<T>(pass, 0);
    T* y = output<T>(pass, 0);
    const float slope = slope_;
    // A slope of zero would make NaN of an infinite input, so it has a loop of its own. A NaN stays
    // one in both.
    if (slope == 0) {
      map(call.threads, elements_, x, y, [](float v) { return v < 0 ? 0.0F : v; });
    } else {
      map(call.threads, elements_, x, y, [=](float v) {
        const float below = slope * v;
        return v < 0 ? below : v;
      });
    }
  }

  template <class T>
  void backward_of(const Call& call, const Pass& pass) const {
    const T* y = output<T>(pass, 0);
    const T* dy = output_gradient<T>(pass, 0);
    T* dx = input_gradient<T>(pass, 0);
    const float slope = slope_;
    // The gradient is an argument, loaded whatever the output is: a load that depends on a
    // comparison cannot be vectorised.
    if (slope == 0) {
      map(call.threads, elements_, y, dy, dx, [](float v, float g) { return v > 0 ? g : 0.0F; });
    } else {
      map(call.threads, elements_, y, dy, dx, [=](float v, float g) {
        const float below = slope * g;
        return v > 0 ? g : below;
      });
    }
  }

  float slope_;
  int32_t dtype_;
  int64_t elements_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "relu", "1.0").layer<Relu>().kernel<Relu, ReluCpu>("cpu").table();
}
