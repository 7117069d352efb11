// Scale on the cpu: one pass over memory for each pass of the layer.
#include "layers/scale/scale.h"

#include "layers/elementwise_cpu.h"
#include "layers/spread_cpu.h"
#include "plugins/cpu/rectified.h"

namespace {

using namespace tandem::cpu;
using namespace tandem::sdk;
using namespace tandem::layers;

class ScaleCpu : public Needs {
 public:
  ScaleCpu(const Binding& binding, const Call&)
      : spread_(binding.input(0), axes_of(binding)),
        dtype_(binding.input(0).dtype),
        trained_(binding.input_count() == 1),
        biased_(binding.weight_count() == 2),
        rectifies_(rectifies(binding)) {
    const bool sums =
        binding.has(trained_ ? TANDEM_WANTS_BACKWARD_WEIGHTS : TANDEM_WANTS_BACKWARD_DATA);
    if (sums) scratch_bytes = sum_scratch_bytes(spread_);
    copies_ = scratch_bytes;
    // A second input's values and their gradient, in float32.
    if (!trained_ && dtype_ == TANDEM_BFLOAT16) {
      scratch_bytes += 2 * spread_.values() * static_cast<int64_t>(sizeof(float));
    }
  }

  static constexpr uint32_t dtypes = float32_and_bfloat16;
  static constexpr uint64_t fused_activations = rectifying;

  static LayoutOptions layouts(const Binding& binding) { return layouts_for(binding); }

  void forward(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) { forward_of<decltype(element)>(call, pass); });
  }
  void backward_data(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) { data_of<decltype(element)>(call, pass); });
  }
  void backward_weights(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) { weights_of<decltype(element)>(call, pass); });
  }

 private:
  template <class T>
  void forward_of(const Call& call, const Pass& pass) const {
    const T* x = input<T>(pass, 0);
    T* y = output<T>(pass, 0);
    const float *a = factors<T>(pass), *b = biased_ ? pass.weight(1) : a;
    const auto apply = [&](const auto& function) {
      apply_values(call.threads, spread_, x, x, a, b, y, function);
    };
    if (biased_) {
      with_rectified<T>(rectifies_, scaled_and_biased, apply);
    } else {
      with_rectified<T>(rectifies_, scaled, apply);
    }
  }

  template <class T>
  void data_of(const Call& call, const Pass& pass) const {
    const T *x = input<T>(pass, 0), *dy = output_gradient<T>(pass, 0);
    if (!trained_ && pass.raw.input_gradients[1] != nullptr) {
      T* da = input_gradient<T>(pass, 1);
      if (spread_.one_value_an_element()) {
        map(call.threads, spread_.elements(), x, dy, da, product);
      } else {
        sum_factors(call, pass, x, dy, da);
      }
    }
    if (T* dx = input_gradient<T>(pass, 0)) {
      const float* a = factors<T>(pass);
      apply_values(call.threads, spread_, dy, dy, a, a, dx, scaled);
    }
  }

  template <class T>
  void weights_of(const Call& call, const Pass& pass) const {
    const T *x = input<T>(pass, 0), *dy = output_gradient<T>(pass, 0);
    if (float* da = pass.weight_gradient(0)) {
      sum_values(call.threads, spread_, x, dy, product, pass.scratch<double>(), da,
                 pass.accumulate());
    }
    if (biased_ && pass.weight_gradient(1) != nullptr) {
      sum_values(call.threads, spread_, dy, dy, second, pass.scratch<double>(),
                 pass.weight_gradient(1), pass.accumulate());
    }
  }

  static constexpr auto product = [](float x, float dy) { return x * dy; };
  static constexpr auto scaled = [](float x, float, float factor, float) { return factor * x; };
  static constexpr auto scaled_and_biased = [](float x, float, float factor, float bias) {
    return factor * x + bias;
  };
  static constexpr auto second = [](float, float dy) { return dy; };

  [[nodiscard]] float* copy(const Pass& pass, int64_t number) const {
    return reinterpret_cast<float*>(pass.scratch<std::byte>() + copies_) +
           number * spread_.values();
  }
  template <class T>
  [[nodiscard]] const float* factors(const Pass& pass) const {
    if (trained_) return pass.weight(0);
    if constexpr (std::is_same_v<T, float>) {
      return pass.input(1);
    } else {
      widen(input<T>(pass, 1), copy(pass, 0), spread_.values());
      return copy(pass, 0);
    }
  }
  void sum_factors(const Call& call, const Pass& pass, const float* x, const float* dy,
                   float* da) const {
    sum_values(call.threads, spread_, x, dy, product, pass.scratch<double>(), da, false);
  }
  void sum_factors(const Call& call, const Pass& pass, const bfloat16* x, const bfloat16* dy,
                   bfloat16* da) const {
    float* sums = copy(pass, 1);
    sum_values(call.threads, spread_, x, dy, product, pass.scratch<double>(), sums, false);
    narrow(sums, da, spread_.values());
  }

  Spread spread_;
  int32_t dtype_;
  int64_t copies_ = 0;  // where they begin in the scratch memory
  bool trained_, biased_, rectifies_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "scale", "1.0").layer<Scale>().kernel<Scale, ScaleCpu>("cpu").table();
}
