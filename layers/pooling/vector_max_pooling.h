// The passes of max pooling by vectors of channels (max_pooling.h), for float32 tensors whose
// layout has a few channels next to each other. The results do not depend on the number of threads.
#pragma once

#include <memory>

#include "layers/pooling/max_pooling.h"
#include "layers/pooling/pooling.h"
#include "plugins/cpu/fused_relu.h"
#include "plugins/cpu/layout.h"
#include "plugins/cpu/team.h"

namespace tandem::layers {

class VectorMaxPooling : public sdk::Needs {
 public:
  // Null for other poolings, dtypes and layouts.
  static std::unique_ptr<VectorMaxPooling> make(const sdk::Binding& binding) {
    const tandem_tensor input = cpu::named_as(binding.input(0), binding.output(0));
    const PoolingSettings settings(binding.attributes, input.shape);
    const int64_t block = cpu::block_of(input.layout, input.shape.c);
    const Axes& kernel = settings.window.kernel;
    const bool suits = settings.maximum && input.dtype == TANDEM_FLOAT32 &&
                       block >= fewest_channels && kernel.h * kernel.w <= most_places;
    if (!suits) return nullptr;
    return std::unique_ptr<VectorMaxPooling>(new VectorMaxPooling(binding, settings.window, block));
  }

  void forward(const sdk::Call& call, const sdk::Pass& pass) {
    const float* x = pass.input(0);
    float* y = pass.output(0);
    auto* places = saved_bytes > 0 ? pass.saved<uint8_t>() : nullptr;
    const int64_t from = input_plane(), to = output_plane();
    for_rows(call, pooling_.h.output, to, [&](int64_t plane, int64_t row) {
      kernels_.forward(pooling_, row, x + plane * from, y + plane * to,
                       places == nullptr ? nullptr : places + plane * to);
    });
  }

  void backward_data(const sdk::Call& call, const sdk::Pass& pass) {
    const float *dy = pass.output_gradient(0), *x = follows_relu_ ? pass.input(0).data() : nullptr;
    float* dx = pass.input_gradient(0);
    const auto* places = pass.saved<uint8_t>();
    const int64_t from = input_plane(), to = output_plane();
    for_rows(call, pooling_.h.input, from, [&](int64_t plane, int64_t row) {
      kernels_.backward(pooling_, row, dy + plane * to, places + plane * to, dx + plane * from);
      if (!follows_relu_) return;
      const int64_t line = pooling_.w.input * pooling_.block, first = plane * from + row * line;
      cpu::pass_through_relu(x + first, dx + first, line);
    });
  }

 private:
  VectorMaxPooling(const sdk::Binding& binding, const Window& w, int64_t block)
      : kernels_(max_pooling_kernels()), follows_relu_(binding.follows_relu()) {
    const sdk::Shape &in = binding.input(0).shape, &out = binding.output(0).shape;
    pooling_ = {{in.h, out.h, w.kernel.h, w.stride.h, w.pad.h},
                {in.w, out.w, w.kernel.w, w.stride.w, w.pad.w},
                block};
    planes_ = in.n * in.c / block;
    if (binding.has(TANDEM_WANTS_BACKWARD_DATA)) saved_bytes = sdk::count(out);
    algorithm = sdk::text("vectors of channels, ", kernels_.instructions);
  }
  [[nodiscard]] int64_t input_plane() const {
    return pooling_.h.input * pooling_.w.input * pooling_.block;
  }
  [[nodiscard]] int64_t output_plane() const {
    return pooling_.h.output * pooling_.w.output * pooling_.block;
  }
  // Calls body(plane, row) for all rows of all planes.
  template <class Body>
  void for_rows(const sdk::Call& call, int64_t rows, int64_t floats_of_plane, const Body& body) {
    cpu::for_items(call.threads, planes_ * rows, floats_of_plane / rows,
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) body(i / rows, i % rows);
                   });
  }

  const MaxPoolingKernels& kernels_;
  bool follows_relu_;
  MaxPooling pooling_{};
  int64_t planes_ = 0;
};

}  // namespace tandem::layers
