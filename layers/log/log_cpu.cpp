// Log on the cpu.
#include "layers/log/log.h"

#include "layers/elementwise_cpu.h"
#include "layers/vector_math.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;

struct Function {
  explicit Function(const Attributes& attributes)
      : factor(static_cast<float>(1 / logarithm_of_base(attributes))),
        scale(static_cast<float>(attributes.number("scale"))),
        shift(static_cast<float>(attributes.number("shift"))) {}
  static constexpr SlopeFrom slope_from = SlopeFrom::input;
  [[nodiscard]] float value(float x) const { return factor * logarithm(shift + scale * x); }
  [[nodiscard]] float slope(float x) const { return factor * scale / (shift + scale * x); }
  float factor, scale, shift;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "log", "1.0")
      .layer<Logarithm>()
      .kernel<Logarithm, ElementwiseCpu<Function>>("cpu")
      .table();
}
