// TanH on the cpu.
#include "layers/tanh/tanh.h"

#include "layers/elementwise_cpu.h"
#include "layers/vector_math.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;

struct Function {
  explicit Function(const Attributes&) {}
  static constexpr SlopeFrom slope_from = SlopeFrom::output;
  [[nodiscard]] float value(float x) const { return hyperbolic_tangent(x); }
  [[nodiscard]] float slope(float y) const { return 1 - y * y; }
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "tanh", "1.0")
      .layer<HyperbolicTangent>()
      .kernel<HyperbolicTangent, ElementwiseCpu<Function>>("cpu")
      .table();
}
