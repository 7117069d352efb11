// sample.ELU: y = x for x > 0, alpha * (exp(x) - 1) otherwise. A layer with a parameter and no
// weights, which works element by element: in place, in any layout, on any range of the batch.

#include <cmath>

#include "plugins/sdk.h"

namespace {

using namespace tandem::sdk;

struct Elu : LayerType {
  const char* name() const override { return "sample.ELU"; }
  const char* help() const override { return "exponential linear unit, element by element"; }
  std::vector<Parameter> parameters() const override {
    return {number("sample_elu_param", "alpha")
                .by_default("1")
                .range(0, 1e6)
                .help("the output's limit far below zero is -alpha")};
  }
  // The slope is computed from the output, so the input's memory may be reused for it.
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_IN_PLACE | TANDEM_BACKWARD_READS_OUTPUTS;
  }
};

class EluCpu {
 public:
  EluCpu(const Binding& binding, const Call&)
      : alpha_(static_cast<float>(binding.attributes.number("alpha"))),
        elements_(count(binding.input(0).shape)) {}

  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }

  void forward(const Call&, const Pass& pass) const {
    const float* x = pass.input(0);
    float* y = pass.output(0);
    for (int64_t i = 0; i < elements_; ++i) y[i] = x[i] > 0 ? x[i] : alpha_ * std::expm1(x[i]);
  }

  void backward_data(const Call&, const Pass& pass) const {
    const float* y = pass.output(0);
    const float* dy = pass.output_gradient(0);
    float* dx = pass.input_gradient(0);
    for (int64_t i = 0; i < elements_; ++i) dx[i] = dy[i] * (y[i] > 0 ? 1 : y[i] + alpha_);
  }

 private:
  float alpha_;
  int64_t elements_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "sample-elu", "1.0").layer<Elu>().kernel<Elu, EluCpu>("cpu").table();
}
