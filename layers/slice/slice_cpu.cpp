// Slice on the cpu: a copy of each part, in every layout whose blocks are not divided.
#include <optional>

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
    const Extents extents = extents_of(input.shape);
    for (const SlicePart& part :
         slice_parts(binding.attributes, extents[axis], binding.output_count())) {
      Extents begin{}, step{1, 1, 1, 1};
      begin[axis] = part.start;
      step[axis] = part.step;
      const Shape& output = binding.output(parts_.size()).shape;
      parts_.emplace_back(input.layout, input.shape, begin, output, Extents{}, extents_of(output),
                          step);
      gradients_.push_back(parts_.back().reversed());
    }
    if (takes_steps(binding.attributes)) {
      all_.emplace(input.layout, input.shape, Extents{}, input.shape, Extents{}, extents);
    }
  }

  static LayoutOptions layouts(const Binding& binding) {
    if (takes_steps(binding.attributes) &&
        slice_axis(binding.attributes, binding.input(0).shape) == 1) {
      return any_layout(1);
    }
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
    if (all_) all_->clear(call, pass.input_gradient(0).data());
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
  std::optional<BoxCopy> all_;  // of an input of which some elements are in no output
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "slice", "1.0").layer<Slice>().kernel<Slice, SliceCpu>("cpu").table();
}
