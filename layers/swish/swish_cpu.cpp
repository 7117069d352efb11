// Swish and SiLU on the cpu.
#include "layers/swish/swish.h"

#include "layers/elementwise_cpu.h"
#include "layers/vector_math.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;

struct SwishFunction {
  explicit SwishFunction(const Attributes& attributes)
      : beta(static_cast<float>(attributes.number("beta"))) {}
  static constexpr SlopeFrom slope_from = SlopeFrom::input;
  [[nodiscard]] float value(float x) const { return x * logistic(beta * x); }
  [[nodiscard]] float slope(float x) const {
    const float s = logistic(beta * x);
    return s + beta * x * (s * (1 - s));
  }
  float beta;
};

struct SiluFunction {
  explicit SiluFunction(const Attributes&) {}
  static constexpr SlopeFrom slope_from = SlopeFrom::input;
  [[nodiscard]] float value(float x) const { return x * logistic(x); }
  [[nodiscard]] float slope(float x) const {
    const float s = logistic(x);
    return s + x * (s * (1 - s));
  }
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "swish", "1.0")
      .layer<Swish>()
      .layer<SigmoidLinearUnit>()
      .kernel<Swish, ElementwiseCpu<SwishFunction>>("cpu")
      .kernel<SigmoidLinearUnit, ElementwiseCpu<SiluFunction>>("cpu")
      .table();
}
