// Crop on the cpu: one copy. A blocked layout is possible if whole blocks of channels are cut.
#include "layers/common/box_copy.h"
#include "layers/crop/crop.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;

class CropCpu {
 public:
  CropCpu(const Binding& binding, const Call&)
      : elements_(count(binding.input(0).shape)),
        box_(box(binding)),
        part_(binding.input(0).layout, binding.input(0).shape, box_.begin, binding.output(0).shape,
              {}, box_.extent),
        gradient_(part_.reversed()) {}

  static LayoutOptions layouts(const Binding& binding) {
    const CropBox box = CropCpu::box(binding);
    return layouts_cut_at({binding.input(0).shape.c, box.begin[1], box.extent[1]});
  }

  void forward(const Call& call, const Pass& pass) const {
    part_.copy(call, pass.input(0).data(), pass.output(0).data());
  }
  void backward_data(const Call& call, const Pass& pass) const {
    float* dx = pass.input_gradient(0);
    tandem::cpu::for_ranges(call.threads, elements_, [dx](int64_t begin, int64_t end) {
      std::fill(dx + begin, dx + end, 0.0F);
    });
    gradient_.copy(call, pass.output_gradient(0).data(), dx);
  }

 private:
  static CropBox box(const Binding& binding) {
    return {binding.attributes, binding.input(0).shape, binding.input(1).shape};
  }

  int64_t elements_;
  CropBox box_;
  BoxCopy part_, gradient_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "crop", "1.0").layer<Crop>().kernel<Crop, CropCpu>("cpu").table();
}
