// Power on the cpu: the exponents that nets use have loops of their own, others call the C library.
#include <cmath>

#include "layers/elementwise_cpu.h"
#include "layers/power/power.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;

// value(b) = b^p and slope(b) = p b^(p - 1).
struct Zeroth {
  static float value(float) { return 1; }
  static float slope(float) { return 0; }
};
struct First {
  static float value(float b) { return b; }
  static float slope(float) { return 1; }
};
struct Second {
  static float value(float b) { return b * b; }
  static float slope(float b) { return 2 * b; }
};
struct Any {
  float power;
  [[nodiscard]] float value(float b) const { return std::pow(b, power); }
  [[nodiscard]] float slope(float b) const { return power * std::pow(b, power - 1); }
};

class PowerCpu {
 public:
  PowerCpu(const Binding& binding, const Call&)
      : power_(static_cast<float>(binding.attributes.number("power"))),
        scale_(static_cast<float>(binding.attributes.number("scale"))),
        shift_(static_cast<float>(binding.attributes.number("shift"))),
        elements_(count(binding.input(0).shape)) {}

  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }

  void forward(const Call& call, const Pass& pass) const {
    with_function([&](auto function) {
      map(call.threads, elements_, pass.input(0), pass.output(0),
          [=, scale = scale_, shift = shift_](float x) {
            return function.value(shift + scale * x);
          });
    });
  }

  void backward_data(const Call& call, const Pass& pass) const {
    with_function([&](auto function) {
      map(call.threads, elements_, pass.input(0), pass.output_gradient(0), pass.input_gradient(0),
          [=, scale = scale_, shift = shift_](float x, float dy) {
            return dy * (scale * function.slope(shift + scale * x));
          });
    });
  }

 private:
  template <class Body>
  void with_function(const Body& body) const {
    if (power_ == 0) {
      body(Zeroth{});
    } else if (power_ == 1) {
      body(First{});
    } else if (power_ == 2) {
      body(Second{});
    } else {
      body(Any{power_});
    }
  }

  float power_, scale_, shift_;
  int64_t elements_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "power", "1.0").layer<Power>().kernel<Power, PowerCpu>("cpu").table();
}
