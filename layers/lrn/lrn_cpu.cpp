// LRN on the cpu.
#include <optional>

#include "layers/lrn/across_channels.h"
#include "layers/lrn/lrn.h"
#include "layers/lrn/within_channel.h"
#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/fused_relu.h"
#include "plugins/cpu/layout.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::cpu;
using tandem::layers::AcrossChannelsLrn;
using tandem::layers::LocalResponseNormalisation;
using tandem::layers::WithinChannelLrn;

// Sums within a channel are of float32: a bfloat16 tensor is read and written through copies, which
// follow the algorithm's own scratch memory.
class Copies {
 public:
  explicit Copies(const Binding& binding)
      : elements_(count(binding.input(0).shape)),
        needed_(binding.input(0).dtype == TANDEM_BFLOAT16) {}

  [[nodiscard]] int64_t floats() const { return needed_ ? 3 * elements_ : 0; }
  [[nodiscard]] float* at(float* begin, int64_t number) const { return begin + number * elements_; }
  // The tensor's values: its own memory, or the copy.
  const float* read(const Call& call, const void* tensor, float* copy) const {
    if (!needed_) return static_cast<const float*>(tensor);
    const auto* values = static_cast<const bfloat16*>(tensor);
    for_ranges(call.threads, elements_, [=](int64_t begin, int64_t end) {
      widen(values + begin, copy + begin, end - begin);
    });
    return copy;
  }
  // Calls compute(float* to write to), and brings the copy to its place.
  template <class Compute>
  void write(const Call& call, void* tensor, float* copy, const Compute& compute) const {
    if (!needed_) return compute(static_cast<float*>(tensor));
    compute(copy);
    auto* values = static_cast<bfloat16*>(tensor);
    for_ranges(call.threads, elements_, [=](int64_t begin, int64_t end) {
      narrow(copy + begin, values + begin, end - begin);
    });
  }

  void pass_through_relu(const Call& call, const Pass& pass) const {
    tandem::cpu::pass_through_relu(call.threads, needed_ ? TANDEM_BFLOAT16 : TANDEM_FLOAT32,
                                   pass.raw.inputs[0], pass.raw.input_gradients[0], elements_);
  }

 private:
  int64_t elements_;
  bool needed_;
};

class AcrossChannels : public Needs {
 public:
  AcrossChannels(const Binding& binding, const Call& call)
      : lrn_(binding.attributes, binding.input(0), binding.follows_relu()) {
    scratch_bytes = lrn_.scratch_bytes(call.threads);
    algorithm = "tiles in the cache";
  }
  void forward(const Call& call, const Pass& pass) const { lrn_.forward(call, pass); }
  void backward_data(const Call& call, const Pass& pass) const { lrn_.backward_data(call, pass); }

 private:
  AcrossChannelsLrn lrn_;
};

class WithinChannel : public Needs {
 public:
  explicit WithinChannel(const Binding& binding)
      : lrn_(binding.attributes, binding.input(0)),
        copies_(binding),
        backward_(binding.has(TANDEM_WANTS_BACKWARD_DATA)),
        follows_relu_(binding.follows_relu()),
        own_((backward_ ? 2 : 1) * lrn_.elements()) {
    if (backward_) saved_bytes = lrn_.elements() * static_cast<int64_t>(sizeof(float));
    scratch_bytes = (own_ + copies_.floats()) * static_cast<int64_t>(sizeof(float));
    algorithm = "sums of rows and columns";
  }
  void forward(const Call& call, const Pass& pass) const {
    float* const copies = pass.scratch() + own_;
    float* scales = backward_ ? pass.saved() : pass.scratch();
    const float* x = copies_.read(call, pass.raw.inputs[0], copies);
    copies_.write(call, pass.raw.outputs[0], copies_.at(copies, 1),
                  [&](float* y) { lrn_.forward(call, x, y, scales); });
  }
  void backward_data(const Call& call, const Pass& pass) const {
    float* const copies = pass.scratch() + own_;
    const float* x = copies_.read(call, pass.raw.inputs[0], copies);
    const float* dy = copies_.read(call, pass.raw.output_gradients[0], copies_.at(copies, 1));
    copies_.write(call, pass.raw.input_gradients[0], copies_.at(copies, 2),
                  [&](float* dx) { lrn_.backward(call, x, dy, pass.saved(), pass.scratch(), dx); });
    if (follows_relu_) copies_.pass_through_relu(call, pass);
  }

 private:
  WithinChannelLrn lrn_;
  Copies copies_;
  bool backward_, follows_relu_;
  int64_t own_;  // floats
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
  static constexpr uint32_t dtypes = float32_and_bfloat16;
  static constexpr uint32_t gradients_before = relu_only;
  static LayoutOptions layouts(const Binding& binding) {
    const Shape& shape = binding.input(0).shape;
    LayoutOptions options = any_layout(shape.c);
    // Measured: plain NCHW takes longer by the time of moving the tensor three times.
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
