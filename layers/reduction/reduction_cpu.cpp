// Reduction on the cpu, in every layout.
#include "layers/common/groups.h"
#include "layers/reduction/reduction.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;

class ReductionCpu {
 public:
  ReductionCpu(const Binding& binding, const Call&)
      : operation_(binding.attributes.text("operation")),
        groups_(groups_from(binding.input(0), sample_axis(binding.attributes.integer("axis"),
                                                          binding.input(0).shape))),
        factor_(binding.attributes.number("coeff") /
                (operation_ == "MEAN" ? static_cast<double>(groups_.reduced) : 1)) {}

  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }

  void forward(const Call& call, const Pass& pass) const {
    const float* x = pass.input(0);
    if (operation_ == "ASUM") {
      reduce(call, pass.output(0), [x](int64_t i) { return std::abs(x[i]); });
    } else if (operation_ == "SUMSQ") {
      reduce(call, pass.output(0), [x](int64_t i) { return x[i] * x[i]; });
    } else {
      reduce(call, pass.output(0), [x](int64_t i) { return x[i]; });
    }
  }

  void backward_data(const Call& call, const Pass& pass) const {
    const float* x = pass.input(0);
    if (operation_ == "ASUM") {
      spread(call, pass, [x](int64_t i) {
        return static_cast<float>(x[i] > 0) - static_cast<float>(x[i] < 0);
      });
    } else if (operation_ == "SUMSQ") {
      spread(call, pass, [x](int64_t i) { return 2 * x[i]; });
    } else {
      spread(call, pass, [](int64_t) { return 1.0F; });
    }
  }

 private:
  template <class Value>
  void reduce(const Call& call, float* y, const Value& value) const {
    for_groups(call.threads, groups_, [&](const GroupRange& range) {
      const LaneSums sums = group_sums(range, value);
      for (int64_t l = 0; l < range.width; ++l) {
        y[range.first + l] = static_cast<float>(factor_ * sums[static_cast<size_t>(l)]);
      }
    });
  }
  template <class Slope>
  void spread(const Call& call, const Pass& pass, const Slope& slope) const {
    const float* dy = pass.output_gradient(0);
    float* dx = pass.input_gradient(0);
    for_groups(call.threads, groups_, [&](const GroupRange& range) {
      std::array<float, lanes> factors{};
      for (int64_t l = 0; l < range.width; ++l) {
        factors[static_cast<size_t>(l)] = static_cast<float>(factor_) * dy[range.first + l];
      }
      for_elements(range, [&](int64_t i, size_t lane) { dx[i] = factors[lane] * slope(i); });
    });
  }

  std::string operation_;
  Groups groups_;
  double factor_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "reduction", "1.0")
      .layer<Reduction>()
      .kernel<Reduction, ReductionCpu>("cpu")
      .table();
}
