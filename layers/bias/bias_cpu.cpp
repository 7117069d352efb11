// Bias on the cpu: one pass over memory for each pass of the layer.
#include "layers/bias/bias.h"

#include "layers/common/broadcast_cpu.h"

namespace {

using namespace tandem::cpu;
using namespace tandem::sdk;
using namespace tandem::layers;

class BiasCpu : public Needs {
 public:
  BiasCpu(const Binding& binding, const Call&)
      : broadcast_(binding.input(0), axes_of(binding)),
        dtype_(binding.input(0).dtype),
        trained_(binding.input_count() == 1) {
    const bool sums =
        binding.has(trained_ ? TANDEM_WANTS_BACKWARD_WEIGHTS : TANDEM_WANTS_BACKWARD_DATA);
    if (sums) scratch_bytes = sum_scratch_bytes(broadcast_);
  }

  static constexpr uint32_t dtypes = float32_and_bfloat16;

  static LayoutOptions layouts(const Binding& binding) { return layouts_for(binding); }

  void forward(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      trained_ ? add<T>(call, pass, pass.weight(0).data())
               : add<T>(call, pass, pass.input<T>(1).data());
    });
  }

  void backward_data(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* dy = pass.output_gradient<T>(0);
      T* db = trained_ ? nullptr : pass.input_gradient<T>(1).data();
      if (db != nullptr && broadcast_.one_value_per_element()) {
        copy(call.threads, dy, db, broadcast_.elements());
      } else if (db != nullptr) {
        sum(call, pass, dy, db, false);
      }
      if (T* dx = pass.input_gradient<T>(0)) copy(call.threads, dy, dx, broadcast_.elements());
    });
  }

  void backward_weights(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) {
      sum(call, pass, pass.output_gradient<decltype(element)>(0).data(),
          pass.weight_gradient(0).data(), pass.accumulate());
    });
  }

 private:
  // V: trained values are float32, those of a second input have its type.
  template <class T, class V>
  void add(const Call& call, const Pass& pass, const V* b) const {
    const T* x = pass.input<T>(0);
    apply_values(call.threads, broadcast_, x, x, b, b, pass.output<T>(0).data(),
                 [](float value, float, float bias, float) { return value + bias; });
  }
  template <class T, class V>
  void sum(const Call& call, const Pass& pass, const T* dy, V* target, bool accumulate) const {
    sum_values(
        call.threads, broadcast_, dy, dy, [](float, float g) { return g; }, pass.scratch<double>(),
        target, accumulate);
  }

  Broadcast broadcast_;
  int32_t dtype_;
  bool trained_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "bias", "1.0").layer<Bias>().kernel<Bias, BiasCpu>("cpu").table();
}
