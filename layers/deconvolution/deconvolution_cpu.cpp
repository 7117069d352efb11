// Deconvolution on the cpu: oneDNN's, which uses a convolution's backward pass as forward pass, or
// our own, which does the same, where oneDNN has only reference code.
#include "layers/convolution/convolution_kernel.h"
#include "layers/convolution/own_convolution.h"
#include "layers/deconvolution/deconvolution.h"

namespace {

using namespace tandem::sdk;
using tandem::layers::ConvolutionKernel;
using tandem::layers::Deconvolution;
using OwnDeconvolution =
    tandem::layers::OwnConvolution<tandem::layers::DeconvolutionSettings, true>;

struct Primitives {
  using Settings = tandem::layers::DeconvolutionSettings;
  using Forward = dnnl::deconvolution_forward;
  using BackwardData = dnnl::deconvolution_backward_data;
  using BackwardWeights = dnnl::deconvolution_backward_weights;
  static constexpr auto algorithm = dnnl::algorithm::deconvolution_direct;
  static constexpr bool takes_plain_images = false;
  // Inputs before outputs, as in Caffe.
  static dnnl::memory::format_tag plain(bool grouped) {
    return grouped ? dnnl::memory::format_tag::giohw : dnnl::memory::format_tag::iohw;
  }
};

class DeconvolutionCpu : public Needs {
  using Library = ConvolutionKernel<Primitives>;

 public:
  DeconvolutionCpu(const Binding& binding, const Call& call)
      : own_(OwnDeconvolution::make(binding, call)) {
    if (own_ == nullptr) library_ = std::make_unique<Library>(binding, call);
    static_cast<Needs&>(*this) = own_ != nullptr ? static_cast<const Needs&>(*own_) : *library_;
  }

  static constexpr uint32_t dtypes = Library::dtypes;
  static LayoutOptions layouts(const Binding& binding) {
    const bool own = tandem::cpu::has_own_kernels_only(binding.input(0).dtype);
    return own ? OwnDeconvolution::layouts(binding) : Library::layouts(binding);
  }

  void forward(const Call& call, const Pass& pass) {
    own_ != nullptr ? own_->forward(call, pass) : library_->forward(call, pass);
  }
  void backward_data(const Call& call, const Pass& pass) {
    own_ != nullptr ? own_->backward_data(call, pass) : library_->backward_data(call, pass);
  }
  void backward_weights(const Call& call, const Pass& pass) {
    own_ != nullptr ? own_->backward_weights(call, pass) : library_->backward_weights(call, pass);
  }

 private:
  std::unique_ptr<OwnDeconvolution> own_;  // in place of oneDNN's
  std::unique_ptr<Library> library_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return tandem::sdk::Plugin(host, "deconvolution", "1.0")
      .layer<Deconvolution>()
      .kernel<Deconvolution, DeconvolutionCpu>("cpu")
      .table();
}
