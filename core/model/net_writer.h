// Builds a net in C++, layer by layer. Each call writes the text of a prototxt file and checks only its
// syntax; build_net() checks the rest.
//
//   const NetDefinition net = NetWriter("tiny")
//       .data(28)
//       .layer("conv1", "Convolution", "convolution_param { num_output: 16 kernel_size: 5 }")
//       .layer("relu1", "ReLU")
//       .layer("score", "InnerProduct", "inner_product_param { num_output: 10 }")
//       .loss()
//       .definition();
#pragma once

#include <string>
#include <vector>

#include "core/model/definition.h"

namespace tandem {

class NetWriter {
 public:
  explicit NetWriter(const std::string& name);

  // Data and labels; square crops of `size` pixels (0: whatever the images have).
  NetWriter& data(int64_t size = 0);
  // A layer that reads the last layer's output and makes one named like itself. `fields`: the rest
  // of the layer's message. Error with the layer's name if `fields` is not prototxt.
  NetWriter& layer(const std::string& name, const std::string& type,
                   const std::string& fields = "");
  // The same with inputs and outputs named.
  NetWriter& layer(const std::string& name, const std::string& type,
                   const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                   const std::string& fields = "");
  // SoftmaxWithLoss over the last output and the labels, and top-1 accuracy in testing.
  NetWriter& loss();

  [[nodiscard]] NetDefinition definition() const;

 private:
  std::string text_;
  std::string last_ = "data";
};

}  // namespace tandem
