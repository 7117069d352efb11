// The ONNX forms of layers with weights or statistics of channels: normalizations, convolutions and
// products, with a BatchNorm folded into the weights before it on request.
#pragma once

#include <string>
#include <vector>

#include "core/formats/onnx/onnx_net.h"

namespace tandem::onnx_forms {

// A constant "conv1.<name>" with a value for each channel, to be combined with x.
std::string channel_constant(OnnxLayer& l, const OnnxValue& x, const char* name,
                             const std::vector<float>& values);

void scale(OnnxLayer& l);
void bias(OnnxLayer& l);
void batch_norm(OnnxLayer& l);
void layer_norm(OnnxLayer& l);
void convolution(OnnxLayer& l);
void deconvolution(OnnxLayer& l);
void inner_product(OnnxLayer& l);

}  // namespace tandem::onnx_forms
