// Power on the cpu: the exponents that nets use have loops of their own, others call the C library.
#include "layers/elementwise_cpu.h"
#include "layers/power/power.h"
#include "layers/power/power_formula.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;

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
      body(ZerothPower{});
    } else if (power_ == 1) {
      body(FirstPower{});
    } else if (power_ == 2) {
      body(SecondPower{});
    } else {
      body(AnyPower{power_});
    }
  }

  float power_, scale_, shift_;
  int64_t elements_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "power", "1.0").layer<Power>().kernel<Power, PowerCpu>("cpu").table();
}
