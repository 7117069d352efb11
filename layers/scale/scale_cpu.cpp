// Scale on the cpu: one pass over memory for each pass of the layer.
#include "layers/scale/scale.h"

#include "layers/common/broadcast_cpu.h"
#include "layers/common/elementwise_cpu.h"
#include "plugins/cpu/fused_relu.h"

namespace {

using namespace tandem::cpu;
using namespace tandem::sdk;
using namespace tandem::layers;

class ScaleCpu : public Needs {
 public:
  ScaleCpu(const Binding& binding, const Call&)
      : broadcast_(binding.input(0), axes_of(binding)),
        dtype_(binding.input(0).dtype),
        trained_(binding.input_count() == 1),
        biased_(binding.weight_count() == 2),
        fuses_relu_(binding.fuses_relu()) {
    const bool sums =
        binding.has(trained_ ? TANDEM_WANTS_BACKWARD_WEIGHTS : TANDEM_WANTS_BACKWARD_DATA);
    if (sums) scratch_bytes = sum_scratch_bytes(broadcast_, biased_ ? 2 : 1);
  }

  static constexpr uint32_t dtypes = float32_and_bfloat16;
  static constexpr uint32_t fused_activations = relu_only;

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
    const T* x = pass.input<T>(0);
    T* y = pass.output<T>(0);
    if (biased_) {
      const float *a = pass.weight(0), *b = pass.weight(1);
      with_fused_relu<T>(fuses_relu_, scaled_and_biased, [&](const auto& function) {
        apply_values(call.threads, broadcast_, x, x, a, b, y, function);
      });
      return;
    }
    with_factors<T>(pass, [&](const auto* a) {
      with_fused_relu<T>(fuses_relu_, scaled, [&](const auto& function) {
        apply_values(call.threads, broadcast_, x, x, a, a, y, function);
      });
    });
  }

  template <class T>
  void data_of(const Call& call, const Pass& pass) const {
    const T *x = pass.input<T>(0), *dy = pass.output_gradient<T>(0);
    T* da = trained_ ? nullptr : pass.input_gradient<T>(1).data();
    if (da != nullptr && broadcast_.one_value_per_element()) {
      map(call.threads, broadcast_.elements(), x, dy, da, product);
    } else if (da != nullptr) {
      sum_values(call.threads, broadcast_, x, dy, product, pass.scratch<double>(), da, false);
    }
    if (T* dx = pass.input_gradient<T>(0)) {
      with_factors<T>(pass, [&](const auto* a) {
        apply_values(call.threads, broadcast_, dy, dy, a, a, dx, scaled);
      });
    }
  }

  template <class T>
  void weights_of(const Call& call, const Pass& pass) const {
    const T *x = pass.input<T>(0), *dy = pass.output_gradient<T>(0);
    float* da = pass.weight_gradient(0);
    float* db = biased_ ? pass.weight_gradient(1).data() : nullptr;
    auto* scratch = pass.scratch<double>();
    const bool adds = pass.accumulate();
    if (da != nullptr && db != nullptr) {
      sum_values(call.threads, broadcast_, x, dy, product, da, second, db, scratch, adds);
    } else if (da != nullptr) {
      sum_values(call.threads, broadcast_, x, dy, product, scratch, da, adds);
    } else if (db != nullptr) {
      sum_values(call.threads, broadcast_, dy, dy, second, scratch, db, adds);
    }
  }

  // body(factors): trained ones are float32, those of a second input have its type.
  template <class T, class Body>
  void with_factors(const Pass& pass, const Body& body) const {
    trained_ ? body(pass.weight(0).data()) : body(pass.input<T>(1).data());
  }

  static constexpr auto product = [](float x, float dy) { return x * dy; };
  static constexpr auto scaled = [](float x, float, float factor, float) { return factor * x; };
  static constexpr auto scaled_and_biased = [](float x, float, float factor, float bias) {
    return factor * x + bias;
  };
  static constexpr auto second = [](float, float dy) { return dy; };

  Broadcast broadcast_;
  int32_t dtype_;
  bool trained_, biased_, fuses_relu_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "scale", "1.0").layer<Scale>().kernel<Scale, ScaleCpu>("cpu").table();
}
