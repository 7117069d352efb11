// The ONNX forms of layers with weights or statistics of channels: normalizations, convolutions and
// products. Each writes the layer's operators into the model, with a BatchNorm folded into the
// weights before it on request. Error for a layer that ONNX cannot express.
#pragma once

#include <vector>

#include "core/formats/onnx/layers.h"

namespace tandem::onnx_forms {

// Of values for each channel, to be combined with x. Some runtimes take no leading axis of
// extent 1.
[[nodiscard]] std::vector<int64_t> channel_extents(const OnnxValue& x, int64_t count);

void scale(OnnxNet& model, const Layer& layer);
void bias(OnnxNet& model, const Layer& layer);
void batch_norm(OnnxNet& model, const Layer& layer);
void layer_norm(OnnxNet& model, const Layer& layer);
void convolution(OnnxNet& model, const Layer& layer);
void deconvolution(OnnxNet& model, const Layer& layer);
void inner_product(OnnxNet& model, const Layer& layer);

}  // namespace tandem::onnx_forms
