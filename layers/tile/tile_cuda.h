// Tile on NVIDIA GPUs: one thread per element of the output; backward, of the input.
#pragma once

#include "layers/common/box_cuda.h"
#include "layers/tile/tile.h"

namespace tandem::layers {

// The first tile as a box, and the distance from tile to tile.
struct TileGeometry {
  DeviceBox first;
  cuda::Divisor elements;
  int64_t tiles, step;
};

struct TileForward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t tile = cuda::quotient(i, geometry.elements);
    const BoxOffsets at = offsets_of(geometry.first, i - tile * geometry.elements);
    y[at.target + tile * geometry.step] = x[at.source];
  }
  TileGeometry geometry;
  const float* x;
  float* y;
};

struct TileBackward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const BoxOffsets at = offsets_of(geometry.first, i);
    float sum = dy[at.target];
    for (int64_t tile = 1; tile < geometry.tiles; ++tile) {
      sum += dy[at.target + tile * geometry.step];
    }
    dx[at.source] = sum;
  }
  TileGeometry geometry;
  const float* dy;
  float* dx;
};

class TileCuda {
 public:
  TileCuda(const sdk::Binding& binding, const sdk::Call&) : geometry_(geometry(binding)) {}

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::for_each(call, geometry_.elements * geometry_.tiles,
                   TileForward{geometry_, pass.input(0).get(), pass.output(0).get()});
  }
  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::for_each(
        call, geometry_.elements,
        TileBackward{geometry_, pass.output_gradient(0).get(), pass.input_gradient(0).get()});
  }

 private:
  static TileGeometry geometry(const sdk::Binding& binding) {
    const sdk::Shape& input = binding.input(0).shape;
    const tandem_tensor& output = binding.output(0);
    const size_t axis = sample_axis(binding.attributes.integer("axis"), input);
    const int64_t tiles = extents_of(output.shape)[axis] / extents_of(input)[axis];
    const auto box = [&](int64_t tile) {
      Extents begin{};
      begin[axis] = tile * extents_of(input)[axis];
      return Box(output.layout, input, {}, output.shape, begin, extents_of(input));
    };
    const int64_t step = tiles > 1 ? box(1).target_offset - box(0).target_offset : 0;
    return {DeviceBox(box(0)), sdk::count(input), tiles, step};
  }

  TileGeometry geometry_;
};

}  // namespace tandem::layers
