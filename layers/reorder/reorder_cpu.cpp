// Reorder on the cpu: oneDNN's, in one direction forward and in the other backward.
#include "layers/reorder/reorder.h"
#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/onednn.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::cpu;
using tandem::layers::Reorder;

class ReorderCpu : public Needs {
 public:
  ReorderCpu(const Binding& binding, const Call&) {
    ScratchPlan plan;
    const auto from = descriptor(binding.input(0));
    const auto to = descriptor(binding.output(0));
    forward_ = reorder_operation(engine_, from, to, false, plan);
    algorithm = "forward " + forward_.name();
    if (binding.has(TANDEM_WANTS_BACKWARD_DATA)) {
      backward_ = reorder_operation(engine_, to, from, false, plan);
      algorithm += ", backward data " + backward_.name();
    }
    scratch_bytes = plan.bytes();
  }

  static constexpr uint32_t dtypes = float32_and_bfloat16;

  // Every pair of layouts that the number of channels allows.
  static LayoutOptions layouts(const Binding& binding) {
    LayoutOptions pairs;
    const LayoutOptions each = any_layout(binding.input(0).shape.c);
    for (const tandem_layout_option& from : each) {
      for (const tandem_layout_option& to : each) {
        if (from.input != to.output) pairs.push_back({from.input, to.output, 0});
      }
    }
    return pairs;
  }

  void forward(const Call&, const Pass& pass) {
    forward_.run(pass.scratch<std::byte>(),
                 {{DNNL_ARG_FROM, pass.raw.inputs[0]}, {DNNL_ARG_TO, pass.raw.outputs[0]}});
  }
  void backward_data(const Call&, const Pass& pass) {
    backward_.run(pass.scratch<std::byte>(), {{DNNL_ARG_FROM, pass.raw.output_gradients[0]},
                                              {DNNL_ARG_TO, pass.raw.input_gradients[0]}});
  }

 private:
  dnnl::engine engine_ = cpu_engine();
  Operation forward_, backward_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "reorder", "1.0").layer<Reorder>().kernel<Reorder, ReorderCpu>("cpu").table();
}
