// Convolution on the cpu.
#include "layers/convolution/convolution.h"
#include "layers/convolution/convolution_kernel.h"

namespace {

using tandem::layers::Convolution;
using tandem::layers::ConvolutionKernel;

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

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return tandem::sdk::Plugin(host, "convolution", "1.0")
      .layer<Convolution>()
      .kernel<Convolution, ConvolutionKernel<Primitives>>("cpu")
      .table();
}
