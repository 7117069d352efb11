// ReLU on the cpu: one pass over memory, in whatever order its elements lie.
#include "layers/relu/relu.h"
#include "plugins/cpu/team.h"

namespace {

using namespace tandem::sdk;
using tandem::layers::Relu;

class ReluCpu {
 public:
  ReluCpu(const Binding& binding, const Call&)
      : slope_(static_cast<float>(binding.attributes.number("negative_slope"))),
        elements_(count(binding.input(0).shape)) {}

  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }

  void forward(const Call& call, const Pass& pass) const {
    const float* x = pass.input(0);
    float* y = pass.output(0);
    const float slope = slope_;
    tandem::cpu::for_ranges(call.threads, elements_, [=](int64_t begin, int64_t end) {
      // A slope of zero would make NaN of an infinite input, so it has a loop of its own. A NaN
      // stays one in both.
      if (slope == 0) {
        for (int64_t i = begin; i < end; ++i) y[i] = x[i] < 0 ? 0.0F : x[i];
      } else {
        for (int64_t i = begin; i < end; ++i) y[i] = x[i] < 0 ? slope * x[i] : x[i];
      }
    });
  }

  void backward_data(const Call& call, const Pass& pass) const {
    const float* y = pass.output(0);
    const float* dy = pass.output_gradient(0);
    float* dx = pass.input_gradient(0);
    const float slope = slope_;
    tandem::cpu::for_ranges(call.threads, elements_, [=](int64_t begin, int64_t end) {
      if (slope == 0) {
        for (int64_t i = begin; i < end; ++i) dx[i] = y[i] > 0 ? dy[i] : 0.0F;
      } else {
        for (int64_t i = begin; i < end; ++i) dx[i] = y[i] > 0 ? dy[i] : slope * dy[i];
      }
    });
  }

 private:
  float slope_;
  int64_t elements_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "relu", "1.0").layer<Relu>().kernel<Relu, ReluCpu>("cpu").table();
}
