// sample.ChannelScale: y = scale[c] * x. A layer with a trained weight and both backward passes,
// which supports only plain NCHW: in a net with other layouts the host inserts reorders around it.

#include "plugins/sdk.h"

namespace {

using namespace tandem::sdk;

struct ChannelScale : LayerType {
  const char* name() const override { return "sample.ChannelScale"; }
  const char* help() const override { return "multiplies every channel by a trained factor"; }
  std::vector<Parameter> parameters() const override {
    return {filler("sample_channel_scale_param", "filler").help("initial factors")};
  }
  std::vector<Weight> weights(const Query& query) const override {
    const int64_t channels = query.input(0).c;
    Weight scale{.name = "scale", .shape = {channels, 1, 1, 1}};
    if (query.attributes.is_set("filler")) {
      scale.filler = "filler";
    } else {
      scale.initial = 1;
    }
    return {scale};
  }
  tandem_layer_cost cost(const Query& query) const override {
    const auto elements = static_cast<double>(count(query.input(0)));
    return make_cost(elements, elements, 2 * elements, 8 * elements, 8 * elements, 8 * elements);
  }
};

class ChannelScaleCpu {
 public:
  ChannelScaleCpu(const Binding& binding, const Call&) : shape_(binding.input(0).shape) {}

  void forward(const Call&, const Pass& pass) const {
    scale(pass.input(0), pass.weight(0), pass.output(0));
  }
  void backward_data(const Call&, const Pass& pass) const {
    scale(pass.output_gradient(0), pass.weight(0), pass.input_gradient(0));
  }
  void backward_weights(const Call&, const Pass& pass) const {
    const int64_t area = shape_.h * shape_.w;
    float* gradient = pass.weight_gradient(0);
    for (int64_t c = 0; c < shape_.c; ++c) {
      double sum = pass.accumulate() ? gradient[c] : 0;
      for (int64_t n = 0; n < shape_.n; ++n) {
        const float* x = pass.input(0) + (n * shape_.c + c) * area;
        const float* dy = pass.output_gradient(0) + (n * shape_.c + c) * area;
        for (int64_t i = 0; i < area; ++i) sum += static_cast<double>(x[i]) * dy[i];
      }
      gradient[c] = static_cast<float>(sum);
    }
  }

 private:
  void scale(const float* source, const float* factors, float* target) const {
    const int64_t area = shape_.h * shape_.w;
    for (int64_t plane = 0; plane < shape_.n * shape_.c; ++plane) {
      const float factor = factors[plane % shape_.c];
      for (int64_t i = 0; i < area; ++i)
        target[plane * area + i] = factor * source[plane * area + i];
    }
  }

  Shape shape_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "sample-channel-scale", "1.0")
      .layer<ChannelScale>()
      .kernel<ChannelScale, ChannelScaleCpu>("cpu")
      .table();
}
