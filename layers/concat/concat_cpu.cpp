// Concat on the cpu: a copy of each input, in every layout whose blocks are not divided.
#include "layers/common/box_copy.h"
#include "layers/concat/concat.h"
#include "plugins/cpu/bfloat16.h"

namespace {

using namespace tandem::cpu;
using namespace tandem::sdk;
using namespace tandem::layers;

class ConcatCpu {
 public:
  ConcatCpu(const Binding& binding, const Call&) : dtype_(binding.output(0).dtype) {
    const tandem_tensor& output = binding.output(0);
    const size_t axis = concat_axis(binding.attributes, binding.input(0).shape);
    Extents begin{};
    for (size_t i = 0; i < binding.input_count(); ++i) {
      const Shape& input = binding.input(i).shape;
      parts_.emplace_back(output.layout, input, Extents{}, output.shape, begin, extents_of(input));
      gradients_.push_back(parts_.back().reversed());
      begin[axis] += extents_of(input)[axis];
    }
  }

  static constexpr uint32_t dtypes = float32_and_bfloat16;

  static LayoutOptions layouts(const Binding& binding) {
    std::vector<int64_t> channels;
    for (size_t i = 0; i < binding.input_count(); ++i) {
      channels.push_back(binding.input(i).shape.c);
    }
    return layouts_cut_at(channels);
  }

  void forward(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      for (size_t i = 0; i < parts_.size(); ++i) {
        parts_[i].copy(call, pass.input<T>(i).data(), pass.output<T>(0).data());
      }
    });
  }
  void backward_data(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      for (size_t i = 0; i < gradients_.size(); ++i) {
        T* dx = pass.input_gradient<T>(i);
        if (dx != nullptr) gradients_[i].copy(call, pass.output_gradient<T>(0).data(), dx);
      }
    });
  }

 private:
  int32_t dtype_;
  std::vector<BoxCopy> parts_, gradients_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "concat", "1.0").layer<Concat>().kernel<Concat, ConcatCpu>("cpu").table();
}
