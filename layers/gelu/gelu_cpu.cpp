// GELU on the cpu.
#include "layers/gelu/gelu.h"

#include "layers/elementwise_cpu.h"
#include "layers/gelu/gelu_formula.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;

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
    exact_ ? run(ExactGelu{}) : run(GeluByTanh{});
  }

  void backward_data(const Call& call, const Pass& pass) const {
    const auto run = [&](auto function) {
      map(call.threads, elements_, pass.input(0), pass.output_gradient(0), pass.input_gradient(0),
          [=](float x, float dy) { return dy * function.slope(x); });
    };
    exact_ ? run(ExactGelu{}) : run(GeluByTanh{});
  }

 private:
  bool exact_;
  int64_t elements_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "gelu", "1.0").layer<Gelu>().kernel<Gelu, GeluCpu>("cpu").table();
}
