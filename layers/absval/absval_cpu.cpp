// AbsVal on the cpu.
#include "layers/absval/absval.h"

#include "layers/elementwise_cpu.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;

struct Function {
  explicit Function(const Attributes&) {}
  static constexpr SlopeFrom slope_from = SlopeFrom::input;
  [[nodiscard]] float value(float x) const { return x < 0 ? -x : x; }
  [[nodiscard]] float slope(float x) const {
    const float up = x > 0 ? 1.0F : 0.0F;
    const float down = x < 0 ? 1.0F : 0.0F;
    return up - down;
  }
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "absval", "1.0")
      .layer<AbsoluteValue>()
      .kernel<AbsoluteValue, ElementwiseCpu<Function>>("cpu")
      .table();
}
