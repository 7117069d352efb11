// Convolution: Caffe's layer, over images, with groups, padding, stride and dilation. Output
// extents are rounded down. Weights are (outputs, inputs / group, kernel_h, kernel_w), and an
// optional bias.
#pragma once

#include <vector>

#include "layers/common/engine_parameter.h"
#include "layers/common/product_weights.h"
#include "layers/common/window.h"
#include "plugins/sdk.h"

namespace tandem::layers {

// The parameters of a convolution or of its transpose.
struct ConvolutionParameters {
  int64_t outputs, group;
  bool bias;
  Window window;

  // Throws Refusal if parameters contradict each other.
  ConvolutionParameters(const sdk::Attributes& attributes, const sdk::Shape& input)
      : outputs(attributes.integer("num_output")),
        group(attributes.integer("group")),
        bias(attributes.boolean("bias_term")),
        window(read_window(attributes)) {
    if (outputs % group != 0) {
      throw sdk::invalid("num_output ", outputs, " is not divisible by group ", group);
    }
    if (input.c % group != 0) {
      throw sdk::invalid("the input's ", input.c, " channels are not divisible by group ", group);
    }
  }

 private:
  static Axes axes(const sdk::Attributes& attributes, const AxesNames& names, Axes absent) {
    (void)written(attributes, names);
    if (attributes.is_set(names.h)) {
      return {attributes.integer(names.h), attributes.integer(names.w)};
    }
    return repeated_axes(attributes, names.both, absent);
  }
  static Window read_window(const sdk::Attributes& attributes) {
    if (!written(attributes, kernel_names)) {
      throw sdk::invalid("the kernel has no size: write kernel_size, or kernel_h and kernel_w");
    }
    return {axes(attributes, kernel_names, {}), axes(attributes, stride_names, {1, 1}),
            axes(attributes, pad_names, {0, 0}), repeated_axes(attributes, "dilation", {1, 1})};
  }
};

struct ConvolutionSettings : ConvolutionParameters {
  // Also throws Refusal if the kernel does not fit the input.
  ConvolutionSettings(const sdk::Attributes& attributes, const sdk::Shape& input)
      : ConvolutionParameters(attributes, input), direct(attributes.text("algorithm") == "DIRECT") {
    require_fit(window, input);
  }

  bool direct;  // directly, by the definition, even if another algorithm is faster

  [[nodiscard]] sdk::Shape output_shape(const sdk::Shape& input) const {
    const Axes kernel = effective_kernel(window);
    return {input.n, outputs, (input.h + 2 * window.pad.h - kernel.h) / window.stride.h + 1,
            (input.w + 2 * window.pad.w - kernel.w) / window.stride.w + 1};
  }
  [[nodiscard]] sdk::Shape weight_shape(const sdk::Shape& input) const {
    return {outputs, input.c / group, window.kernel.h, window.kernel.w};
  }
  // The number of additions and multiplications of one pass.
  [[nodiscard]] double operations(const sdk::Shape& input) const {
    const sdk::Shape weight = weight_shape(input);
    return 2 * static_cast<double>(sdk::count(output_shape(input))) *
           static_cast<double>(weight.c * weight.h * weight.w);
  }
};

// A layer with these parameters and weights. Settings: the parameters, with the layer's shapes.
template <class Settings>
struct ConvolutionLike : sdk::LayerType {
  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "convolution_param";
    const double most = 1e6;
    return {
        sdk::integer(block, "num_output").required().range(1, most).help("output channels"),
        sdk::integers(block, "kernel_size").range(1, most).help("one value, or height and width"),
        sdk::integers(block, "stride").range(1, most).help("one value, or height and width; 1"),
        sdk::integers(block, "pad").range(0, most).help("zeros on each side, as stride; 0"),
        sdk::integers(block, "dilation").range(1, most).help("distance of kernel points; 1"),
        sdk::integer(block, "kernel_h").range(1, most).help("kernel height, with kernel_w"),
        sdk::integer(block, "kernel_w").range(1, most).help("kernel width, with kernel_h"),
        sdk::integer(block, "stride_h").range(1, most).help("vertical stride, with stride_w"),
        sdk::integer(block, "stride_w").range(1, most).help("horizontal stride, with stride_h"),
        sdk::integer(block, "pad_h").range(0, most).help("vertical padding, with pad_w"),
        sdk::integer(block, "pad_w").range(0, most).help("horizontal padding, with pad_h"),
        sdk::integer(block, "group")
            .by_default("1")
            .range(1, most)
            .help("number of independent groups of channels"),
        sdk::boolean(block, "bias_term").by_default("true").help("add a learned bias"),
        sdk::filler(block, "weight_filler").help("initial weights"),
        sdk::filler(block, "bias_filler").help("initial bias"),
        engine_parameter(block),
        sdk::integer(block, "axis").by_default("1").range(1, 1).help("the channel axis"),
        sdk::boolean(block, "force_nd_im2col").by_default("false").help("ignored"),
    };
  }

  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    const sdk::Shape& input = query.input(0);
    return {Settings(query.attributes, input).output_shape(input)};
  }

  std::vector<sdk::Weight> weights(const sdk::Query& query) const override {
    const Settings settings(query.attributes, query.input(0));
    const sdk::Shape shape = settings.weight_shape(query.input(0));
    const int64_t area = shape.h * shape.w;
    return product_weights(query.attributes, shape, shape.c * area, shape.n * area,
                           settings.outputs);
  }

  tandem_layer_cost cost(const sdk::Query& query) const override {
    const sdk::Shape& input = query.input(0);
    const Settings settings(query.attributes, input);
    const sdk::Shape output = settings.output_shape(input);
    const sdk::Shape weight = settings.weight_shape(input);
    const auto x = static_cast<double>(sdk::count(input));
    const auto y = static_cast<double>(sdk::count(output));
    const auto w = static_cast<double>(sdk::count(weight));
    const double flops = settings.operations(input);
    const double bytes = 4 * (x + y + w);
    const double bias = settings.bias ? y : 0;
    return make_cost(flops + bias, flops, flops + bias, bytes, bytes, bytes);
  }
};

struct Convolution : ConvolutionLike<ConvolutionSettings> {
  std::vector<sdk::Parameter> parameters() const override {
    std::vector<sdk::Parameter> result = ConvolutionLike::parameters();
    result.push_back(sdk::word("convolution_param", "algorithm")
                         .by_default("AUTO")
                         .one_of("AUTO|DIRECT")
                         .help("AUTO: the fastest, also Winograd's; DIRECT: never Winograd's"));
    return result;
  }
  const char* name() const override { return "Convolution"; }
  const char* help() const override { return "slides num_output learned kernels over the image"; }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_BACKWARD_READS_INPUTS | TANDEM_SAVES_NOTHING;
  }
};

}  // namespace tandem::layers
