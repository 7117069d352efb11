#include "layers/convolution/winograd_passes.h"

#include <algorithm>

namespace tandem::layers {

namespace {

constexpr auto winograd = dnnl::algorithm::convolution_winograd;

dnnl::memory::desc rows_of_group(tandem_tensor tensor, int64_t rows, int64_t groups) {
  tensor.shape.n = rows;
  tensor.shape.c /= groups;
  return cpu::descriptor(tensor);
}

}  // namespace

struct WinogradPasses::Description {
  Description(const dnnl::engine& engine, const sdk::Binding& binding, int64_t rows)
      : how{engine, cpu::user_scratchpad(), true},
        settings(binding.attributes, binding.input(0).shape),
        input(rows_of_group(binding.input(0), rows, settings.group)),
        output(rows_of_group(binding.output(0), rows, settings.group)) {
    const dnnl::memory::dims extents{settings.outputs / settings.group,
                                     binding.input(0).shape.c / settings.group, 3, 3};
    const auto float32 = dnnl::memory::data_type::f32;
    any = {extents, float32, dnnl::memory::format_tag::any};
    plain = {extents, float32, dnnl::memory::format_tag::oihw};
    if (settings.bias) bias = cpu::vector_descriptor(extents[0]);
    pad = {settings.window.pad.h, settings.window.pad.w};
    // Forward-training also for inference: for inference oneDNN requires weights that are already
    // transformed, which it does with reference code and four times the memory.
    forward =
        cpu::describe<dnnl::convolution_forward>(how, dnnl::prop_kind::forward_training, winograd,
                                                 input, any, bias, output, stride, pad, pad);
  }

  cpu::Making how;
  ConvolutionSettings settings;
  dnnl::memory::desc input, output, any, plain, bias;
  dnnl::memory::dims stride{1, 1}, pad;
  dnnl::convolution_forward::primitive_desc forward;
};

WinogradPasses::WinogradPasses(const dnnl::engine& engine, const sdk::Binding& binding,
                               int64_t rows)
    : rows_(rows) {
  const Description d(engine, binding, rows);
  if (!d.forward) return;
  cpu::ScratchPlan scratch = plan(d, d.forward.weights_desc());
  fetch = cpu::reorder_operation(engine, d.plain, d.forward.weights_desc(), false, scratch);
  const dnnl::convolution_forward primitive(d.forward);
  forward =
      d.settings.bias
          ? cpu::Operation(d.forward, primitive,
                           {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST}, scratch)
          : cpu::Operation(d.forward, primitive, {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                           scratch);
  bytes_ = scratch.bytes();
  exists_ = (!binding.has(TANDEM_WANTS_BACKWARD_DATA) || prepare_backward_data(d)) &&
            (!binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS) || prepare_backward_weights(d));
}

cpu::ScratchPlan WinogradPasses::plan(const Description& d, const dnnl::memory::desc& wanted) {
  cpu::ScratchPlan scratch;
  const bool groups = d.settings.group > 1;
  input = scratch.reserve(groups ? static_cast<int64_t>(d.input.get_size()) : 0);
  output = scratch.reserve(groups ? static_cast<int64_t>(d.output.get_size()) : 0);
  weights = scratch.reserve(static_cast<int64_t>(wanted.get_size()));
  return scratch;
}

bool WinogradPasses::prepare_backward_data(const Description& d) {
  const auto chosen = cpu::describe_backward<dnnl::convolution_backward_data>(
      d.how, d.forward, winograd, d.input, d.any, d.output, d.stride, d.pad, d.pad);
  if (!chosen) return false;
  cpu::ScratchPlan scratch = plan(d, chosen.weights_desc());
  backward_fetch =
      cpu::reorder_operation(d.how.engine, d.plain, chosen.weights_desc(), false, scratch);
  backward_data = cpu::Operation(chosen, dnnl::convolution_backward_data(chosen),
                                 {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC}, scratch);
  bytes_ = std::max(bytes_, scratch.bytes());
  return true;
}

bool WinogradPasses::prepare_backward_weights(const Description& d) {
  const auto chosen = cpu::describe_backward<dnnl::convolution_backward_weights>(
      d.how, d.forward, winograd, d.input, d.any, d.bias, d.output, d.stride, d.pad, d.pad);
  if (!chosen) return false;
  cpu::ScratchPlan scratch = plan(d, chosen.diff_weights_desc());
  const dnnl::convolution_backward_weights primitive(chosen);
  const auto source = DNNL_ARG_SRC, gradient = DNNL_ARG_DIFF_DST, weight = DNNL_ARG_DIFF_WEIGHTS;
  backward_weights = d.settings.bias
                         ? cpu::Operation(chosen, primitive,
                                          {source, gradient, weight, DNNL_ARG_DIFF_BIAS}, scratch)
                         : cpu::Operation(chosen, primitive, {source, gradient, weight}, scratch);
  store = cpu::reorder_operation(d.how.engine, chosen.diff_weights_desc(), d.plain, false, scratch);
  add = cpu::reorder_operation(d.how.engine, chosen.diff_weights_desc(), d.plain, true, scratch);
  bias_gradient =
      scratch.reserve(d.settings.outputs / d.settings.group * static_cast<int64_t>(sizeof(float)));
  bytes_ = std::max(bytes_, scratch.bytes());
  return true;
}

}  // namespace tandem::layers
