// Nets made by hand for tests of plans: a chain of layers whose types have shapes, weights and
// costs, but no kernels. Layouts are plain; relu runs in place. The result has the properties that
// core/model promises for a Net.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/model/net/net.h"
#include "core/plugin/attributes.h"
#include "tests/support/fake_layers.h"

namespace tandem::test {

// FakeNet("small", 8, {1, 3, 16, 16}).convolution("conv1", 16, 3).inner_product("fc1", 10).loss()
// .finish()
class FakeNet {
 public:
  FakeNet(const std::string& name, int64_t batch, const Shape& sample,
          int32_t phase = TANDEM_TRAIN) {
    net_.name = name;
    net_.phase = phase;
    net_.batch = batch;
    net_.data = top_ = add_tensor("data", {batch, sample.c, sample.h, sample.w}, -1);
    net_.label = add_tensor("label", {batch, 1, 1, 1}, -1);
  }

  FakeNet& convolution(const std::string& name, int64_t outputs, int64_t kernel, int64_t stride = 1,
                       int64_t pad = 0) {
    const int64_t channels = top_shape().c;
    add_layer(name, fake::convolution, {top_}, window(outputs, kernel, stride, pad));
    add_weight("weight", {outputs, channels, kernel, kernel});
    add_weight("bias", {outputs, 1, 1, 1});
    return *this;
  }
  FakeNet& inner_product(const std::string& name, int64_t outputs) {
    const Shape in = top_shape();
    add_layer(name, fake::inner_product, {top_}, window(outputs, 0, 1, 0));
    add_weight("weight", {outputs, in.c * in.h * in.w, 1, 1});
    add_weight("bias", {outputs, 1, 1, 1});
    return *this;
  }
  // With the weights of another layer of the same shape.
  FakeNet& inner_product_sharing(const std::string& name, const std::string& with) {
    const Layer other = layer_named(with);
    add_layer(name, fake::inner_product, {top_}, other.attributes);
    net_.layers.back().weights = other.weights;
    return *this;
  }
  FakeNet& pooling(const std::string& name, int64_t kernel, int64_t stride) {
    add_layer(name, fake::pooling, {top_}, window(0, kernel, stride, 0));
    return *this;
  }
  FakeNet& relu(const std::string& name) {
    const int below = top_;
    add_layer(name, fake::relu, {top_}, window(0, 0, 1, 0));
    net_.layers.back().runs_in_place = true;
    net_.tensors.back().alias_of = below;
    return *this;
  }
  // In place, with a running mean.
  FakeNet& batch_norm(const std::string& name) {
    const int below = top_;
    add_layer(name, fake::batch_norm, {top_}, window(0, 0, 1, 0));
    net_.layers.back().runs_in_place = true;
    net_.tensors.back().alias_of = below;
    add_weight("mean", {top_shape().c, 1, 1, 1});
    net_.weights.back().kind = TANDEM_STATE;
    return *this;
  }
  // Not in place: its backward pass reads its input.
  FakeNet& batch_norm_scale(const std::string& name) {
    add_layer(name, fake::batch_norm_scale, {top_}, window(0, 0, 1, 0));
    const Shape channels{top_shape().c, 1, 1, 1};
    for (const char* state : {"mean", "variance"}) {
      add_weight(state, channels);
      net_.weights.back().kind = TANDEM_STATE;
    }
    add_weight("bias", channels);
    return *this;
  }
  FakeNet& loss(const std::string& name = "loss", double weight = 1) {
    add_scalar(name, fake::loss, weight);
    return *this;
  }
  FakeNet& accuracy(const std::string& name = "accuracy") {
    add_scalar(name, fake::accuracy, 0);
    return *this;
  }
  // The kernels of convolutions and FC layers fuse the ReLUs after them.
  FakeNet& with_activations_joined() {
    for (Layer& relu : net_.layers) {
      if (relu.type != &fake::relu) continue;
      const int maker = net_.tensors[static_cast<size_t>(relu.inputs[0])].producer;
      Layer& made_by = net_.layers.at(static_cast<size_t>(maker));
      if (made_by.type != &fake::convolution && made_by.type != &fake::inner_product) continue;
      made_by.activation = TANDEM_ACTIVATION_RELU;
      relu.fused_into = maker;
    }
    return *this;
  }
  // lr_mult 0 for all weights of the layer.
  FakeNet& freeze(const std::string& name) {
    for (const int weight : layer_named(name).weights) {
      net_.weights[static_cast<size_t>(weight)].rate_multiplier = 0;
    }
    return *this;
  }

  // Determines which passes and gradients are wanted: from the loss back to the first layer with
  // trained weights.
  Net finish() {
    bool below = false;  // whether an earlier layer is trained
    for (Layer& layer : net_.layers) {
      bool trains = false;
      for (const int weight : layer.weights) {
        trains |= net_.weights[static_cast<size_t>(weight)].trained();
      }
      const bool is_shown_only =
          layer.has(TANDEM_METRIC) || (layer.has(TANDEM_LOSS) && layer.loss_weights.front() == 0);
      if (net_.phase == TANDEM_TRAIN && !is_shown_only) {
        layer.wants_backward_weights = trains;
        layer.wants_backward_data = below;
        if (below) net_.tensors[static_cast<size_t>(layer.inputs.front())].has_gradient = true;
      }
      below |= trains;
    }
    return net_;
  }

 private:
  static std::shared_ptr<const Attributes> window(int64_t outputs, int64_t kernel, int64_t stride,
                                                  int64_t pad) {
    auto attributes = std::make_shared<Attributes>();
    for (const auto& [name, value] : {std::pair("outputs", outputs), std::pair("kernel", kernel),
                                      std::pair("stride", stride), std::pair("pad", pad)}) {
      attributes->set(name, {value, true, {}});
    }
    return attributes;
  }
  [[nodiscard]] const Shape& top_shape() const {
    return net_.tensors[static_cast<size_t>(top_)].shape;
  }
  [[nodiscard]] const Layer& layer_named(const std::string& name) const {
    size_t i = 0;
    while (net_.layers.at(i).name != name) ++i;
    return net_.layers[i];
  }
  int add_tensor(const std::string& name, const Shape& shape, int producer) {
    Tensor tensor;
    tensor.name = name;
    tensor.shape = shape;
    tensor.producer = producer;
    net_.tensors.push_back(std::move(tensor));
    return static_cast<int>(net_.tensors.size()) - 1;
  }
  // Its output becomes the top.
  void add_layer(const std::string& name, const tandem_layer_type& type,
                 const std::vector<int>& inputs, std::shared_ptr<const Attributes> attributes) {
    const int index = static_cast<int>(net_.layers.size());
    Layer layer;
    layer.name = name;
    layer.type = &type;
    layer.attributes = std::move(attributes);
    layer.inputs = inputs;
    layer.loss_weights = {0};
    layer.random_index = static_cast<uint32_t>(index);
    std::vector<Shape> shapes;
    for (const int input : inputs) {
      shapes.push_back(net_.tensors[static_cast<size_t>(input)].shape);
      net_.tensors[static_cast<size_t>(input)].consumers.push_back(index);
    }
    const tandem_layer_query query{sizeof(tandem_layer_query),           net_.phase,
                                   layer.attributes->handle(),           shapes.data(),
                                   static_cast<uint32_t>(shapes.size()), 1};
    Shape output{};
    type.shapes(&query, &output);
    top_ = add_tensor(name, output, index);
    layer.outputs = {top_};
    net_.layers.push_back(std::move(layer));
  }
  void add_scalar(const std::string& name, const tandem_layer_type& type, double loss_weight) {
    const int scores = net_.prediction = top_;
    add_layer(name, type, {scores, net_.label}, window(0, 0, 1, 0));
    Layer& layer = net_.layers.back();
    layer.loss_weights = {loss_weight};
    net_.scalars.push_back(
        {name, static_cast<int>(net_.layers.size()) - 1, 0, layer.outputs.front(), loss_weight});
    top_ = scores;
  }
  void add_weight(const std::string& name, const Shape& shape) {
    Layer& layer = net_.layers.back();
    WeightArray weight;
    weight.name = layer.name + "." + name;
    weight.layer = static_cast<int>(net_.layers.size()) - 1;
    weight.shape = shape;
    weight.count = element_count(shape);
    weight.offset = net_.weight_floats;
    net_.weight_floats += (weight.count + 15) / 16 * 16;
    layer.weights.push_back(static_cast<int>(net_.weights.size()));
    net_.weights.push_back(std::move(weight));
  }

  Net net_;
  int top_ = -1;
};

// Two convolutions and two FC layers; weight counts are not all multiples of 16.
inline Net small_net(int64_t batch, int32_t phase = TANDEM_TRAIN) {
  FakeNet net("small", batch, {1, 3, 16, 16}, phase);
  net.convolution("conv1", 16, 3, 1, 1).relu("relu1").pooling("pool1", 2, 2);
  net.convolution("conv2", 20, 3, 1, 1).relu("relu2").pooling("pool2", 2, 2);
  net.inner_product("fc1", 50).relu("relu3").inner_product("fc2", 10);
  if (phase == TANDEM_TEST) net.accuracy();
  return net.loss().finish();
}

// Three FC layers alone; 9 samples a batch.
inline const Net& dense_net() {
  static const Net net = FakeNet("dense", 9, {1, 1, 5, 5})
                             .inner_product("fc1", 21)
                             .relu("relu1")
                             .inner_product("fc2", 18)
                             .relu("relu2")
                             .inner_product("fc3", 10)
                             .loss()
                             .finish();
  return net;
}

// The same as small_net() with batch normalization after the convolutions and the first FC layer.
inline Net normalised_net(int64_t batch, int32_t phase = TANDEM_TRAIN) {
  FakeNet net("normalized", batch, {1, 3, 16, 16}, phase);
  net.convolution("conv1", 16, 3, 1, 1).batch_norm("norm1").relu("relu1").pooling("pool1", 2, 2);
  net.convolution("conv2", 20, 3, 1, 1).batch_norm("norm2").relu("relu2").pooling("pool2", 2, 2);
  net.inner_product("fc1", 50).batch_norm("norm3").relu("relu3").inner_product("fc2", 10);
  if (phase == TANDEM_TEST) net.accuracy();
  return net.loss().finish();
}

// With outputs that can be computed again: those of norm1 and norm2 with the ReLUs on them.
inline Net scaled_net(int64_t batch) {
  FakeNet net("scaled", batch, {1, 3, 16, 16});
  net.convolution("conv1", 16, 3, 1, 1).batch_norm_scale("norm1").relu("relu1");
  net.convolution("conv2", 20, 3, 1, 1).batch_norm_scale("norm2").relu("relu2");
  net.pooling("pool2", 2, 2).convolution("conv3", 8, 3);
  return net.inner_product("fc1", 50).relu("relu3").inner_product("fc2", 10).loss().finish();
}

// The layers of AlexNet that have weights or change shapes.
inline Net alexnet(int64_t batch, int32_t phase = TANDEM_TRAIN) {
  FakeNet net("alexnet", batch, {1, 3, 227, 227}, phase);
  net.convolution("conv1", 96, 11, 4).relu("relu1").pooling("pool1", 3, 2);
  net.convolution("conv2", 256, 5, 1, 2).relu("relu2").pooling("pool2", 3, 2);
  net.convolution("conv3", 384, 3, 1, 1).relu("relu3");
  net.convolution("conv4", 384, 3, 1, 1).relu("relu4");
  net.convolution("conv5", 256, 3, 1, 1).relu("relu5").pooling("pool5", 3, 2);
  net.inner_product("fc6", 4096).relu("relu6").inner_product("fc7", 4096).relu("relu7");
  return net.inner_product("fc8", 1000).loss().finish();
}

}  // namespace tandem::test
