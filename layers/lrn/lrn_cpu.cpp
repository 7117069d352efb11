// LRN on the cpu.
#include <optional>

#include "layers/lrn/across_channels.h"
#include "layers/lrn/lrn.h"
#include "layers/lrn/within_channel.h"
#include "plugins/cpu/layout.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::cpu;
using tandem::layers::AcrossChannelsLrn;
using tandem::layers::LocalResponseNormalisation;
using tandem::layers::WithinChannelLrn;

class AcrossChannels : public Needs {
 public:
  AcrossChannels(const Binding& binding, const Call& call)
      : lrn_(binding.attributes, binding.input(0)) {
    scratch_bytes = lrn_.scratch_bytes(call.threads);
    algorithm = "tiles in the cache";
  }
  void forward(const Call& call, const Pass& pass) const {
    lrn_.forward(call, pass.input(0), pass.output(0), pass.scratch());
  }
  void backward_data(const Call& call, const Pass& pass) const {
    lrn_.backward(call, pass.input(0), pass.output_gradient(0), pass.input_gradient(0),
                  pass.scratch());
  }

 private:
  AcrossChannelsLrn lrn_;
};

class WithinChannel : public Needs {
 public:
  explicit WithinChannel(const Binding& binding) : lrn_(binding.attributes, binding.input(0)) {
    const int64_t tensor = lrn_.elements() * static_cast<int64_t>(sizeof(float));
    backward_ = binding.has(TANDEM_WANTS_BACKWARD_DATA);
    (backward_ ? saved_bytes : scratch_bytes) = tensor;
    if (backward_) scratch_bytes = 2 * tensor;
    algorithm = "sums of rows and columns";
  }
  void forward(const Call& call, const Pass& pass) const {
    lrn_.forward(call, pass.input(0), pass.output(0), backward_ ? pass.saved() : pass.scratch());
  }
  void backward_data(const Call& call, const Pass& pass) const {
    lrn_.backward(call, pass.input(0), pass.output_gradient(0), pass.saved(), pass.scratch(),
                  pass.input_gradient(0));
  }

 private:
  WithinChannelLrn lrn_;
  bool backward_ = false;
};

bool is_across(const Binding& binding) {
  return binding.attributes.text("norm_region") == "ACROSS_CHANNELS";
}

class LrnCpu : public Needs {
 public:
  LrnCpu(const Binding& binding, const Call& call) {
    if (is_across(binding)) {
      static_cast<Needs&>(*this) = across_.emplace(binding, call);
    } else {
      static_cast<Needs&>(*this) = within_.emplace(binding);
    }
  }
  static LayoutOptions layouts(const Binding& binding) {
    const Shape& shape = binding.input(0).shape;
    LayoutOptions options = any_layout(shape.c);
    // Measured: plain NCHW takes as much longer as moving the tensor three times.
    for (tandem_layout_option& option : options) {
      const bool slow = is_across(binding) && option.input == TANDEM_NCHW;
      if (slow) option.extra_bytes = 3.0 * 8 * static_cast<double>(count(shape));
    }
    return options;
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
