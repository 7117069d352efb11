// BNLL on the cpu.
#include "layers/bnll/bnll.h"

#include "layers/elementwise_cpu.h"
#include "layers/vector_math.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;

struct Function {
  explicit Function(const Attributes&) {}
  static constexpr SlopeFrom slope_from = SlopeFrom::input;
  // exp of what is never above zero, so that nothing overflows.
  [[nodiscard]] float value(float x) const {
    const float tail = logarithm_of_one_plus(exponential(-std::fabs(x)));
    return select(x > 0, x, 0) + tail;
  }
  [[nodiscard]] float slope(float x) const { return logistic(x); }
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "bnll", "1.0")
      .layer<Bnll>()
      .kernel<Bnll, ElementwiseCpu<Function>>("cpu")
      .table();
}
