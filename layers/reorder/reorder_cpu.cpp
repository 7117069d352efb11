// Reorder on the cpu: oneDNN's, or a copy of our own where oneDNN has only reference code, in one
// direction forward and in the other backward.
#include "layers/reorder/reorder.h"

#include <algorithm>

#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/onednn.h"
#include "plugins/cpu/team.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::cpu;
using tandem::layers::Reorder;

// A row of an image: some channels at a time, which are equally far from each other in both
// tensors.
void copy_row(const Placement& from, const Placement& to, int64_t row, const float* source,
              float* target) {
  constexpr int64_t most = 16;
  const auto distance_of = [](const Placement& p) {
    return p.block == 1 ? p.shape.h * p.shape.w : 1;
  };
  const int64_t from_channel = distance_of(from), to_channel = distance_of(to);
  const auto left_of = [](const Placement& p, int64_t c) {
    return p.block == 1 ? most : p.block - c % p.block;
  };
  const int64_t channels = from.shape.c;
  for (int64_t c = 0, count = 0; c < channels; c += count) {
    count = std::min({most, channels - c, left_of(from, c), left_of(to, c)});
    const float* x = source + from.offset(c, row, 0);
    float* y = target + to.offset(c, row, 0);
    for (int64_t w = 0; w < from.shape.w; ++w, x += from.block, y += to.block) {
      for (int64_t k = 0; k < count; ++k) y[k * to_channel] = x[k * from_channel];
    }
  }
}

void copy_images(int32_t threads, const Placement& from, const Placement& to, const float* source,
                 float* target) {
  const Shape& s = from.shape;
  for_items(threads, s.n * s.h, s.c * s.w, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / s.h * from.row_size();
      copy_row(from, to, i % s.h, source + image, target + image);
    }
  });
}

class ReorderCpu : public Needs {
 public:
  ReorderCpu(const Binding& binding, const Call&)
      : input_(binding.input(0)),
        output_(binding.output(0)),
        is_own_(has_own_kernels_only(binding.input(0).dtype) &&
                binding.output(0).dtype == TANDEM_FLOAT32) {
    if (is_own_) {
      algorithm = "plain loops";
      return;
    }
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

  void forward(const Call& call, const Pass& pass) {
    if (is_own_) {
      return copy_images(call.threads, input_, output_, pass.input(0), pass.output(0));
    }
    forward_.run(pass.scratch<std::byte>(),
                 {{DNNL_ARG_FROM, pass.raw.inputs[0]}, {DNNL_ARG_TO, pass.raw.outputs[0]}});
  }
  void backward_data(const Call& call, const Pass& pass) {
    if (is_own_) {
      return copy_images(call.threads, output_, input_, pass.output_gradient(0),
                         pass.input_gradient(0));
    }
    backward_.run(pass.scratch<std::byte>(), {{DNNL_ARG_FROM, pass.raw.output_gradients[0]},
                                              {DNNL_ARG_TO, pass.raw.input_gradients[0]}});
  }

 private:
  dnnl::engine engine_ = cpu_engine();
  Placement input_, output_;
  bool is_own_;
  Operation forward_, backward_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "reorder", "1.0").layer<Reorder>().kernel<Reorder, ReorderCpu>("cpu").table();
}
