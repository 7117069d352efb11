// GELU on the cpu.
#include "layers/gelu/gelu.h"

#include "layers/elementwise_cpu.h"
#include "layers/vector_math.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;

struct Exact {
  static float value(float x) { return x * Normal(x).below; }
  static float slope(float x) {
    const Normal normal(x);
    return normal.below + x * normal.bell * 0.398942280F;  // 1 / sqrt(2 pi)
  }
};

// (1 + tanh(u)) / 2 = logistic(2 u), here with 2 u = x (a + b x^2).
struct ByTanh {
  static constexpr float a = 1.59576912F;  // sqrt(8 / pi)
  static constexpr float b = a * 0.044715F;
  static float value(float x) { return x * logistic(x * (a + b * x * x)); }
  static float slope(float x) {
    const float s = logistic(x * (a + b * x * x));
    return s + x * (s * (1 - s)) * (a + 3 * b * x * x);
  }
};

class GeluCpu {
 public:
  GeluCpu(const Binding& binding, const Call&)
      : exact_(binding.attributes.text("approximate") == "none"),
        elements_(count(binding.input(0).shape)) {}

  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }

  void forward(const Call& call, const Pass& pass) const {
    const auto run = [&](auto function) {
      map(call.threads, elements_, pass.input(0), pass.output(0),
          [=](float x) { return function.value(x); });
    };
    exact_ ? run(Exact{}) : run(ByTanh{});
  }

  void backward_data(const Call& call, const Pass& pass) const {
    const auto run = [&](auto function) {
      map(call.threads, elements_, pass.input(0), pass.output_gradient(0), pass.input_gradient(0),
          [=](float x, float dy) { return dy * function.slope(x); });
    };
    exact_ ? run(Exact{}) : run(ByTanh{});
  }

 private:
  bool exact_;
  int64_t elements_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "gelu", "1.0").layer<Gelu>().kernel<Gelu, GeluCpu>("cpu").table();
}
