// Convolution on the cpu.
#include "layers/convolution/convolution.h"
#include "layers/convolution/convolution_kernel.h"
#include "layers/convolution/depthwise.h"
#include "layers/convolution/own_convolution.h"
#include "layers/convolution/pixel_convolution.h"
#include "layers/convolution/tap_gradient.h"
#include "layers/convolution/tile_gradient.h"
#include "layers/convolution/winograd.h"
#include "plugins/cpu/fused_relu.h"

namespace {

using namespace tandem::sdk;
using tandem::layers::Convolution;
using tandem::layers::ConvolutionKernel;
using tandem::layers::DepthwiseConvolution;
using OwnConvolution = tandem::layers::OwnConvolution<tandem::layers::ConvolutionSettings, false>;
using tandem::layers::PixelConvolution;
using tandem::layers::TapGradient;
using tandem::layers::TileGradient;
using tandem::layers::WinogradConvolution;

struct Primitives {
  using Settings = tandem::layers::ConvolutionSettings;
  using Forward = dnnl::convolution_forward;
  using BackwardData = dnnl::convolution_backward_data;
  using BackwardWeights = dnnl::convolution_backward_weights;
  static constexpr auto algorithm = dnnl::algorithm::convolution_direct;
  static constexpr bool takes_plain_images = true;
  static dnnl::memory::format_tag plain(bool grouped) {
    return grouped ? dnnl::memory::format_tag::goihw : dnnl::memory::format_tag::oihw;
  }
};

// Uses Winograd's algorithm if that is faster, else oneDNN's kernels, or one of our own where
// oneDNN has only reference code. For weight gradients it uses Tandem's kernels if they are faster.
// The choice depends on extents, not on measured time, so that it is the same in every run. A fused
// ReLU, and the gradient of one before the layer, is a part of Winograd's last step, and of our own
// depthwise kernels'. After other kernels it is a pass over the result.
class ConvolutionCpu : public Needs {
  using Direct = ConvolutionKernel<Primitives>;

 public:
  ConvolutionCpu(const Binding& binding, const Call& call)
      : input_(binding.input(0)),
        output_(binding.output(0)),
        fuses_relu_(binding.fuses_relu()),
        follows_relu_(binding.follows_relu()),
        winograd_(WinogradConvolution::make(binding, call)) {
    if (winograd_ != nullptr) {
      static_cast<Needs&>(*this) = *winograd_;
      return;
    }
    depthwise_ = DepthwiseConvolution::make(binding);
    if (depthwise_ != nullptr) {
      static_cast<Needs&>(*this) = *depthwise_;
      if (tandem::cpu::has_library_kernels()) take_depthwise_passes(binding, call);
      return;
    }
    pixels_ = PixelConvolution::make(binding, call);
    if (pixels_ != nullptr) {
      static_cast<Needs&>(*this) = *pixels_;
      return;
    }
    own_ = OwnConvolution::make(binding, call);
    if (own_ != nullptr) {
      static_cast<Needs&>(*this) = *own_;
      return;
    }
    gradient_ = TapGradient::make(binding, call);
    tiles_ = TileGradient::make(binding, call);
    tandem_binding rest = binding.raw;
    const bool own = gradient_ != nullptr || tiles_ != nullptr;
    if (own) rest.flags &= ~uint32_t{TANDEM_WANTS_BACKWARD_WEIGHTS};
    direct_ = std::make_unique<Direct>(Binding(rest), call);
    static_cast<Needs&>(*this) = *direct_;
    if (!own) return;
    scratch_bytes = std::max(
        scratch_bytes, tiles_ != nullptr ? tiles_->scratch_bytes() : gradient_->scratch_bytes());
    algorithm += ", backward weights " + (tiles_ != nullptr ? tiles_->name() : gradient_->name());
  }
  static constexpr uint32_t dtypes = Direct::dtypes;
  static constexpr uint32_t fused_activations = relu_only;
  static constexpr uint32_t gradients_before = relu_only;
  // Winograd's algorithm reads and writes vectors of channels. With plain NCHW it has to copy
  // both tensors a few times.
  static LayoutOptions layouts(const Binding& binding) {
    const bool own = tandem::cpu::has_own_kernels_only(binding.input(0).dtype);
    LayoutOptions options = own ? OwnConvolution::layouts(binding) : Direct::layouts(binding);
    if (!WinogradConvolution::suits(binding)) {
      const bool by_pixels = PixelConvolution::suits(binding) && !is_depthwise(binding);
      return by_pixels ? PixelConvolution::layouts(binding) : options;
    }
    const int64_t element = binding.input(0).dtype == TANDEM_BFLOAT16 ? 2 : 4;
    const auto bytes = static_cast<double>(element * count(binding.input(0).shape));
    const bool folds = WinogradConvolution::folds(binding);
    for (tandem_layout_option& option : options) {
      const bool plain = (option.input == TANDEM_NCHW && !folds) || option.output == TANDEM_NCHW;
      option.extra_bytes = plain ? 10 * bytes : option.input == TANDEM_NHWC ? bytes / 8 : 0;
    }
    return options;
  }

  void forward(const Call& call, const Pass& pass) {
    if (winograd_ != nullptr) return winograd_->forward(call, pass);
    if (depthwise_ != nullptr && !taken_.forward) return depthwise_->forward(call, pass);
    pixels_ != nullptr ? pixels_->forward(call, pass)
    : own_ != nullptr  ? own_->forward(call, pass)
                       : direct_->forward(call, pass);
    if (!fuses_relu_) return;
    tandem::cpu::rectify(call.threads, output_.dtype, pass.raw.outputs[0], count(output_.shape));
  }
  void backward_data(const Call& call, const Pass& pass) {
    if (winograd_ != nullptr) return winograd_->backward_data(call, pass);
    if (depthwise_ != nullptr && !taken_.backward_data) {
      return depthwise_->backward_data(call, pass);
    }
    pixels_ != nullptr ? pixels_->backward_data(call, pass)
    : own_ != nullptr  ? own_->backward_data(call, pass)
                       : direct_->backward_data(call, pass);
    if (!follows_relu_) return;
    tandem::cpu::pass_through_relu(call.threads, input_.dtype, pass.raw.inputs[0],
                                   pass.raw.input_gradients[0], count(input_.shape));
  }
  void backward_weights(const Call& call, const Pass& pass) {
    if (winograd_ != nullptr) return winograd_->backward_weights(call, pass);
    if (depthwise_ != nullptr && !taken_.backward_weights) {
      return depthwise_->backward_weights(call, pass);
    }
    if (pixels_ != nullptr) return pixels_->backward_weights(call, pass);
    if (own_ != nullptr) return own_->backward_weights(call, pass);
    if (gradient_ != nullptr) return gradient_->run(call, pass);
    if (tiles_ != nullptr) return tiles_->run(call, pass);
    direct_->backward_weights(call, pass);
  }

 private:
  static bool is_depthwise(const Binding& binding) {
    const Shape& in = binding.input(0).shape;
    const tandem::layers::ConvolutionSettings settings(binding.attributes, in);
    return settings.group == in.c && settings.group == settings.outputs;
  }
  // The passes for which oneDNN has a kernel for depthwise convolutions that is faster: forward
  // with strides and with large kernels on small images, and with AVX-512 all.
  void take_depthwise_passes(const Binding& binding, const Call& call) {
    constexpr uint32_t data = TANDEM_WANTS_BACKWARD_DATA, weights = TANDEM_WANTS_BACKWARD_WEIGHTS;
    tandem_binding rest = binding.raw;
    if (!tandem::cpu::may_use(dnnl::cpu_isa::avx512_core)) rest.flags &= ~(data | weights);
    auto direct = std::make_unique<Direct>(Binding(rest), call);
    const auto is_for_depthwise = [](const std::string& name) {
      return name.find("_dw") != std::string::npos;
    };
    taken_ = {is_for_depthwise(direct->forward_name()),
              is_for_depthwise(direct->backward_data_name()),
              is_for_depthwise(direct->backward_weights_name())};
    if (!taken_.forward && !taken_.backward_data && !taken_.backward_weights) return;
    // Without the passes of our own, which would only need scratch memory.
    if (!taken_.backward_data) rest.flags &= ~data;
    if (!taken_.backward_weights) rest.flags &= ~weights;
    direct_ = std::make_unique<Direct>(Binding(rest), call);
    const std::string own = algorithm;
    algorithm = "forward " + (taken_.forward ? direct_->forward_name() : own);
    if (binding.has(data)) {
      algorithm +=
          ", backward data " + (taken_.backward_data ? direct_->backward_data_name() : own);
    }
    if (binding.has(weights)) {
      algorithm += ", backward weights " +
                   (taken_.backward_weights ? direct_->backward_weights_name() : own);
    }
    scratch_bytes = std::max(scratch_bytes, direct_->scratch_bytes);
  }

  // By direct_ in place of depthwise_.
  struct TakenPasses {
    bool forward = false, backward_data = false, backward_weights = false;
  };

  tandem_tensor input_, output_;
  bool fuses_relu_, follows_relu_;
  std::unique_ptr<WinogradConvolution> winograd_;
  std::unique_ptr<DepthwiseConvolution> depthwise_;
  std::unique_ptr<PixelConvolution> pixels_;
  std::unique_ptr<OwnConvolution> own_;
  TakenPasses taken_;
  std::unique_ptr<Direct> direct_;  // with the taken passes only if there is depthwise_
  // In place of direct_'s, at most one of them.
  std::unique_ptr<TapGradient> gradient_;
  std::unique_ptr<TileGradient> tiles_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return tandem::sdk::Plugin(host, "convolution", "1.0")
      .layer<Convolution>()
      .kernel<Convolution, ConvolutionCpu>("cpu")
      .table();
}
