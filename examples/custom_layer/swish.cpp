// acme.Swish: y = x * sigmoid(beta * x), a layer that Tandem does not have. Below is all there is
// to it: what the layer is, how it runs on a CPU, and the entry that tells Tandem of both.

#include <cmath>

#include <tandem/plugins/sdk.h>

namespace {

using namespace tandem::sdk;

struct Swish : LayerType {
  const char* name() const override { return "acme.Swish"; }
  const char* help() const override { return "x * sigmoid(beta * x), element by element"; }
  std::vector<Parameter> parameters() const override {
    return {number("acme_swish_param", "beta").by_default("1").range(0, 100).help("steepness")};
  }
};

class SwishCpu {
 public:
  SwishCpu(const Binding& binding, const Call&)
      : beta_(static_cast<float>(binding.attributes.number("beta"))),
        elements_(count(binding.input(0).shape)) {}

  // Element by element, so any order of them in memory will do.
  static LayoutOptions layouts(const Binding& b) { return any_layout(b.input(0).shape.c); }

  void forward(const Call&, const Pass& pass) const {
    const float* x = pass.input(0);
    float* y = pass.output(0);
    for (int64_t i = 0; i < elements_; ++i) y[i] = x[i] * sigmoid(beta_ * x[i]);
  }

  void backward_data(const Call&, const Pass& pass) const {
    const float* x = pass.input(0);
    const float* dy = pass.output_gradient(0);
    float* dx = pass.input_gradient(0);
    for (int64_t i = 0; i < elements_; ++i) {
      const float s = sigmoid(beta_ * x[i]);
      dx[i] = dy[i] * s * (1 + beta_ * x[i] * (1 - s));
    }
  }

 private:
  static float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
  float beta_;
  int64_t elements_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "acme-swish", "1.0").layer<Swish>().kernel<Swish, SwishCpu>("cpu").table();
}
