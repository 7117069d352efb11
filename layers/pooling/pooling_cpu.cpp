// Pooling on the cpu: maxima by vectors of channels, everything else by oneDNN, with a correction
// where Caffe differs: a window that extends beyond the padding, because extents are rounded up,
// averages over fewer elements. Where oneDNN has only reference code, by plain loops.
#include "layers/pooling/pooling.h"

#include "layers/pooling/plain_pooling.h"
#include "layers/pooling/vector_max_pooling.h"
#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/fused_relu.h"
#include "plugins/cpu/onednn.h"
#include "plugins/cpu/team.h"
#include "plugins/cpu/vector.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::cpu;
using dnnl::memory;
using dnnl::pooling_backward;
using dnnl::pooling_forward;
using tandem::layers::PlainPooling;
using tandem::layers::Pooling;
using tandem::layers::PoolingSettings;
using tandem::layers::VectorMaxPooling;

// kernel / length for every window of an axis, where `length` is that of its part in the padded
// image.
std::vector<float> stick_out_factors(int64_t windows, int64_t extent, int64_t kernel,
                                     int64_t stride, int64_t pad) {
  std::vector<float> factors;
  for (int64_t i = 0; i < windows; ++i) {
    const int64_t begin = i * stride - pad;
    const int64_t length = std::min(begin + kernel, extent + pad) - begin;
    factors.push_back(static_cast<float>(kernel) / static_cast<float>(length));
  }
  return factors;
}

// Whether one of the elements is NaN.
TANDEM_CPU_VECTOR bool holds_nan(const float* values, int64_t count) {
  int32_t found = 0;
  for (int64_t i = 0; i < count; ++i) found |= values[i] != values[i] ? 1 : 0;
  return found != 0;
}
TANDEM_CPU_VECTOR bool holds_nan(const bfloat16* values, int64_t count) {
  int32_t found = 0;
  for (int64_t i = 0; i < count; ++i) found |= (values[i].bits & 0x7fff) > 0x7f80 ? 1 : 0;
  return found != 0;
}

class PoolingCpu : public Needs {
 public:
  PoolingCpu(const Binding& binding, const Call& call)
      : settings_(binding.attributes, binding.input(0).shape),
        input_(named_as(binding.input(0), binding.output(0))),
        output_(named_as(binding.output(0), binding.input(0))),
        follows_relu_(binding.follows_relu()) {
    require_computable(binding.input(0).dtype);
    vectors_ = VectorMaxPooling::make(binding, call);
    if (vectors_ != nullptr) {
      static_cast<Needs&>(*this) = static_cast<const Needs&>(*vectors_);
      return;
    }
    plain_ = PlainPooling::make(binding);
    if (plain_ != nullptr) {
      static_cast<Needs&>(*this) = *plain_;
      return;
    }
    const Shape& in = binding.input(0).shape;
    const Shape& out = binding.output(0).shape;
    const auto& w = settings_.window;
    if (!settings_.maximum && settings_.counts_padding) {
      rows_ = stick_out_factors(out.h, in.h, w.kernel.h, w.stride.h, w.pad.h);
      columns_ = stick_out_factors(out.w, in.w, w.kernel.w, w.stride.w, w.pad.w);
    }
    prepare(binding, descriptor(input_));
  }

  static constexpr uint32_t dtypes = float32_and_bfloat16;
  static constexpr uint32_t gradients_before = relu_only;
  static LayoutOptions layouts(const Binding& binding);

  void forward(const Call& call, const Pass& pass) {
    if (vectors_ != nullptr) return vectors_->forward(call, pass);
    if (plain_ != nullptr) return plain_->forward(call, pass);
    forward_.run(pass.scratch<std::byte>(), {{DNNL_ARG_SRC, pass.raw.inputs[0]},
                                             {DNNL_ARG_DST, pass.raw.outputs[0]},
                                             {DNNL_ARG_WORKSPACE, pass.saved()}});
    if (sticks_out()) scale(call, pass.raw.outputs[0], pass.raw.outputs[0]);
    if (settings_.maximum) {
      with_elements(input_.dtype,
                    [&](auto element) { pass_nan_on<decltype(element)>(call, pass); });
    }
  }

  void backward_data(const Call& call, const Pass& pass) {
    if (vectors_ != nullptr) return vectors_->backward_data(call, pass);
    if (plain_ != nullptr) return plain_->backward_data(call, pass);
    auto* scratch = pass.scratch<std::byte>();
    const void* gradient = pass.raw.output_gradients[0];
    if (sticks_out()) {
      scale(call, gradient, scratch + offset_);
      gradient = scratch + offset_;
    }
    backward_.run(scratch, {{DNNL_ARG_DIFF_DST, gradient},
                            {DNNL_ARG_DIFF_SRC, pass.raw.input_gradients[0]},
                            {DNNL_ARG_WORKSPACE, pass.saved()}});
    if (!follows_relu_) return;
    pass_through_relu(call.threads, input_.dtype, pass.raw.inputs[0], pass.raw.input_gradients[0],
                      count(input_.shape));
  }

 private:
  void prepare(const Binding& binding, const memory::desc& input);
  [[nodiscard]] bool sticks_out() const {
    return !rows_.empty() && (rows_.back() != 1 || columns_.back() != 1);
  }
  void scale(const Call& call, const void* source, void* target) const {
    with_elements(output_.dtype, [&](auto element) {
      using T = decltype(element);
      scale_of(call, static_cast<const T*>(source), static_cast<T*>(target));
    });
  }
  template <class T>
  void scale_of(const Call& call, const T* source, T* target) const;
  template <class T>
  void pass_nan_on(const Call& call, const Pass& pass) const;
  template <class T>
  void pass_nan_of(const T* x, T* y) const;

  std::unique_ptr<VectorMaxPooling> vectors_;
  std::unique_ptr<PlainPooling> plain_;
  dnnl::engine engine_ = cpu_engine();
  PoolingSettings settings_;
  tandem_tensor input_, output_;
  std::vector<float> rows_,
      columns_;  // AVE with padding that counts: the factors of output rows and columns
  int64_t offset_ = 0;
  bool follows_relu_;
  Operation forward_, backward_;
};

void PoolingCpu::prepare(const Binding& binding, const memory::desc& input) {
  const Shape& in = binding.input(0).shape;
  const Shape& out = binding.output(0).shape;
  const auto& w = settings_.window;
  const auto end_of = [](int64_t windows, int64_t extent, int64_t size, int64_t step, int64_t pad) {
    return std::max<int64_t>(0, (windows - 1) * step + size - extent - pad);
  };
  const PoolingWindows windows{{w.stride.h, w.stride.w},
                               {w.kernel.h, w.kernel.w},
                               {w.pad.h, w.pad.w},
                               {end_of(out.h, in.h, w.kernel.h, w.stride.h, w.pad.h),
                                end_of(out.w, in.w, w.kernel.w, w.stride.w, w.pad.w)}};
  const auto method = settings_.maximum          ? dnnl::algorithm::pooling_max
                      : settings_.counts_padding ? dnnl::algorithm::pooling_avg_include_padding
                                                 : dnnl::algorithm::pooling_avg_exclude_padding;
  const bool backward = binding.has(TANDEM_WANTS_BACKWARD_DATA);
  const auto kind =
      backward ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const memory::desc output = descriptor(output_);

  ScratchPlan plan;
  const auto forward = describe_pooling({engine_}, kind, method, input, output, windows);
  const bool workspace = backward && settings_.maximum;
  forward_ = workspace
                 ? Operation(forward, pooling_forward(forward),
                             {DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WORKSPACE}, plan)
                 : Operation(forward, pooling_forward(forward), {DNNL_ARG_SRC, DNNL_ARG_DST}, plan);
  algorithm = "forward " + forward_.name();
  if (backward) {
    if (workspace) saved_bytes = static_cast<int64_t>(forward.workspace_desc().get_size());
    const auto chosen =
        describe_pooling_backward({engine_}, forward, method, input, output, windows);
    backward_ = workspace
                    ? Operation(chosen, pooling_backward(chosen),
                                {DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC, DNNL_ARG_WORKSPACE}, plan)
                    : Operation(chosen, pooling_backward(chosen),
                                {DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC}, plan);
    if (sticks_out()) offset_ = plan.reserve(static_cast<int64_t>(output.get_size()));
    algorithm += ", backward data " + backward_.name();
  }
  scratch_bytes = plan.bytes();
}

template <class T>
void PoolingCpu::scale_of(const Call& call, const T* source, T* target) const {
  const Shape& s = output_.shape;
  const int64_t block = block_of(output_.layout, s.c);
  const int64_t lines = s.n * (s.c / block) * s.h;  // of w pixels of `block` channels each
  for_ranges(call.threads, lines, [=, this](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      for (int64_t w = 0; w < s.w; ++w) {
        const float factor =
            rows_[static_cast<size_t>(line % s.h)] * columns_[static_cast<size_t>(w)];
        const int64_t first = (line * s.w + w) * block;
#pragma omp simd  // target may be source
        for (int64_t i = first; i < first + block; ++i) store(factor * load(source[i]), target[i]);
      }
    }
  });
}

// oneDNN's maximum ignores a NaN, so that training would go on with other weights. Here it makes
// every maximum whose window contains it NaN. Without one, the input is only read once more.
template <class T>
void PoolingCpu::pass_nan_on(const Call& call, const Pass& pass) const {
  const int64_t block = block_of(input_.layout, input_.shape.c);
  const int64_t from = input_.shape.h * input_.shape.w * block,
                to = output_.shape.h * output_.shape.w * block;
  const T* x = pass.input<T>(0);
  T* y = pass.output<T>(0);
  for_items(call.threads, count(input_.shape) / from, from, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      if (holds_nan(x + plane * from, from)) pass_nan_of(x + plane * from, y + plane * to);
    }
  });
}

// For the pixels of a channel or block of channels.
template <class T>
void PoolingCpu::pass_nan_of(const T* x, T* y) const {
  struct Range {
    int64_t begin, end;
  };
  // The windows of an axis that contain the pixel.
  const auto windows_of = [](int64_t pixel, int64_t kernel, int64_t stride, int64_t pad,
                             int64_t windows) {
    const int64_t place = pixel + pad;
    return Range{place < kernel ? 0 : (place - kernel) / stride + 1,
                 std::min(windows, place / stride + 1)};
  };
  const auto& w = settings_.window;
  const Shape &in = input_.shape, &out = output_.shape;
  const int64_t block = block_of(input_.layout, in.c);
  for (int64_t i = 0; i < in.h * in.w * block; ++i) {
    if (!holds_nan(x + i, 1)) continue;
    const Range rows = windows_of(i / block / in.w, w.kernel.h, w.stride.h, w.pad.h, out.h);
    const Range columns = windows_of(i / block % in.w, w.kernel.w, w.stride.w, w.pad.w, out.w);
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      for (int64_t k = columns.begin; k < columns.end; ++k) {
        y[(h * out.w + k) * block + i % block] = x[i];
      }
    }
  }
}

LayoutOptions PoolingCpu::layouts(const Binding& binding) {
  const Shape& shape = binding.input(0).shape;
  const int32_t blocked = blocked_layout(binding.input(0).dtype);
  LayoutOptions options;
  if (shape.c % block_of(blocked, 0) == 0) options.push_back({blocked, blocked, 0});
  options.push_back({TANDEM_NHWC, TANDEM_NHWC, 0});
  // Measured: plain NCHW takes longer by the time of moving the tensor thirty times.
  options.push_back({TANDEM_NCHW, TANDEM_NCHW, 30.0 * 8 * static_cast<double>(count(shape))});
  return options;
}

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "pooling", "1.0").layer<Pooling>().kernel<Pooling, PoolingCpu>("cpu").table();
}
