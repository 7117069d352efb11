// LRN across channels in bfloat16 on the cpu, of whole blocks of channels: oneDNN's, which is fast
// in the blocked layout, and in NHWC if the cpu has AVX-512.
#pragma once

#include "plugins/cpu/onednn.h"

namespace tandem::layers {

class RoundedAcrossChannels : public sdk::Needs {
 public:
  explicit RoundedAcrossChannels(const sdk::Binding& binding) {
    cpu::require_computable(TANDEM_BFLOAT16);
    const sdk::Attributes& a = binding.attributes;
    const auto data = cpu::descriptor(binding.input(0));
    const cpu::LrnParameters parameters{
        a.integer("local_size"), static_cast<float>(a.number("alpha")),
        static_cast<float>(a.number("beta")), static_cast<float>(a.number("k"))};
    const bool backward = binding.has(TANDEM_WANTS_BACKWARD_DATA);
    const auto kind =
        backward ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;

    cpu::ScratchPlan plan;
    const auto forward = cpu::describe_lrn({engine_}, kind, data, parameters);
    has_workspace_ = backward && forward.workspace_desc().get_size() > 0;
    forward_ = has_workspace_
                   ? cpu::Operation(forward, dnnl::lrn_forward(forward),
                                    {DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WORKSPACE}, plan)
                   : cpu::Operation(forward, dnnl::lrn_forward(forward),
                                    {DNNL_ARG_SRC, DNNL_ARG_DST}, plan);
    algorithm = "forward " + forward_.name();
    if (backward) {
      saved_bytes = static_cast<int64_t>(forward.workspace_desc().get_size());
      prepare_backward(cpu::describe_lrn_backward({engine_}, forward, data, parameters), plan);
    }
    scratch_bytes = plan.bytes();
  }

  static sdk::LayoutOptions layouts(const sdk::Binding& binding);

  void forward(const sdk::Call&, const sdk::Pass& pass) {
    forward_.run(pass.scratch<std::byte>(), {{DNNL_ARG_SRC, pass.raw.inputs[0]},
                                             {DNNL_ARG_DST, pass.raw.outputs[0]},
                                             {DNNL_ARG_WORKSPACE, pass.saved()}});
  }

  void backward_data(const sdk::Call&, const sdk::Pass& pass) {
    backward_.run(pass.scratch<std::byte>(), {{DNNL_ARG_SRC, pass.raw.inputs[0]},
                                              {DNNL_ARG_DIFF_DST, pass.raw.output_gradients[0]},
                                              {DNNL_ARG_DIFF_SRC, pass.raw.input_gradients[0]},
                                              {DNNL_ARG_WORKSPACE, pass.saved()}});
  }

 private:
  void prepare_backward(const dnnl::lrn_backward::primitive_desc& chosen, cpu::ScratchPlan& plan) {
    const auto source = DNNL_ARG_SRC, gradient = DNNL_ARG_DIFF_DST, result = DNNL_ARG_DIFF_SRC;
    backward_ =
        has_workspace_
            ? cpu::Operation(chosen, dnnl::lrn_backward(chosen),
                             {source, gradient, result, DNNL_ARG_WORKSPACE}, plan)
            : cpu::Operation(chosen, dnnl::lrn_backward(chosen), {source, gradient, result}, plan);
    algorithm += ", backward data " + backward_.name();
  }

  dnnl::engine engine_ = cpu::cpu_engine();
  bool has_workspace_ = false;
  cpu::Operation forward_, backward_;
};

inline sdk::LayoutOptions RoundedAcrossChannels::layouts(const sdk::Binding& binding) {
  const sdk::Shape& shape = binding.input(0).shape;
  const int32_t blocked = cpu::blocked_layout(TANDEM_BFLOAT16);
  sdk::LayoutOptions options{{blocked, blocked, 0}};
  // In plain layouts the backward pass is oneDNN's reference kernel, except in NHWC with AVX-512.
  // Measured, it is as slow as moving the tensor three hundred times. Forward is fast in all
  // layouts.
  const bool backward = binding.has(TANDEM_WANTS_BACKWARD_DATA);
  const double slow = backward ? 300.0 * 8 * static_cast<double>(sdk::count(shape)) : 0;
  options.push_back({TANDEM_NHWC, TANDEM_NHWC, blocked == TANDEM_NCHW16C ? 0 : slow});
  options.push_back({TANDEM_NCHW, TANDEM_NCHW, slow});
  return options;
}

}  // namespace tandem::layers
