// ELU on the cpu.
#include "layers/elu/elu.h"

#include "layers/elementwise_cpu.h"
#include "layers/vector_math.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;

struct Function {
  explicit Function(const Attributes& attributes)
      : alpha(static_cast<float>(attributes.number("alpha"))) {}
  static constexpr SlopeFrom slope_from = SlopeFrom::output;
  [[nodiscard]] float value(float x) const {
    const float below = alpha * exponential_minus_one(select(x > 0, 0, x));
    return select(x > 0, x, below);
  }
  [[nodiscard]] float slope(float y) const {
    const float below = y + alpha;
    return select(y > 0, 1, below);
  }
  float alpha;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "elu", "1.0")
      .layer<Elu>()
      .kernel<Elu, ElementwiseCpu<Function>>("cpu")
      .table();
}
