// MVN on the cpu, in every layout.
#include <cmath>

#include "layers/common/groups.h"
#include "layers/mvn/mvn.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;
using Lanes = std::array<float, lanes>;

class MvnCpu : public Needs {
 public:
  MvnCpu(const Binding& binding, const Call&)
      : groups_(
            groups_from(binding.input(0), binding.attributes.boolean("across_channels") ? 1 : 2)),
        normalises_(binding.attributes.boolean("normalize_variance")),
        eps_(binding.attributes.number("eps")) {
    if (normalises_) saved_bytes = 2 * groups_.count() * static_cast<int64_t>(sizeof(float));
  }

  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }

  void forward(const Call& call, const Pass& pass) const {
    const float* x = pass.input(0);
    float* y = pass.output(0);
    auto* saved = pass.saved();
    for_groups(call.threads, groups_, [&](const GroupRange& range) {
      const Lanes mean = means(range, [x](int64_t i) { return x[i]; });
      for_elements(range, [&](int64_t i, size_t lane) { y[i] = x[i] - mean[lane]; });
      if (!normalises_) return;
      const LaneSums squares = group_sums(range, [y](int64_t i) { return y[i] * y[i]; });
      Lanes factor{};
      for (size_t l = 0; l < static_cast<size_t>(range.width); ++l) {
        const double deviation = std::sqrt(squares[l] / static_cast<double>(range.count));
        factor[l] = static_cast<float>(1 / std::max(deviation + eps_, smallest));
        float* here = saved + 2 * (range.first + static_cast<int64_t>(l));
        here[0] = factor[l];
        here[1] = deviation > 0 ? static_cast<float>((deviation + eps_) / deviation) : 0.0F;
      }
      for_elements(range, [&](int64_t i, size_t lane) { y[i] *= factor[lane]; });
    });
  }

  // With the deviation s, y = d / (s + eps) and the output's gradient g: dx = (g - mean(g) - y
  // mean(g y) (s + eps) / s) / (s + eps).
  void backward_data(const Call& call, const Pass& pass) const {
    const float* y = pass.output(0);
    const float* g = pass.output_gradient(0);
    float* dx = pass.input_gradient(0);
    const auto* saved = pass.saved();
    for_groups(call.threads, groups_, [&](const GroupRange& range) {
      const Lanes mean = means(range, [g](int64_t i) { return g[i]; });
      if (!normalises_) {
        for_elements(range, [&](int64_t i, size_t lane) { dx[i] = g[i] - mean[lane]; });
        return;
      }
      Lanes projection = means(range, [g, y](int64_t i) { return g[i] * y[i]; });
      Lanes factor{};
      for (size_t l = 0; l < static_cast<size_t>(range.width); ++l) {
        const float* here = saved + 2 * (range.first + static_cast<int64_t>(l));
        factor[l] = here[0];
        projection[l] *= here[1];
      }
      for_elements(range, [&](int64_t i, size_t lane) {
        dx[i] = (g[i] - mean[lane] - y[i] * projection[lane]) * factor[lane];
      });
    });
  }

 private:
  // Makes the result of a constant channel zero if eps is 0.
  static constexpr double smallest = 1e-30;

  template <class Value>
  static Lanes means(const GroupRange& range, const Value& value) {
    const LaneSums sums = group_sums(range, value);
    Lanes result{};
    for (size_t l = 0; l < result.size(); ++l) {
      result[l] = static_cast<float>(sums[l] / static_cast<double>(range.count));
    }
    return result;
  }

  Groups groups_;
  bool normalises_;
  double eps_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "mvn", "1.0")
      .layer<MeanVarianceNormalisation>()
      .kernel<MeanVarianceNormalisation, MvnCpu>("cpu")
      .table();
}
