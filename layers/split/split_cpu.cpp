// Split on the cpu: one pass over memory, in the order in which the elements lie.
#include "layers/split/split.h"
#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/fused_relu.h"
#include "plugins/cpu/team.h"
#include "plugins/cpu/vectorized.h"

namespace {

using namespace tandem::cpu;
using namespace tandem::sdk;
using tandem::layers::Split;

class SplitCpu {
 public:
  SplitCpu(const Binding& binding, const Call&)
      : outputs_(binding.output_count()),
        elements_(count(binding.input(0).shape)),
        dtype_(binding.input(0).dtype),
        follows_relu_(binding.follows_relu()) {}

  static constexpr uint32_t dtypes = float32_and_bfloat16;
  static constexpr uint32_t gradients_before = relu_only;

  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }

  void forward(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) { copy<decltype(element)>(call, pass); });
  }
  void backward_data(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) { sum<decltype(element)>(call, pass); });
  }

 private:
  // A tile of this size stays in the cache while the gradients of all outputs are added to it.
  static constexpr int64_t part = 2048;

  template <class T>
  void copy(const Call& call, const Pass& pass) const {
    const T* x = pass.input<T>(0);
    tandem::cpu::for_ranges(call.threads, elements_, [&](int64_t begin, int64_t end) {
      for (size_t output = 0; output < outputs_; ++output) {
        T* y = pass.output<T>(output).data();
        if (y != x) std::copy(x + begin, x + end, y + begin);
      }
    });
  }

  template <class T>
  void sum(const Call& call, const Pass& pass) const {
    T* dx = pass.input_gradient<T>(0);
    const auto range = [&](int64_t begin, int64_t end) {
      for (int64_t first = begin; first < end; first += part) {
        const int64_t last = std::min(end, first + part);
        sum_part(pass, first, last - first, dx + first);
        if (follows_relu_) pass_through_relu(pass.input<T>(0) + first, dx + first, last - first);
      }
    };
    for_ranges(call.threads, elements_, vectorized(range));
  }

  void sum_part(const Pass& pass, int64_t first, int64_t size, float* dx) const {
    bool has_one = false;
    for (size_t output = 0; output < outputs_; ++output) {
      if (pass.output_gradient(output) == nullptr) continue;
      const float* dy = pass.output_gradient(output) + first;
      if (has_one) {
        for (int64_t i = 0; i < size; ++i) dx[i] += dy[i];
      } else if (dy != dx) {
        std::copy(dy, dy + size, dx);
      }
      has_one = true;
    }
    if (!has_one) std::fill_n(dx, size, 0.0F);
  }
  // The sum is rounded once.
  void sum_part(const Pass& pass, int64_t first, int64_t size, bfloat16* dx) const {
    float total[part] = {}, dy[part];
    bool has_one = false;
    for (size_t output = 0; output < outputs_; ++output) {
      if (pass.output_gradient<bfloat16>(output) == nullptr) continue;
      if (!has_one) {
        widen(pass.output_gradient<bfloat16>(output).data() + first, total, size);
        has_one = true;
        continue;
      }
      widen(pass.output_gradient<bfloat16>(output).data() + first, dy, size);
      for (int64_t i = 0; i < size; ++i) total[i] += dy[i];
    }
    narrow(total, dx, size);
  }

  size_t outputs_;
  int64_t elements_;
  int32_t dtype_;
  bool follows_relu_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "split", "1.0").layer<Split>().kernel<Split, SplitCpu>("cpu").table();
}
