// Split on the cpu: one pass over memory, in whatever order its elements lie.
#include "layers/split/split.h"
#include "plugins/cpu/team.h"

namespace {

using namespace tandem::sdk;
using tandem::layers::Split;

class SplitCpu {
 public:
  SplitCpu(const Binding& binding, const Call&)
      : outputs_(binding.output_count()), elements_(count(binding.input(0).shape)) {}

  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }

  void forward(const Call& call, const Pass& pass) const {
    const float* x = pass.input(0);
    tandem::cpu::for_ranges(call.threads, elements_, [&](int64_t begin, int64_t end) {
      for (size_t output = 0; output < outputs_; ++output) {
        if (pass.output(output) != x) std::copy(x + begin, x + end, pass.output(output) + begin);
      }
    });
  }

  void backward_data(const Call& call, const Pass& pass) const {
    float* dx = pass.input_gradient(0);
    tandem::cpu::for_ranges(call.threads, elements_, [&](int64_t begin, int64_t end) {
      // A range that stays in the cache while every output's gradient is added to it.
      constexpr int64_t part = 2048;
      for (int64_t first = begin; first < end; first += part) {
        const int64_t last = std::min(end, first + part);
        const float* dy = pass.output_gradient(0);
        if (dy != dx) std::copy(dy + first, dy + last, dx + first);
        for (size_t output = 1; output < outputs_; ++output) {
          dy = pass.output_gradient(output);
          for (int64_t i = first; i < last; ++i) dx[i] += dy[i];
        }
      }
    });
  }

 private:
  size_t outputs_;
  int64_t elements_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "split", "1.0").layer<Split>().kernel<Split, SplitCpu>("cpu").table();
}
