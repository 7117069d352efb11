// The passes of max pooling by vectors of channels (max_pooling.h), for tensors whose layout has a
// few channels next to each other. Gradients are added in float32 and rounded once. The results do
// not depend on the number of threads.
#pragma once

#include <algorithm>
#include <memory>
#include <type_traits>

#include "layers/pooling/max_pooling.h"
#include "layers/pooling/pooling.h"
#include "plugins/cpu/fused_relu.h"
#include "plugins/cpu/layout.h"
#include "plugins/cpu/team.h"

namespace tandem::layers {

class VectorMaxPooling : public sdk::Needs {
 public:
  // Null for other poolings and layouts.
  static std::unique_ptr<VectorMaxPooling> make(const sdk::Binding& binding,
                                                const sdk::Call& call) {
    const tandem_tensor input = cpu::named_as(binding.input(0), binding.output(0));
    const PoolingSettings settings(binding.attributes, input.shape);
    const int64_t block = cpu::block_of(input.layout, input.shape.c);
    const Axes& kernel = settings.window.kernel;
    const bool suits =
        settings.maximum && block >= fewest_channels && kernel.h * kernel.w <= max_places;
    if (!suits) return nullptr;
    return std::unique_ptr<VectorMaxPooling>(
        new VectorMaxPooling(binding, settings.window, block, call));
  }

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    cpu::with_elements(dtype_, [&](auto element) { forward_of<decltype(element)>(call, pass); });
  }
  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    cpu::with_elements(dtype_, [&](auto element) { backward_of<decltype(element)>(call, pass); });
  }

 private:
  VectorMaxPooling(const sdk::Binding& binding, const Window& w, int64_t block,
                   const sdk::Call& call)
      : kernels_(max_pooling_kernels()),
        dtype_(binding.input(0).dtype),
        follows_relu_(binding.follows_relu()),
        slots_(std::max(1, call.threads)) {
    const sdk::Shape &in = binding.input(0).shape, &out = binding.output(0).shape;
    pooling_ = {{in.h, out.h, w.kernel.h, w.stride.h, w.pad.h},
                {in.w, out.w, w.kernel.w, w.stride.w, w.pad.w},
                block};
    planes_ = in.n * in.c / block;
    if (binding.has(TANDEM_WANTS_BACKWARD_DATA)) {
      saved_bytes = sdk::count(out);
      if (dtype_ != TANDEM_FLOAT32) scratch_bytes = slots_ * line() * sizeof(float);
    }
    algorithm = sdk::text("vectors of channels, ", kernels_.instructions);
  }
  [[nodiscard]] int64_t input_plane() const {
    return pooling_.h.input * pooling_.w.input * pooling_.block;
  }
  [[nodiscard]] int64_t output_plane() const {
    return pooling_.h.output * pooling_.w.output * pooling_.block;
  }
  [[nodiscard]] int64_t line() const { return pooling_.w.input * pooling_.block; }
  [[nodiscard]] const MaxPoolingPasses<float>& passes(float) const { return kernels_.float32; }
  [[nodiscard]] const MaxPoolingPasses<cpu::bfloat16>& passes(cpu::bfloat16) const {
    return kernels_.bfloat16;
  }

  template <class T>
  void forward_of(const sdk::Call& call, const sdk::Pass& pass) const {
    const T* x = pass.input<T>(0);
    T* y = pass.output<T>(0);
    auto* places = saved_bytes > 0 ? pass.saved<uint8_t>() : nullptr;
    const int64_t from = input_plane(), to = output_plane(), rows = pooling_.h.output;
    cpu::for_items(call.threads, planes_ * rows, to / rows, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t plane = i / rows;
        passes(T{}).forward(pooling_, i % rows, x + plane * from, y + plane * to,
                            places == nullptr ? nullptr : places + plane * to);
      }
    });
  }

  template <class T>
  void backward_of(const sdk::Call& call, const sdk::Pass& pass) const {
    const T* dy = pass.output_gradient<T>(0);
    T* dx = pass.input_gradient<T>(0);
    const auto* places = pass.saved<uint8_t>();
    const int64_t to = output_plane(), rows = pooling_.h.input, all = planes_ * rows;
    constexpr int64_t worth_a_thread = 16384;
    const int64_t slots = std::clamp<int64_t>(all * line() / worth_a_thread, 1,
                                              std::min(slots_, int64_t{call.threads}));
    cpu::for_parts(call.threads, slots, [&](int64_t slot) {
      for (int64_t i = slot * all / slots; i < (slot + 1) * all / slots; ++i) {
        const int64_t plane = i / rows;
        T* of_row = dx + i * line();
        const auto sum = [&](float* sums) {
          passes(T{}).backward(pooling_, i % rows, dy + plane * to, places + plane * to, sums);
        };
        if constexpr (std::is_same_v<T, float>) {
          sum(of_row);
        } else {
          float* sums = pass.scratch<float>() + slot * line();
          sum(sums);
          cpu::narrow(sums, of_row, line());
        }
        if (!follows_relu_) continue;
        const T* x = pass.input<T>(0);
        cpu::pass_through_relu(x + i * line(), of_row, line());
      }
    });
  }

  const MaxPoolingKernels& kernels_;
  int32_t dtype_;
  bool follows_relu_;
  int64_t slots_;  // threads at a time
  MaxPooling pooling_{};
  int64_t planes_ = 0;
};

}  // namespace tandem::layers
