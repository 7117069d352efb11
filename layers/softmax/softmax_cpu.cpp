// Softmax on the cpu: oneDNN, or our own where oneDNN has only reference code.
#include "layers/softmax/softmax.h"

#include <optional>

#include "layers/softmax/own_softmax.h"
#include "plugins/cpu/onednn.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::cpu;
using dnnl::softmax_backward;
using dnnl::softmax_forward;
using tandem::layers::OwnSoftmax;
using tandem::layers::Softmax;

class SoftmaxCpu : public Needs {
 public:
  SoftmaxCpu(const Binding& binding, const Call&) {
    const auto axis = static_cast<int>(binding.attributes.integer("axis"));
    if (has_own_kernels_only(binding.input(0).dtype)) {
      own_.emplace(binding.input(0).shape, axis);
      algorithm = "plain loops";
      return;
    }
    const auto data = descriptor(binding.input(0));
    const bool backward = binding.has(TANDEM_WANTS_BACKWARD_DATA);
    const auto kind =
        backward ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    ScratchPlan plan;
    const auto forward = describe_softmax({engine_}, kind, data, axis);
    forward_ = Operation(forward, softmax_forward(forward), {DNNL_ARG_SRC, DNNL_ARG_DST}, plan);
    algorithm = "forward " + forward_.name();
    if (backward) {
      const auto chosen = describe_softmax_backward({engine_}, forward, data, axis);
      backward_ = Operation(chosen, softmax_backward(chosen),
                            {DNNL_ARG_DST, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC}, plan);
      algorithm += ", backward data " + backward_.name();
    }
    scratch_bytes = plan.bytes();
  }

  void forward(const Call& call, const Pass& pass) {
    if (own_) return own_->forward(call.threads, pass.input(0), pass.output(0));
    forward_.run(pass.scratch<std::byte>(),
                 {{DNNL_ARG_SRC, pass.input(0)}, {DNNL_ARG_DST, pass.output(0)}});
  }
  void backward_data(const Call& call, const Pass& pass) {
    if (own_) {
      return own_->backward(call.threads, pass.output(0), pass.output_gradient(0),
                            pass.input_gradient(0));
    }
    backward_.run(pass.scratch<std::byte>(), {{DNNL_ARG_DST, pass.output(0)},
                                              {DNNL_ARG_DIFF_DST, pass.output_gradient(0)},
                                              {DNNL_ARG_DIFF_SRC, pass.input_gradient(0)}});
  }

 private:
  dnnl::engine engine_ = cpu_engine();
  Operation forward_, backward_;
  std::optional<OwnSoftmax> own_;  // in place of oneDNN's
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "softmax", "1.0").layer<Softmax>().kernel<Softmax, SoftmaxCpu>("cpu").table();
}
