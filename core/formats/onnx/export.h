// A trained net as an ONNX model: what its class scores need of the testing net, with constants for
// weights. Layers are written as operators of the default domain that also older runtimes know.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/numbers/shape.h"
#include "core/formats/onnx/picture.h"
#include "core/model/net/net.h"

namespace tandem {

struct OnnxOptions {
  bool softmax = false;  // probabilities instead of scores, where the net has no Softmax
  bool sigmoid = false;  // probabilities of several labels instead of scores
  // The scores are values that were scaled: each times its deviation plus its mean is written.
  std::vector<float> means, deviations;
  bool fold_batch_norm = false;  // into the weights of the convolution before it
  // The size of the pictures that the model takes, R,G,B or gray, 0 to 255: resized, cropped and
  // normalized in it. Without one it takes what the net takes.
  struct Size {
    int64_t height = 0, width = 0;
  };
  std::optional<Size> picture;
  bool any_picture = false;  // pictures of any size, which the model resizes; from opset 18 on
  int64_t opset = OnnxGraph::least_opset;
};

struct OnnxModel {
  std::string bytes;        // the file, without metadata
  Shape input{1, 0, 0, 0};  // of one row
  int64_t classes = 0;      // values of a row of the output
  bool gives_probabilities = false;
  std::vector<std::string> folded;  // BatchNorm layers that are in the weights of others
};

// `net`: of the testing phase, in float32 and NCHW throughout (NetOptions::device_kind ""), with
// class scores; `weights` is its whole weight array. Throws Error for a layer that has no ONNX form
// ("layer 'x' (Type): ... (file:line)"), and for pictures smaller than the steps need.
[[nodiscard]] OnnxModel make_onnx(const Net& net, const std::vector<float>& weights,
                                  const PictureSteps& steps, const OnnxOptions& options);

}  // namespace tandem
