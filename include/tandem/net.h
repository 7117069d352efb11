// Builds a net in C++, layer by layer. Each call writes the text of a prototxt file and checks only
// its syntax.
//
//   const std::string net = NetWriter("tiny")
//       .data(28)
//       .layer("conv1", "Convolution", "convolution_param { num_output: 16 kernel_size: 5 }")
//       .layer("relu1", "ReLU")
//       .layer("score", "InnerProduct", "inner_product_param { num_output: 10 }")
//       .loss()
//       .text();
//
// TrainOptions::net_text and ProfileOptions::net_text take the text; train() and profile() check
// it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

class NetWriter {
 public:
  explicit NetWriter(const std::string& name);

  // Data and labels; square crops of `size` pixels (0: the size of the images).
  NetWriter& data(int64_t size = 0);
  // A layer that reads the last layer's output and makes one of its own name. `fields`: the rest of
  // the layer's message. Throws Error with the layer's name if `fields` is not prototxt.
  NetWriter& layer(const std::string& name, const std::string& type,
                   const std::string& fields = "");
  // The same with inputs and outputs named.
  NetWriter& layer(const std::string& name, const std::string& type,
                   const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                   const std::string& fields = "");
  // SoftmaxWithLoss over the last output and the labels, and top-1 accuracy in testing.
  NetWriter& loss();

  // The net as prototxt.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::string last_ = "data";
};

// The state that a net is built in, Caffe's NetState, for the include and exclude rules of its
// layers.
struct NetState {
  int64_t level = 0;
  std::vector<std::string> stages;
  friend bool operator==(const NetState&, const NetState&) = default;
};

}  // namespace tandem
