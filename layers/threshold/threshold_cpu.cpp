// Threshold on the cpu.
#include "layers/threshold/threshold.h"

#include "layers/elementwise_cpu.h"
#include "layers/threshold/threshold_formula.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;

class ThresholdCpu {
 public:
  ThresholdCpu(const Binding& binding, const Call&)
      : formula_(binding.attributes), elements_(count(binding.input(0).shape)) {}

  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }

  void forward(const Call& call, const Pass& pass) const {
    map(call.threads, elements_, pass.input(0), pass.output(0),
        [f = formula_](float x) { return f.value(x); });
  }

 private:
  ThresholdFormula formula_;
  int64_t elements_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "threshold", "1.0")
      .layer<Threshold>()
      .kernel<Threshold, ThresholdCpu>("cpu")
      .table();
}
