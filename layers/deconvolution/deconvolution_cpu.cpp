// Deconvolution on the cpu: oneDNN's, which uses a convolution's backward pass as forward pass.
#include "layers/convolution/convolution_kernel.h"
#include "layers/deconvolution/deconvolution.h"

namespace {

using tandem::layers::ConvolutionKernel;
using tandem::layers::Deconvolution;

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

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return tandem::sdk::Plugin(host, "deconvolution", "1.0")
      .layer<Deconvolution>()
      .kernel<Deconvolution, ConvolutionKernel<Primitives>>("cpu")
      .table();
}
