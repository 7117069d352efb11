// Slice on the cpu: a copy of each part, in every layout whose blocks are not divided.
#include "layers/common/box_copy.h"
#include "layers/slice/slice.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;

class SliceCpu {
 public:
  SliceCpu(const Binding& binding, const Call&) {
    const tandem_tensor& input = binding.input(0);
    const size_t axis = slice_axis(binding.attributes, input.shape);
    Extents begin{};
    for (size_t i = 0; i < binding.output_count(); ++i) {
      const Shape& output = binding.output(i).shape;
      parts_.emplace_back(input.layout, input.shape, begin, output, Extents{}, extents_of(output));
      gradients_.push_back(parts_.back().reversed());
      begin[axis] += extents_of(output)[axis];
    }
  }

  static LayoutOptions layouts(const Binding& binding) {
    std::vector<int64_t> channels;
    for (size_t i = 0; i < binding.output_count(); ++i) {
      channels.push_back(binding.output(i).shape.c);
    }
    return layouts_cut_at(channels);
  }

  void forward(const Call& call, const Pass& pass) const {
    for (size_t i = 0; i < parts_.size(); ++i)
      parts_[i].copy(call, pass.input(0).data(), pass.output(i).data());
  }
  void backward_data(const Call& call, const Pass& pass) const {
    for (size_t i = 0; i < gradients_.size(); ++i) {
      if (pass.output_gradient(i) == nullptr) {
        gradients_[i].clear(call, pass.input_gradient(0).data());
      } else {
        gradients_[i].copy(call, pass.output_gradient(i).data(), pass.input_gradient(0).data());
      }
    }
  }

 private:
  std::vector<BoxCopy> parts_, gradients_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "slice", "1.0").layer<Slice>().kernel<Slice, SliceCpu>("cpu").table();
}
