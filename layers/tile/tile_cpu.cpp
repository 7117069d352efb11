// Tile on the cpu: a copy for each tile.
#include "layers/common/box_copy.h"
#include "layers/tile/tile.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;

class TileCpu {
 public:
  TileCpu(const Binding& binding, const Call&) {
    const Shape& input = binding.input(0).shape;
    const tandem_tensor& output = binding.output(0);
    const size_t axis = sample_axis(binding.attributes.integer("axis"), input);
    Extents begin{};
    for (; begin[axis] < extents_of(output.shape)[axis]; begin[axis] += extents_of(input)[axis]) {
      tiles_.emplace_back(output.layout, input, Extents{}, output.shape, begin, extents_of(input));
      gradients_.push_back(tiles_.back().reversed());
    }
  }

  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }

  void forward(const Call& call, const Pass& pass) const {
    for (const BoxCopy& tile : tiles_) tile.copy(call, pass.input(0).data(), pass.output(0).data());
  }
  void backward_data(const Call& call, const Pass& pass) const {
    gradients_[0].copy(call, pass.output_gradient(0).data(), pass.input_gradient(0).data());
    for (size_t i = 1; i < gradients_.size(); ++i) {
      gradients_[i].add(call, pass.output_gradient(0).data(), pass.input_gradient(0).data());
    }
  }

 private:
  std::vector<BoxCopy> tiles_, gradients_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "tile", "1.0").layer<Tile>().kernel<Tile, TileCpu>("cpu").table();
}
