// LRN on the cpu. Across channels: oneDNN, whose backward pass is fast in the blocked layout only.
#include <optional>

#include "layers/lrn/lrn.h"
#include "layers/lrn/within_channel.h"
#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/onednn.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::cpu;
using dnnl::lrn_backward;
using dnnl::lrn_forward;
using tandem::layers::LocalResponseNormalisation;
using tandem::layers::WithinChannelLrn;

constexpr auto method = dnnl::algorithm::lrn_across_channels;

class AcrossChannels : public Needs {
 public:
  explicit AcrossChannels(const Binding& binding) {
    const Attributes& a = binding.attributes;
    const auto data = descriptor(binding.input(0));
    const int64_t size = a.integer("local_size");
    const auto alpha = static_cast<float>(a.number("alpha"));
    const auto beta = static_cast<float>(a.number("beta"));
    const auto k = static_cast<float>(a.number("k"));
    const bool backward = binding.has(TANDEM_WANTS_BACKWARD_DATA);
    const auto kind =
        backward ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;

    ScratchPlan plan;
    const lrn_forward::primitive_desc forward({kind, method, data, size, alpha, beta, k},
                                              user_scratchpad(), engine_);
    has_workspace_ = backward && forward.workspace_desc().get_size() > 0;
    forward_ = has_workspace_
                   ? Operation(forward, lrn_forward(forward),
                               {DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WORKSPACE}, plan)
                   : Operation(forward, lrn_forward(forward), {DNNL_ARG_SRC, DNNL_ARG_DST}, plan);
    algorithm = "forward " + forward_.name();
    if (backward) {
      saved_bytes = static_cast<int64_t>(forward.workspace_desc().get_size());
      prepare_backward(
          {{method, data, data, size, alpha, beta, k}, user_scratchpad(), engine_, forward}, plan);
    }
    scratch_bytes = plan.bytes();
  }

  static LayoutOptions layouts(const Binding& binding);

  void forward(const Call&, const Pass& pass) {
    forward_.run(pass.scratch<std::byte>(), {{DNNL_ARG_SRC, pass.raw.inputs[0]},
                                             {DNNL_ARG_DST, pass.raw.outputs[0]},
                                             {DNNL_ARG_WORKSPACE, pass.saved()}});
  }

  void backward_data(const Call&, const Pass& pass) {
    backward_.run(pass.scratch<std::byte>(), {{DNNL_ARG_SRC, pass.raw.inputs[0]},
                                              {DNNL_ARG_DIFF_DST, pass.raw.output_gradients[0]},
                                              {DNNL_ARG_DIFF_SRC, pass.raw.input_gradients[0]},
                                              {DNNL_ARG_WORKSPACE, pass.saved()}});
  }

 private:
  void prepare_backward(const lrn_backward::primitive_desc& chosen, ScratchPlan& plan) {
    const auto source = DNNL_ARG_SRC, gradient = DNNL_ARG_DIFF_DST, result = DNNL_ARG_DIFF_SRC;
    backward_ = has_workspace_
                    ? Operation(chosen, lrn_backward(chosen),
                                {source, gradient, result, DNNL_ARG_WORKSPACE}, plan)
                    : Operation(chosen, lrn_backward(chosen), {source, gradient, result}, plan);
    algorithm += ", backward data " + backward_.name();
  }

  dnnl::engine engine_ = cpu_engine();
  bool has_workspace_ = false;
  Operation forward_, backward_;
};

LayoutOptions AcrossChannels::layouts(const Binding& binding) {
  const Shape& shape = binding.input(0).shape;
  const int32_t blocked = blocked_layout();
  LayoutOptions options;
  if (shape.c % block_of(blocked, 0) == 0) options.push_back({blocked, blocked, 0});
  // In plain layouts the backward pass is oneDNN's reference kernel, except in NHWC with AVX-512:
  // measured, as slow as moving the tensor three hundred times. Forward is fast in all of them.
  const bool backward = binding.has(TANDEM_WANTS_BACKWARD_DATA);
  const double slow = backward ? 300.0 * 8 * static_cast<double>(count(shape)) : 0;
  options.push_back({TANDEM_NHWC, TANDEM_NHWC, blocked == TANDEM_NCHW16C ? 0 : slow});
  options.push_back({TANDEM_NCHW, TANDEM_NCHW, slow});
  return options;
}

// Of bfloat16 it works on copies in float32, behind its own scratch memory.
class WithinChannel : public Needs {
 public:
  explicit WithinChannel(const Binding& binding)
      : lrn_(binding.attributes, binding.input(0)),
        copies_(binding.input(0).dtype == TANDEM_BFLOAT16),
        backward_(binding.has(TANDEM_WANTS_BACKWARD_DATA)) {
    const int64_t tensor = lrn_.elements() * static_cast<int64_t>(sizeof(float));
    own_ = (backward_ ? 2 : 1) * lrn_.elements();
    if (backward_) saved_bytes = tensor;
    scratch_bytes = own_ * static_cast<int64_t>(sizeof(float)) + (copies_ ? 3 * tensor : 0);
    algorithm = "sums of rows and columns";
  }
  void forward(const Call& call, const Pass& pass) const {
    float* scales = backward_ ? pass.saved() : pass.scratch();
    if (!copies_) return lrn_.forward(call, pass.input(0), pass.output(0), scales);
    float* y = copy(pass, 1);
    lrn_.forward(call, widened(call, input<bfloat16>(pass, 0), copy(pass, 0)), y, scales);
    narrow_all(call, y, output<bfloat16>(pass, 0));
  }
  void backward_data(const Call& call, const Pass& pass) const {
    if (!copies_) {
      return lrn_.backward(call, pass.input(0), pass.output_gradient(0), pass.saved(),
                           pass.scratch(), pass.input_gradient(0));
    }
    const float* x = widened(call, input<bfloat16>(pass, 0), copy(pass, 0));
    const float* dy = widened(call, output_gradient<bfloat16>(pass, 0), copy(pass, 1));
    float* dx = copy(pass, 2);
    lrn_.backward(call, x, dy, pass.saved(), pass.scratch(), dx);
    narrow_all(call, dx, input_gradient<bfloat16>(pass, 0));
  }

 private:
  [[nodiscard]] float* copy(const Pass& pass, int64_t number) const {
    return pass.scratch() + own_ + number * lrn_.elements();
  }
  const float* widened(const Call& call, const bfloat16* values, float* target) const {
    for_ranges(call.threads, lrn_.elements(), [=](int64_t begin, int64_t end) {
      widen(values + begin, target + begin, end - begin);
    });
    return target;
  }
  void narrow_all(const Call& call, const float* values, bfloat16* target) const {
    for_ranges(call.threads, lrn_.elements(), [=](int64_t begin, int64_t end) {
      narrow(values + begin, target + begin, end - begin);
    });
  }

  WithinChannelLrn lrn_;
  bool copies_, backward_;
  int64_t own_ = 0;  // floats
};

bool is_across(const Binding& binding) {
  return binding.attributes.text("norm_region") == "ACROSS_CHANNELS";
}

class LrnCpu : public Needs {
 public:
  LrnCpu(const Binding& binding, const Call&) {
    if (is_across(binding)) {
      static_cast<Needs&>(*this) = across_.emplace(binding);
    } else {
      static_cast<Needs&>(*this) = within_.emplace(binding);
    }
  }
  static constexpr uint32_t dtypes = float32_and_bfloat16;
  static LayoutOptions layouts(const Binding& binding) {
    return is_across(binding) ? AcrossChannels::layouts(binding)
                              : any_layout(binding.input(0).shape.c);
  }
  void forward(const Call& call, const Pass& pass) {
    across_ ? across_->forward(call, pass) : within_->forward(call, pass);
  }
  void backward_data(const Call& call, const Pass& pass) {
    across_ ? across_->backward_data(call, pass) : within_->backward_data(call, pass);
  }

 private:
  std::optional<AcrossChannels> across_;
  std::optional<WithinChannel> within_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "lrn", "1.0")
      .layer<LocalResponseNormalisation>()
      .kernel<LocalResponseNormalisation, LrnCpu>("cpu")
      .table();
}
