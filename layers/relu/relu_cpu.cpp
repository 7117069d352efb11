// ReLU on the cpu: one pass over memory, in whatever order its elements lie.
#include "layers/relu/relu.h"

#include "layers/elementwise_cpu.h"
#include "layers/relu/relu_formula.h"

namespace {

using namespace tandem::cpu;
using namespace tandem::sdk;
using tandem::layers::LeakyRelu;
using tandem::layers::map;
using tandem::layers::PlainRelu;
using tandem::layers::Relu;

class ReluCpu {
 public:
  ReluCpu(const Binding& binding, const Call&)
      : leaky_{static_cast<float>(binding.attributes.number("negative_slope"))},
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
    if (leaky_.negative_slope == 0) {
      map(call.threads, elements_, x, y, [](float v) { return PlainRelu::value(v); });
    } else {
      map(call.threads, elements_, x, y, [f = leaky_](float v) { return f.value(v); });
    }
  }

  template <class T>
  void backward_of(const Call& call, const Pass& pass) const {
    const T* y = output<T>(pass, 0);
    const T* dy = output_gradient<T>(pass, 0);
    T* dx = input_gradient<T>(pass, 0);
    // The gradient is an argument, loaded whatever the output is: a load that depends on a
    // comparison cannot be vectorised.
    if (leaky_.negative_slope == 0) {
      map(call.threads, elements_, y, dy, dx,
          [](float v, float g) { return PlainRelu::gradient(v, g); });
    } else {
      map(call.threads, elements_, y, dy, dx,
          [f = leaky_](float v, float g) { return f.gradient(v, g); });
    }
  }

  LeakyRelu leaky_;
  int32_t dtype_;
  int64_t elements_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "relu", "1.0").layer<Relu>().kernel<Relu, ReluCpu>("cpu").table();
}
