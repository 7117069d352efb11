// Convolution on the cpu: oneDNN's direct kernels, which want weights in a format of their own.
#include "layers/convolution/convolution.h"
#include "plugins/cpu/onednn.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::cpu;
using dnnl::convolution_backward_data;
using dnnl::convolution_backward_weights;
using dnnl::convolution_forward;
using dnnl::memory;
using tandem::layers::Convolution;
using tandem::layers::ConvolutionSettings;

constexpr auto direct = dnnl::algorithm::convolution_direct;

// The descriptors of one binding's tensors and window.
struct Description {
  explicit Description(const Binding& binding)
      : settings(binding.attributes, binding.input(0).shape),
        input(descriptor(named_as(binding.input(0), binding.output(0)))),
        output(descriptor(named_as(binding.output(0), binding.input(0)))) {
    const Shape shape = settings.weight_shape(binding.input(0).shape);
    const auto float32 = memory::data_type::f32;
    memory::dims extents{shape.n, shape.c, shape.h, shape.w};
    if (settings.group > 1) {
      extents = {settings.group, shape.n / settings.group, shape.c, shape.h, shape.w};
    }
    plain_weight = {extents, float32,
                    settings.group > 1 ? memory::format_tag::goihw : memory::format_tag::oihw};
    any_weight = {extents, float32, memory::format_tag::any};
    if (settings.bias) bias = vector_descriptor(shape.n);
    const auto& window = settings.window;
    stride = {window.stride.h, window.stride.w};
    pad = {window.pad.h, window.pad.w};
    dilation = {window.dilation.h - 1, window.dilation.w - 1};
  }

  ConvolutionSettings settings;
  memory::desc input, output, plain_weight, any_weight, bias;
  memory::dims stride, pad, dilation;
};

class ConvolutionCpu : public Needs {
 public:
  ConvolutionCpu(const Binding& binding, const Call&) {
    const Description d(binding);
    const auto kind =
        binding.training() ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const convolution_forward::primitive_desc hint(
        {kind, direct, d.input, d.any_weight, d.bias, d.output, d.stride, d.dilation, d.pad, d.pad},
        user_scratchpad(), engine_);
    prepare_forward(d, hint);
    if (binding.has(TANDEM_WANTS_BACKWARD_DATA)) prepare_backward_data(d, hint);
    if (binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS)) prepare_backward_weights(d, hint);
  }

  static LayoutOptions layouts(const Binding& binding);

  void forward(const Call&, const Pass& pass) {
    auto* scratch = pass.scratch<std::byte>();
    const void* weight = forward_weight_.fetch(scratch, pass.weight(0));
    forward_.run(scratch, {{DNNL_ARG_SRC, pass.input(0)},
                           {DNNL_ARG_WEIGHTS, weight},
                           {DNNL_ARG_BIAS, bias_ ? pass.weight(1) : nullptr},
                           {DNNL_ARG_DST, pass.output(0)}});
  }

  void backward_data(const Call&, const Pass& pass) {
    auto* scratch = pass.scratch<std::byte>();
    const void* weight = backward_weight_.fetch(scratch, pass.weight(0));
    backward_data_.run(scratch, {{DNNL_ARG_DIFF_DST, pass.output_gradient(0)},
                                 {DNNL_ARG_WEIGHTS, weight},
                                 {DNNL_ARG_DIFF_SRC, pass.input_gradient(0)}});
  }

  void backward_weights(const Call&, const Pass& pass) {
    auto* scratch = pass.scratch<std::byte>();
    const bool add = pass.accumulate();
    float* bias = bias_ ? pass.weight_gradient(1) : nullptr;
    auto* fresh_bias = reinterpret_cast<float*>(scratch + bias_place_);
    const bool in_place = !add && !store_;
    void* weight = in_place ? static_cast<void*>(pass.weight_gradient(0)) : scratch + place_;
    backward_weights_.run(scratch, {{DNNL_ARG_SRC, pass.input(0)},
                                    {DNNL_ARG_DIFF_DST, pass.output_gradient(0)},
                                    {DNNL_ARG_DIFF_WEIGHTS, weight},
                                    {DNNL_ARG_DIFF_BIAS, add ? fresh_bias : bias}});
    if (!in_place) {
      (add ? add_ : store_)
          .run(scratch, {{DNNL_ARG_FROM, weight}, {DNNL_ARG_TO, pass.weight_gradient(0)}});
    }
    if (bias_ && add) {
      for (int64_t i = 0; i < outputs_; ++i) bias[i] += fresh_bias[i];
    }
  }

 private:
  // Weights in the format that a primitive wants: reordered into scratch unless plain is right.
  struct FetchedWeight {
    FetchedWeight() = default;
    FetchedWeight(const dnnl::engine& engine, const memory::desc& plain, const memory::desc& wanted,
                  ScratchPlan& plan) {
      if (plain == wanted) return;
      place = plan.place(static_cast<int64_t>(wanted.get_size()));
      reorder = reorder_operation(engine, plain, wanted, false, plan);
    }
    const void* fetch(std::byte* scratch, const float* weight) {
      if (!reorder) return weight;
      reorder.run(scratch, {{DNNL_ARG_FROM, weight}, {DNNL_ARG_TO, scratch + place}});
      return scratch + place;
    }
    int64_t place = 0;
    Operation reorder;
  };

  void prepare_forward(const Description& d, const convolution_forward::primitive_desc& chosen) {
    ScratchPlan plan;
    bias_ = d.settings.bias;
    outputs_ = d.settings.outputs;
    forward_weight_ = {engine_, d.plain_weight, chosen.weights_desc(), plan};
    forward_ = bias_
                   ? Operation(chosen, convolution_forward(chosen),
                               {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST}, plan)
                   : Operation(chosen, convolution_forward(chosen),
                               {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}, plan);
    report("forward ", forward_, plan);
  }

  void prepare_backward_data(const Description& d,
                             const convolution_forward::primitive_desc& hint) {
    ScratchPlan plan;
    const convolution_backward_data::primitive_desc chosen(
        {direct, d.input, d.any_weight, d.output, d.stride, d.dilation, d.pad, d.pad},
        user_scratchpad(), engine_, hint);
    backward_weight_ = {engine_, d.plain_weight, chosen.weights_desc(), plan};
    backward_data_ = Operation(chosen, convolution_backward_data(chosen),
                               {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC}, plan);
    report(", backward data ", backward_data_, plan);
  }

  void prepare_backward_weights(const Description& d,
                                const convolution_forward::primitive_desc& hint) {
    ScratchPlan plan;
    const convolution_backward_weights::primitive_desc chosen(
        {direct, d.input, d.any_weight, d.bias, d.output, d.stride, d.dilation, d.pad, d.pad},
        user_scratchpad(), engine_, hint);
    const memory::desc made = chosen.diff_weights_desc();
    const convolution_backward_weights primitive(chosen);
    const auto source = DNNL_ARG_SRC, gradient = DNNL_ARG_DIFF_DST, weight = DNNL_ARG_DIFF_WEIGHTS;
    backward_weights_ =
        bias_ ? Operation(chosen, primitive, {source, gradient, weight, DNNL_ARG_DIFF_BIAS}, plan)
              : Operation(chosen, primitive, {source, gradient, weight}, plan);
    place_ = plan.place(static_cast<int64_t>(made.get_size()));
    bias_place_ = plan.place(outputs_ * static_cast<int64_t>(sizeof(float)));
    if (made != d.plain_weight)
      store_ = reorder_operation(engine_, made, d.plain_weight, false, plan);
    add_ = reorder_operation(engine_, made, d.plain_weight, true, plan);
    report(", backward weights ", backward_weights_, plan);
  }

  void report(const char* pass, const Operation& operation, const ScratchPlan& plan) {
    scratch_bytes = std::max(scratch_bytes, plan.bytes());
    algorithm += pass + operation.name();
  }

  dnnl::engine engine_ = cpu_engine();
  bool bias_ = false;
  int64_t outputs_ = 0;
  FetchedWeight forward_weight_, backward_weight_;
  Operation forward_, backward_data_, backward_weights_;
  Operation store_, add_;  // the weights' gradient from oneDNN's format to plain
  int64_t place_ = 0, bias_place_ = 0;
};

// Floating-point operations of all passes that the binding wants.
double operations(const Binding& binding, const ConvolutionSettings& settings) {
  const Shape& input = binding.input(0).shape;
  const Shape weight = settings.weight_shape(input);
  const double passes = 1.0 + (binding.has(TANDEM_WANTS_BACKWARD_DATA) ? 1 : 0) +
                        (binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS) ? 1 : 0);
  return passes * 2 * static_cast<double>(count(settings.output_shape(input))) *
         static_cast<double>(weight.c * weight.h * weight.w);
}

LayoutOptions ConvolutionCpu::layouts(const Binding& binding) {
  const Shape& input = binding.input(0).shape;
  const ConvolutionSettings settings(binding.attributes, input);
  const int64_t inputs = input.c;
  const int32_t blocked = blocked_layout();
  const int64_t block = block_of(blocked, 0);
  const bool blocks_out = settings.outputs / settings.group % block == 0;
  const bool blocks_in = inputs / settings.group % block == 0;
  LayoutOptions options;
  if (blocks_in && blocks_out) options.push_back({blocked, blocked, 0});
  if (inputs <= 3 && blocks_out) options.push_back({TANDEM_NCHW, blocked, 0});
  // Measured: NHWC takes a tenth longer, and plain NCHW, which is a matrix product after copying,
  // from a fifth (AVX2) to twice as long (AVX-512). A machine moves about a byte in the time of six
  // operations.
  const double slower = options.empty() ? 0 : 0.1;
  const double product = blocked == TANDEM_NCHW16C ? 2 : 0.5;
  options.push_back({TANDEM_NHWC, TANDEM_NHWC, slower * operations(binding, settings) / 6});
  options.push_back({TANDEM_NCHW, TANDEM_NCHW, product * operations(binding, settings) / 6});
  return options;
}

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "convolution", "1.0")
      .layer<Convolution>()
      .kernel<Convolution, ConvolutionCpu>("cpu")
      .table();
}
