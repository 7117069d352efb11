// LRN on the cpu.
#include <optional>

#include "layers/lrn/across_channels.h"
#include "layers/lrn/across_channels_rounded.h"
#include "layers/lrn/lrn.h"
#include "layers/lrn/within_channel.h"
#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/layout.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::cpu;
using tandem::layers::AcrossChannelsLrn;
using tandem::layers::LocalResponseNormalisation;
using tandem::layers::RoundedAcrossChannels;
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

// In bfloat16 it works on float32 copies, which follow its own scratch memory.
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
    lrn_.forward(call, widened(call, pass.input<bfloat16>(0).data(), copy(pass, 0)), y, scales);
    narrow_all(call, y, pass.output<bfloat16>(0).data());
  }
  void backward_data(const Call& call, const Pass& pass) const {
    if (!copies_) {
      return lrn_.backward(call, pass.input(0), pass.output_gradient(0), pass.saved(),
                           pass.scratch(), pass.input_gradient(0));
    }
    const float* x = widened(call, pass.input<bfloat16>(0).data(), copy(pass, 0));
    const float* dy = widened(call, pass.output_gradient<bfloat16>(0).data(), copy(pass, 1));
    float* dx = copy(pass, 2);
    lrn_.backward(call, x, dy, pass.saved(), pass.scratch(), dx);
    narrow_all(call, dx, pass.input_gradient<bfloat16>(0).data());
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

bool is_rounded(const Binding& binding) {
  return is_across(binding) && binding.input(0).dtype == TANDEM_BFLOAT16;
}

class LrnCpu : public Needs {
 public:
  LrnCpu(const Binding& binding, const Call& call) {
    if (is_rounded(binding)) {
      static_cast<Needs&>(*this) = rounded_.emplace(binding);
    } else if (is_across(binding)) {
      static_cast<Needs&>(*this) = across_.emplace(binding, call);
    } else {
      static_cast<Needs&>(*this) = within_.emplace(binding);
    }
  }
  static constexpr uint32_t dtypes = float32_and_bfloat16;
  static LayoutOptions layouts(const Binding& binding) {
    if (is_rounded(binding)) return RoundedAcrossChannels::layouts(binding);
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
    if (rounded_) return rounded_->forward(call, pass);
    across_ ? across_->forward(call, pass) : within_->forward(call, pass);
  }
  void backward_data(const Call& call, const Pass& pass) {
    if (rounded_) return rounded_->backward_data(call, pass);
    across_ ? across_->backward_data(call, pass) : within_->backward_data(call, pass);
  }

 private:
  std::optional<AcrossChannels> across_;
  std::optional<RoundedAcrossChannels> rounded_;
  std::optional<WithinChannel> within_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "lrn", "1.0")
      .layer<LocalResponseNormalisation>()
      .kernel<LocalResponseNormalisation, LrnCpu>("cpu")
      .table();
}
