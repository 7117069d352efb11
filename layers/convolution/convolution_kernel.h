// The shared part of Convolution and Deconvolution on the cpu: oneDNN's direct kernels, which need
// weights in their own format, while the host's are plain.
//   struct Primitives {
//     using Settings = ...;                                  from the layer's parameters
//     using Forward = ..., BackwardData = ..., BackwardWeights = ...;  of oneDNN
//     static constexpr auto algorithm = ...;
//     static constexpr bool takes_plain_images = ...;   NCHW input of few channels, blocked output
//     static dnnl::memory::format_tag plain(bool grouped);        the format of the host's weights
//   };
#pragma once

#include <string_view>

#include "layers/common/broadcast_cpu.h"
#include "layers/common/window.h"
#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/onednn.h"

namespace tandem::layers {

// The descriptors of one binding's tensors and window.
template <class Primitives>
struct ConvolutionDescription {
  explicit ConvolutionDescription(const sdk::Binding& binding)
      : settings(binding.attributes, binding.input(0).shape),
        input(cpu::descriptor(cpu::named_as(binding.input(0), binding.output(0)))),
        output(cpu::descriptor(cpu::named_as(binding.output(0), binding.input(0)))),
        plain_input(cpu::descriptor(in_plain(binding.input(0)))),
        plain_output(cpu::descriptor(in_plain(binding.output(0)))) {
    const int64_t inputs = binding.input(0).shape.c, group = settings.group;
    const auto float32 = dnnl::memory::data_type::f32;
    const Axes& kernel = settings.window.kernel;
    dnnl::memory::dims extents{settings.outputs, inputs, kernel.h, kernel.w};
    if (group > 1) extents = {group, settings.outputs / group, inputs / group, kernel.h, kernel.w};
    plain_weight = {extents, float32, Primitives::plain(group > 1)};
    any_weight = {extents, cpu::type_of(binding.input(0).dtype), dnnl::memory::format_tag::any};
    any_weight_gradient = {extents, float32, dnnl::memory::format_tag::any};
    is_depthwise = group > 1 && group == inputs && group == settings.outputs;
    if (settings.bias) bias = cpu::vector_descriptor(settings.outputs);
    const auto& window = settings.window;
    stride = {window.stride.h, window.stride.w};
    pad = {window.pad.h, window.pad.w};
    dilation = {window.dilation.h - 1, window.dilation.w - 1};
  }

  typename Primitives::Settings settings;
  dnnl::memory::desc input, output, plain_input, plain_output;
  dnnl::memory::desc plain_weight, any_weight, any_weight_gradient, bias;
  dnnl::memory::dims stride, pad, dilation;
  bool is_depthwise;

 private:
  static tandem_tensor in_plain(tandem_tensor tensor) {
    tensor.layout = TANDEM_NCHW;
    return tensor;
  }
};

template <class Primitives>
class ConvolutionKernel : public sdk::Needs {
  using ForwardDescriptor = cpu::DescriptorOf<typename Primitives::Forward>;

 public:
  ConvolutionKernel(const sdk::Binding& binding, const sdk::Call&)
      : output_dtype_(binding.output(0).dtype),
        per_channel_(binding.output(0), CoveredAxes{.first = 1, .count = 1}) {
    cpu::require_computable(binding.input(0).dtype);
    const ConvolutionDescription<Primitives> d(binding);
    const auto kind =
        binding.training() ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const auto describe = [&](const dnnl::memory::desc& input, const dnnl::memory::desc& output) {
      return cpu::describe<typename Primitives::Forward>({engine_}, kind, Primitives::algorithm,
                                                         input, d.any_weight, d.bias, output,
                                                         d.stride, d.dilation, d.pad, d.pad);
    };
    const ForwardDescriptor hint = describe(d.input, d.output);
    prepare_forward(d, choose(d, describe));
    if (binding.has(TANDEM_WANTS_BACKWARD_DATA)) prepare_backward_data(d, hint);
    if (binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS)) prepare_backward_weights(d, hint);
  }

  static constexpr uint32_t dtypes = cpu::float32_and_bfloat16;
  static sdk::LayoutOptions layouts(const sdk::Binding& binding);
  // The bytes that a machine can move in the time of the binding's passes: about one byte in the
  // time of six operations.
  static double direct_bytes(const sdk::Binding& binding);

  // oneDNN's name of what computes a pass; empty if the binding does not want it.
  [[nodiscard]] const std::string& forward_name() const { return forward_.name(); }
  [[nodiscard]] const std::string& backward_data_name() const { return backward_data_.name(); }
  [[nodiscard]] const std::string& backward_weights_name() const {
    return backward_weights_.name();
  }

  void forward(const sdk::Call&, const sdk::Pass& pass) {
    auto* scratch = pass.scratch<std::byte>();
    const void* weight = forward_weight_.fetch(scratch, pass.weight(0));
    const void* input = input_.fetch(scratch, pass.raw.inputs[0]);
    forward_.run(scratch, {{DNNL_ARG_SRC, input},
                           {DNNL_ARG_WEIGHTS, weight},
                           {DNNL_ARG_BIAS, bias_ ? pass.weight(1).data() : nullptr},
                           {DNNL_ARG_DST, output_.target(scratch, pass.raw.outputs[0])}});
    output_.store(scratch, pass.raw.outputs[0]);
  }

  void backward_data(const sdk::Call&, const sdk::Pass& pass) {
    auto* scratch = pass.scratch<std::byte>();
    const void* weight = backward_weight_.fetch(scratch, pass.weight(0));
    const void* gradient = data_output_gradient_.fetch(scratch, pass.raw.output_gradients[0]);
    void* result = pass.raw.input_gradients[0];
    backward_data_.run(scratch, {{DNNL_ARG_DIFF_DST, gradient},
                                 {DNNL_ARG_WEIGHTS, weight},
                                 {DNNL_ARG_DIFF_SRC, input_gradient_.target(scratch, result)}});
    input_gradient_.store(scratch, result);
  }

  void backward_weights(const sdk::Call& call, const sdk::Pass& pass) {
    auto* scratch = pass.scratch<std::byte>();
    const bool add = pass.accumulate();
    const bool in_place = !add && !store_;
    void* weight = in_place ? static_cast<void*>(pass.weight_gradient(0)) : scratch + offset_;
    const void* input = weights_input_.fetch(scratch, pass.raw.inputs[0]);
    const void* gradient = weights_output_gradient_.fetch(scratch, pass.raw.output_gradients[0]);
    backward_weights_.run(
        scratch,
        {{DNNL_ARG_SRC, input}, {DNNL_ARG_DIFF_DST, gradient}, {DNNL_ARG_DIFF_WEIGHTS, weight}});
    if (!in_place) {
      (add ? add_ : store_)
          .run(scratch, {{DNNL_ARG_FROM, weight}, {DNNL_ARG_TO, pass.weight_gradient(0)}});
    }
    if (bias_) sum_bias_gradient(call, pass, scratch);
  }

 private:
  // A tensor in the format of a primitive: reordered, and rounded to its dtype, in scratch memory,
  // unless it has that format.
  struct Fetched {
    Fetched() = default;
    Fetched(const dnnl::engine& engine, const dnnl::memory::desc& given,
            const dnnl::memory::desc& wanted, cpu::ScratchPlan& plan) {
      if (given == wanted) return;
      offset = plan.reserve(static_cast<int64_t>(wanted.get_size()));
      reorder = cpu::reorder_operation(engine, given, wanted, false, plan);
    }
    const void* fetch(std::byte* scratch, const void* tensor) {
      if (!reorder) return tensor;
      reorder.run(scratch, {{DNNL_ARG_FROM, tensor}, {DNNL_ARG_TO, scratch + offset}});
      return scratch + offset;
    }
    int64_t offset = 0;
    cpu::Operation reorder;
  };
  // The reverse: a primitive's result, made in scratch memory unless its format is the given one.
  struct Stored {
    Stored() = default;
    Stored(const dnnl::engine& engine, const dnnl::memory::desc& made,
           const dnnl::memory::desc& given, cpu::ScratchPlan& plan) {
      if (made == given) return;
      offset = plan.reserve(static_cast<int64_t>(made.get_size()));
      reorder = cpu::reorder_operation(engine, made, given, false, plan);
    }
    void* target(std::byte* scratch, void* tensor) const {
      return reorder ? scratch + offset : tensor;
    }
    void store(std::byte* scratch, void* tensor) {
      if (reorder) reorder.run(scratch, {{DNNL_ARG_FROM, scratch + offset}, {DNNL_ARG_TO, tensor}});
    }
    int64_t offset = 0;
    cpu::Operation reorder;
  };

  // What describe(input, output) makes for the given tensors. Without a kernel for them oneDNN
  // takes reference code, which may take a hundred times as long as reorders and products of plain
  // matrices; then for plain tensors.
  // Nor does it always take its kernels for depthwise convolutions (_dw): for their input gradient
  // in bfloat16 with a stride 3.7 takes others, which take over twenty times as long.
  template <class Describe>
  static auto choose(const ConvolutionDescription<Primitives>& d, const Describe& describe) {
    auto given = describe(d.input, d.output);
    if (d.is_depthwise && !is_named(given, "_dw")) {
      auto other = describe(d.input, d.output);  // a copy would have the same state
      while (cpu::take_next_kernel(other)) {
        if (is_named(other, "_dw")) return other;
      }
    }
    if (!is_named(given, "ref:any")) return given;
    const auto plain = describe(d.plain_input, d.plain_output);
    return is_named(plain, "ref:any") ? given : plain;
  }
  static bool is_named(const dnnl::primitive_desc_base& chosen, std::string_view part) {
    return std::string_view(chosen.impl_info_str()).find(part) != std::string_view::npos;
  }

  // Not oneDNN's, whose sums of 1x1 convolutions lose digits: up to ten times the error.
  void sum_bias_gradient(const sdk::Call& call, const sdk::Pass& pass, std::byte* scratch) const {
    cpu::with_elements(output_dtype_, [&](auto element) {
      using T = decltype(element);
      const auto* gradient = static_cast<const T*>(pass.raw.output_gradients[0]);
      sum_values(
          call.threads, per_channel_, gradient, gradient, [](float dy, float) { return dy; },
          reinterpret_cast<double*>(scratch + bias_offset_), pass.weight_gradient(1).data(),
          pass.accumulate());
    });
  }

  void prepare_forward(const ConvolutionDescription<Primitives>& d,
                       const ForwardDescriptor& chosen) {
    cpu::ScratchPlan plan;
    bias_ = d.settings.bias;
    forward_weight_ = {engine_, d.plain_weight, chosen.weights_desc(), plan};
    input_ = {engine_, d.input, chosen.src_desc(), plan};
    output_ = {engine_, chosen.dst_desc(), d.output, plan};
    forward_ =
        bias_ ? cpu::Operation(chosen, typename Primitives::Forward(chosen),
                               {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST}, plan)
              : cpu::Operation(chosen, typename Primitives::Forward(chosen),
                               {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}, plan);
    report("forward ", forward_, plan);
  }

  void prepare_backward_data(const ConvolutionDescription<Primitives>& d,
                             const ForwardDescriptor& hint) {
    cpu::ScratchPlan plan;
    const auto chosen =
        choose(d, [&](const dnnl::memory::desc& input, const dnnl::memory::desc& output) {
          return cpu::describe_backward<typename Primitives::BackwardData>(
              {engine_}, hint, Primitives::algorithm, input, d.any_weight, output, d.stride,
              d.dilation, d.pad, d.pad);
        });
    backward_weight_ = {engine_, d.plain_weight, chosen.weights_desc(), plan};
    data_output_gradient_ = {engine_, d.output, chosen.diff_dst_desc(), plan};
    input_gradient_ = {engine_, chosen.diff_src_desc(), d.input, plan};
    backward_data_ = cpu::Operation(chosen, typename Primitives::BackwardData(chosen),
                                    {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC}, plan);
    report(", backward data ", backward_data_, plan);
  }

  void prepare_backward_weights(const ConvolutionDescription<Primitives>& d,
                                const ForwardDescriptor& hint) {
    cpu::ScratchPlan plan;
    const auto chosen =
        choose(d, [&](const dnnl::memory::desc& input, const dnnl::memory::desc& output) {
          return cpu::describe_backward<typename Primitives::BackwardWeights>(
              {engine_}, hint, Primitives::algorithm, input, d.any_weight_gradient,
              dnnl::memory::desc(), output, d.stride, d.dilation, d.pad, d.pad);
        });
    weights_input_ = {engine_, d.input, chosen.src_desc(), plan};
    weights_output_gradient_ = {engine_, d.output, chosen.diff_dst_desc(), plan};
    const dnnl::memory::desc made = chosen.diff_weights_desc();
    const typename Primitives::BackwardWeights primitive(chosen);
    backward_weights_ = cpu::Operation(
        chosen, primitive, {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS}, plan);
    offset_ = plan.reserve(static_cast<int64_t>(made.get_size()));
    if (bias_) bias_offset_ = plan.reserve(sum_scratch_bytes(per_channel_));
    if (made != d.plain_weight)
      store_ = cpu::reorder_operation(engine_, made, d.plain_weight, false, plan);
    add_ = cpu::reorder_operation(engine_, made, d.plain_weight, true, plan);
    report(", backward weights ", backward_weights_, plan);
  }

  void report(const char* pass, const cpu::Operation& operation, const cpu::ScratchPlan& plan) {
    scratch_bytes = std::max(scratch_bytes, plan.bytes());
    algorithm += pass + operation.name();
  }

  dnnl::engine engine_ = cpu::cpu_engine();
  bool bias_ = false;
  int32_t output_dtype_;
  Broadcast per_channel_;  // of the output
  Fetched forward_weight_, input_;
  Stored output_;
  Fetched backward_weight_, data_output_gradient_;
  Stored input_gradient_;
  Fetched weights_input_, weights_output_gradient_;
  cpu::Operation forward_, backward_data_, backward_weights_;
  // From oneDNN's format of the weight gradient to plain.
  cpu::Operation store_, add_;
  int64_t offset_ = 0, bias_offset_ = 0;
};

template <class Primitives>
double ConvolutionKernel<Primitives>::direct_bytes(const sdk::Binding& binding) {
  const sdk::Shape& input = binding.input(0).shape;
  const typename Primitives::Settings settings(binding.attributes, input);
  const double passes = 1.0 + (binding.has(TANDEM_WANTS_BACKWARD_DATA) ? 1 : 0) +
                        (binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS) ? 1 : 0);
  return passes * settings.operations(input) / 6;
}

template <class Primitives>
sdk::LayoutOptions ConvolutionKernel<Primitives>::layouts(const sdk::Binding& binding) {
  const sdk::Shape& input = binding.input(0).shape;
  const typename Primitives::Settings settings(binding.attributes, input);
  const int64_t inputs = input.c, outputs = settings.outputs, group = settings.group;
  const int32_t dtype = binding.input(0).dtype, blocked = cpu::blocked_layout(dtype);
  const int64_t block = cpu::block_of(blocked, 0);
  // With one channel per group, blocks hold groups, for which oneDNN has special kernels.
  const bool depthwise = group > 1 && group == inputs && group == outputs;
  const bool blocks_out = (depthwise ? outputs : outputs / group) % block == 0;
  const bool blocks_in = (depthwise ? inputs : inputs / group) % block == 0;
  // Without AVX2 most of oneDNN's direct kernels support only the forward pass, and its reference
  // kernels for the others are slow.
  const bool backward =
      binding.has(TANDEM_WANTS_BACKWARD_DATA) || binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS);
  const bool direct =
      !backward || depthwise || dtype == TANDEM_BFLOAT16 || cpu::may_use(dnnl::cpu_isa::avx2);
  sdk::LayoutOptions options;
  if (direct && blocks_in && blocks_out) options.push_back({blocked, blocked, 0});
  if (direct && inputs <= 3 && blocks_out && Primitives::takes_plain_images) {
    options.push_back({TANDEM_NCHW, blocked, 0});
  }
  // Measured: NHWC takes a tenth longer. Plain NCHW, which is a matrix product after a copy, takes
  // from a fifth longer (AVX2) to twice as long (AVX-512).
  const double product = blocked == TANDEM_NCHW16C ? 2 : 0.5;
  const double bytes = direct_bytes(binding);
  double slower = options.empty() ? 0 : 0.1;
  if (cpu::multiplies_tiles(dtype) && !depthwise) {
    // Of the time that vectors take, tiles take a half to a tenth.
    for (tandem_layout_option& option : options) option.extra_bytes = 0.9 * bytes;
    slower = 0;
  }
  options.push_back({TANDEM_NHWC, TANDEM_NHWC, slower * bytes});
  options.push_back({TANDEM_NCHW, TANDEM_NCHW, product * bytes});
  return options;
}

}  // namespace tandem::layers
