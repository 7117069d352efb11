#include "core/model/adapted/adapted.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"

namespace tandem {
namespace {

const std::string head =
    "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' inner_product_param { "
    "num_output: 10 } }\n"
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n";
const std::string accuracy =
    "layer { name: 'acc' type: 'Accuracy' bottom: 'ip' bottom: 'label' top: 'acc' "
    "include { phase: TEST } }\n";
const std::string accuracy5 =
    "layer { name: 'acc5' type: 'Accuracy' bottom: 'ip' bottom: 'label' top: 'acc5' "
    "include { phase: TEST } accuracy_param { top_k: 5 } }\n";

TEST(ImageSize, ReplacesTheCropOfEveryDataLayer) {
  const NetDefinition net = read_net_text(
      "layer { name: 'd' type: 'Data' top: 'data' top: 'label' include { phase: TRAIN } "
      "transform_param { mirror: true crop_size: 224 } }\n"
      "layer { name: 'd' type: 'Data' top: 'data' top: 'label' include { phase: TEST } }\n" +
      head);
  const NetDefinition smaller = with_image_size(net, 32);
  EXPECT_EQ(smaller.input_shape().h, 32);
  for (const int32_t phase : {TANDEM_TRAIN, TANDEM_TEST}) {
    EXPECT_EQ(smaller.transform(phase)->crop_height, 32);
    EXPECT_EQ(smaller.transform(phase)->crop_width, 32);
  }
  EXPECT_TRUE(smaller.transform(TANDEM_TRAIN)->mirror);
  EXPECT_EQ(net.input_shape().h, 224) << "the original must not change";
  EXPECT_EQ(read_net_text(write_net(smaller)).input_shape().w, 32);
}

TEST(ImageSize, ReplacesTheShapeOfAnInputLayer) {
  const NetDefinition net = read_net_text(
      "layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: 8 dim: 1 dim: 28 "
      "dim: 28 } } }\n"
      "layer { name: 'label' type: 'Input' top: 'label' input_param { shape { dim: 8 } } }\n" +
      head);
  const NetDefinition larger = with_image_size(net, 40);
  const Shape shape = larger.net_inputs(TANDEM_TRAIN).at(0).shape;
  EXPECT_EQ(shape.c, 1);
  EXPECT_EQ(shape.h, 40);
  EXPECT_EQ(shape.w, 40);
  EXPECT_EQ(larger.net_inputs(TANDEM_TRAIN).at(1).role, NetInput::Role::label);
  EXPECT_EQ(larger.batch_size(TANDEM_TRAIN), 8);
}

TEST(ImageSize, IsRefusedForANetWithoutImages) {
  EXPECT_THROW((void)with_image_size(read_net_text(head), 32), Error);
}

TEST(TrainingAccuracy, IsThatOfTesting) {
  const std::string data = "layer { name: 'd' type: 'Data' top: 'data' top: 'label' }\n";
  const NetDefinition net = read_net_text(data + head + accuracy5 + accuracy);
  EXPECT_EQ(training_accuracy(net), "");
  EXPECT_EQ(training_accuracy(with_training_accuracy(net)), "acc");
  EXPECT_EQ(training_accuracy(with_training_accuracy(read_net_text(data + head + accuracy5))), "");
}

}  // namespace
}  // namespace tandem
