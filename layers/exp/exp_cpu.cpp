// Exp on the cpu: e^(a x + b).
#include "layers/exp/exp.h"

#include "layers/elementwise_cpu.h"
#include "layers/vector_math.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;

struct Function {
  explicit Function(const Attributes& attributes)
      : a(static_cast<float>(attributes.number("scale") * logarithm_of_base(attributes))),
        b(static_cast<float>(attributes.number("shift") * logarithm_of_base(attributes))) {}
  static constexpr SlopeFrom slope_from = SlopeFrom::output;
  [[nodiscard]] float value(float x) const { return exponential(a * x + b); }
  [[nodiscard]] float slope(float y) const { return a * y; }
  float a, b;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "exp", "1.0")
      .layer<Exponential>()
      .kernel<Exponential, ElementwiseCpu<Function>>("cpu")
      .table();
}
