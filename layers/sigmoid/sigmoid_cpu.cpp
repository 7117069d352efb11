// Sigmoid on the cpu.
#include "layers/sigmoid/sigmoid.h"

#include "layers/elementwise_cpu.h"
#include "layers/vector_math.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;

struct Function {
  explicit Function(const Attributes&) {}
  static constexpr SlopeFrom slope_from = SlopeFrom::output;
  [[nodiscard]] float value(float x) const { return logistic(x); }
  [[nodiscard]] float slope(float y) const { return y * (1 - y); }
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "sigmoid", "1.0")
      .layer<Sigmoid>()
      .kernel<Sigmoid, ElementwiseCpu<Function>>("cpu")
      .table();
}
