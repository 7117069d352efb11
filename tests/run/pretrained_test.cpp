#include "core/run/weights/pretrained.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/formats/caffemodel.h"
#include "core/formats/safetensors.h"
#include "core/model/file/definition.h"
#include "core/model/net/initial_weights.h"
#include "core/model/passes/build_net.h"
#include "core/plugin/registry.h"
#include "core/use/export_weights.h"
#include "tests/model/wire.h"
#include "tests/support/message_of.h"
#include "tests/support/sparse_files.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using namespace test;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Two InnerProducts over 1x2x2 pixels: "first" 3x4, "last" 2x3.
// With `sharing`, a third one, "more", has its weights from "first" and a bias of its own.
Net two_layers(const std::string& last = "last", const std::string& sharing = "") {
  const auto dense = [](const std::string& name, const std::string& from, const std::string& to,
                        int outputs, const std::string& more) {
    return fmt::format(
        "layer {{ name: '{}' type: 'InnerProduct' bottom: '{}' top: '{}' {}"
        "  inner_product_param {{ num_output: {} weight_filler {{ type: 'xavier' }} }} }}\n",
        name, from, to, more, outputs);
  };
  std::string text = "layer { name: 'data' type: 'Data' top: 'data' top: 'label' }\n";
  text += dense("first", "data", "first", 3, sharing);
  if (!sharing.empty()) {
    text += dense("more", "data", "more", 3, sharing) +
            "layer { name: 'sum' type: 'Eltwise' bottom: 'first' bottom: 'more' top: 'sum' }\n";
  }
  text += dense(last, sharing.empty() ? "first" : "sum", "last", 2, "");
  text +=
      "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'last' bottom: 'label' top: 'loss' }\n";
  NetOptions options;
  options.data = {1, 1, 2, 2};
  options.batch = 2;
  static const Registry registry = Registry::with_defaults();
  return build_net(parse_net(parse_text_format(text, "two.prototxt"), "two.prototxt"), registry,
                   options);
}

std::vector<float> values_of(const Net& net, const std::vector<float>& all,
                             const std::string& name) {
  for (const WeightArray& weight : net.weights) {
    const auto first = all.begin() + weight.offset;
    if (weight.name == name) return {first, first + weight.count};
  }
  return {};
}

class PretrainedWeights : public testing::Test {
 protected:
  PretrainedWeights() : net_(two_layers()), values_(initial_weights(net_, 1)) {}
  std::string refusal(const std::filesystem::path& path) {
    const std::vector<float> before = values_;
    const std::string message = message_of([&] { (void)read_pretrained(path, net_, &values_); });
    EXPECT_EQ(values_, before) << "weights were changed";
    return message;
  }
  std::string first_blob_ = wire_blob({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  std::string first_bias_ = wire_blob({3}, {21, 22, 23});
  TempFolder folder_;
  Net net_;
  std::vector<float> values_;
};

TEST_F(PretrainedWeights, OfCaffeAreCopiedToLayersOfTheSameName) {
  const std::vector<float> initial = values_;
  const auto file = folder_.write("a.caffemodel", wire_layer("first", {first_blob_, first_bias_}) +
                                                      wire_layer("fc8", {first_blob_}));
  const Pretrained report = read_pretrained(file, net_, &values_);
  EXPECT_THAT(report.copied, ElementsAre("first"));
  EXPECT_THAT(report.missing, ElementsAre("last"));
  EXPECT_THAT(report.unused, ElementsAre("fc8"));
  EXPECT_THAT(values_of(net_, values_, "first.weight"),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
  EXPECT_THAT(values_of(net_, values_, "first.bias"), ElementsAre(21, 22, 23));
  EXPECT_EQ(values_of(net_, values_, "last.weight"), values_of(net_, initial, "last.weight"));
  EXPECT_THAT(to_text(report, file),
              AllOf(HasSubstr("1 layers from"), HasSubstr("initial values: last"),
                    HasSubstr("not in the net: fc8")));
}

// ---- a BatchNorm and a Scale

class PretrainedScales : public testing::Test {
 protected:
  static Net net() {
    static const Registry registry = Registry::with_defaults();
    const std::string text =
        "layer { name: 'data' type: 'Data' top: 'data' top: 'label' } layer { name: 'bn' type: "
        "'BatchNorm' bottom: 'data' top: 'x' batch_norm_param { scale_bias: true } } layer { name: "
        "'last' type: 'InnerProduct' bottom: 'x' top: 'last' inner_product_param { num_output: 2 "
        "} } layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'last' bottom: 'label' }";
    NetOptions options;
    options.data = {1, 2, 2, 2};
    options.batch = 2;
    return build_net(parse_net(parse_text_format(text, "bn.prototxt"), "bn.prototxt"), registry,
                     options);
  }
  // bottom (3) and top (4) of the layer, and what lies between both in the file.
  std::filesystem::path file(const std::string& bottom_of_scale, const std::string& between = "") {
    const auto two = [](float a, float b) { return wire_blob({2}, {a, b}); };
    return folder_.write("bn.caffemodel",
                         wire_layer("bn", {two(1, 2), two(3, 4), wire_blob({1}, {5})}, "BatchNorm",
                                    wire_bytes(3, "data") + wire_bytes(4, "x")) +
                             between +
                             wire_layer("scale", {two(6, 7), two(8, 9)}, "Scale",
                                        bottom_of_scale.empty()
                                            ? ""
                                            : wire_bytes(3, bottom_of_scale) + wire_bytes(4, "x")));
  }
  std::string refusal(const std::filesystem::path& path) {
    std::vector<float> values = initial_weights(net_, 1);
    return message_of([&] { (void)read_pretrained(path, net_, &values); });
  }
  TempFolder folder_;
  const Net net_ = net();
};

TEST_F(PretrainedScales, OfACaffemodelBecomePartOfTheBatchNorm) {
  for (const char* bottom : {"x", ""}) {
    std::vector<float> values = initial_weights(net_, 1);
    const Pretrained report = read_pretrained(file(bottom), net_, &values);
    EXPECT_THAT(report.copied, ElementsAre("bn"));
    EXPECT_TRUE(report.unused.empty());
    EXPECT_THAT(values_of(net_, values, "bn.mean"), ElementsAre(1, 2));
    EXPECT_THAT(values_of(net_, values, "bn.scale_factor"), ElementsAre(5));
    EXPECT_THAT(values_of(net_, values, "bn.weight"), ElementsAre(6, 7));
    EXPECT_THAT(values_of(net_, values, "bn.bias"), ElementsAre(8, 9));
  }
}

TEST_F(PretrainedScales, OfAnotherLayerAreNotTaken) {
  const char* const reason = "a BatchNorm and a Scale instead of this layer";
  EXPECT_THAT(refusal(file("data")), HasSubstr(reason));
  EXPECT_THAT(refusal(file("x", wire_layer("relu", {}, "ReLU"))), HasSubstr(reason));
}

TEST_F(PretrainedScales, AreALayerOfTheirOwnInAFileForCaffe) {
  write_weights(folder_ / "out.caffemodel", net_, initial_weights(net_, 1));
  const auto layers = read_caffemodel(folder_ / "out.caffemodel");
  ASSERT_EQ(layers.size(), 3U);
  EXPECT_EQ(layers[0].name, "bn");
  EXPECT_EQ(layers[0].type, "BatchNorm");
  EXPECT_EQ(layers[0].blobs.size(), 3U);
  EXPECT_EQ(layers[1].name, "scale");
  EXPECT_EQ(layers[1].type, "Scale");
  EXPECT_EQ(layers[1].position, layers[0].position + 1);
  EXPECT_EQ(layers[1].bottom, layers[0].top);
  ASSERT_EQ(layers[1].blobs.size(), 2U);
  EXPECT_THAT(layers[1].blobs[0].values, ElementsAre(1, 1));
  EXPECT_THAT(layers[1].blobs[1].values, ElementsAre(0, 0));
}

TEST_F(PretrainedScales, OfAFileThatWasWrittenHereComeBack) {
  std::vector<float> values = initial_weights(net_, 1), other = initial_weights(net_, 2);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  write_weights(folder_ / "out.caffemodel", net_, values);
  (void)read_pretrained(folder_ / "out.caffemodel", net_, &other);
  for (const WeightArray& weight : net_.weights) {
    EXPECT_EQ(values_of(net_, other, weight.name), values_of(net_, values, weight.name));
  }
}

TEST_F(PretrainedScales, AfterAnotherLayerOfAFileThatWasWrittenHereAreNotTaken) {
  static const Registry registry = Registry::with_defaults();
  const std::string text =
      "layer { name: 'data' type: 'Data' top: 'data' top: 'label' } layer { name: 'bn' type: "
      "'BatchNorm' bottom: 'data' top: 'x' } layer { name: 'relu' type: 'ReLU' bottom: 'x' top: "
      "'x' } layer { name: 'scale' type: 'Scale' bottom: 'x' top: 'x' scale_param { bias_term: "
      "true } } layer { name: 'last' type: 'InnerProduct' bottom: 'x' top: 'last' "
      "inner_product_param { num_output: 2 } } layer { name: 'loss' type: 'SoftmaxWithLoss' "
      "bottom: 'last' bottom: 'label' }";
  NetOptions options;
  options.data = {1, 2, 2, 2};
  options.batch = 2;
  const Net apart = build_net(parse_net(parse_text_format(text, "bn.prototxt"), "bn.prototxt"),
                              registry, options);
  write_weights(folder_ / "out.caffemodel", apart, initial_weights(apart, 1));
  EXPECT_THAT(refusal(folder_ / "out.caffemodel"),
              HasSubstr("a BatchNorm and a Scale instead of this layer"));
}

TEST_F(PretrainedScales, WithoutABiasHaveOneOfZeros) {
  const auto two = [](float a, float b) { return wire_blob({2}, {a, b}); };
  const auto path = folder_.write(
      "bn.caffemodel", wire_layer("bn", {two(1, 2), two(3, 4), wire_blob({1}, {5})}, "BatchNorm") +
                           wire_layer("scale", {two(6, 7)}, "Scale"));
  std::vector<float> values = initial_weights(net_, 1);
  (void)read_pretrained(path, net_, &values);
  EXPECT_THAT(values_of(net_, values, "bn.weight"), ElementsAre(6, 7));
  EXPECT_THAT(values_of(net_, values, "bn.bias"), ElementsAre(0, 0));
}

TEST_F(PretrainedWeights, WithTheSizesOfOldFilesFit) {
  const auto file = folder_.write(
      "a.caffemodel", wire_layer("first", {wire_blob({1, 1, 3, 4}, std::vector<float>(12, 5)),
                                           wire_blob({1, 1, 1, 3}, {6, 6, 6})}));
  (void)read_pretrained(file, net_, &values_);
  EXPECT_EQ(values_of(net_, values_, "first.weight"), std::vector<float>(12, 5));
}

TEST_F(PretrainedWeights, OfAnotherShapeAreRefusedAndNothingIsChanged) {
  const auto file = folder_.write(
      "a.caffemodel",
      wire_layer("first", {first_blob_, first_bias_}) +
          wire_layer("last", {wire_blob({3, 3}, std::vector<float>(9, 5)), first_bias_}));
  EXPECT_THAT(
      refusal(file),
      AllOf(HasSubstr("a.caffemodel' does not fit net"), HasSubstr("'last[0]' is 3x3"),
            HasSubstr("layer 'last' (InnerProduct) needs 2x3"), HasSubstr("give it another name")));
  // As many values, in another order.
  const auto turned = folder_.write(
      "b.caffemodel",
      wire_layer("first", {wire_blob({4, 3}, std::vector<float>(12, 5)), first_bias_}));
  EXPECT_THAT(refusal(turned), HasSubstr("'first[0]' is 4x3"));
}

// It has some KB on the disk.
TEST_F(PretrainedWeights, OfATerabyteAreRefusedWithoutTakingMemory) {
  write_sparse_safetensors(folder_ / "a.safetensors", "first.weight");
  EXPECT_THAT(refusal(folder_ / "a.safetensors"),
              AllOf(HasSubstr("'first.weight' is 274877906944"), HasSubstr("needs 3x4")));
  write_sparse_safetensors(folder_ / "b.safetensors", "other.weight");
  EXPECT_THAT(refusal(folder_ / "b.safetensors"), HasSubstr("none of its layers (other)"));
}

TEST_F(PretrainedWeights, WithAnotherNumberOfArraysAreRefused) {
  const auto file = folder_.write("a.caffemodel", wire_layer("first", {first_blob_}));
  EXPECT_THAT(refusal(file),
              AllOf(HasSubstr("1 arrays for layer 'first' (InnerProduct)"), HasSubstr("needs 2")));
}

TEST_F(PretrainedWeights, OfAnotherNetAreRefusedWithBothNets) {
  const auto file = folder_.write("a.caffemodel", wire_layer("conv9", {first_blob_}));
  EXPECT_THAT(refusal(file), AllOf(HasSubstr("is of another net"), HasSubstr("(conv9)"),
                                   HasSubstr("(first, last)")));
}

TEST_F(PretrainedWeights, AreWrittenAndReadInBothFormats) {
  for (const char* name : {"w.caffemodel", "w.safetensors"}) {
    write_weights(folder_ / name, net_, values_);
    std::vector<float> again = initial_weights(net_, 2);
    EXPECT_NE(again, values_);
    const Pretrained report = read_pretrained(folder_ / name, net_, &again);
    EXPECT_THAT(report.copied, ElementsAre("first", "last")) << name;
    EXPECT_EQ(again, values_) << name;
  }
  EXPECT_THAT(message_of([&] { write_weights(folder_ / "w.bin", net_, values_); }),
              AllOf(HasSubstr("w.bin"), HasSubstr(".safetensors or .caffemodel")));
}

TEST_F(PretrainedWeights, NeverReplaceAFile) {
  const auto file = folder_.write("w.safetensors", "a user's");
  EXPECT_THAT(message_of([&] { write_weights(file, net_, values_); }),
              HasSubstr("w.safetensors' exists already"));
  EXPECT_EQ(read_text(file), "a user's");
}

TEST_F(PretrainedWeights, ThatAreNotFiniteAreRefusedWithTheirArray) {
  const auto file = folder_.write(
      "a.caffemodel", wire_layer("first", {first_blob_, wire_blob({3}, {1, std::nanf(""), 2})}));
  EXPECT_THAT(refusal(file), AllOf(HasSubstr("'first[1]'"), HasSubstr("not finite")));
}

TEST_F(PretrainedWeights, ThatLayersShareAreReadInBothFormats) {
  const Net net = two_layers("last", "param { name: 'shared' }");
  const std::vector<float> values = initial_weights(net, 1);
  for (const char* name : {"w.caffemodel", "w.safetensors"}) {
    write_weights(folder_ / name, net, values);
    std::vector<float> again = initial_weights(net, 2);
    const Pretrained report = read_pretrained(folder_ / name, net, &again);
    EXPECT_THAT(report.copied, ElementsAre("first", "more", "last")) << name;
    EXPECT_EQ(again, values) << name;
  }
}

TEST_F(PretrainedWeights, SkipARenamedLastLayer) {
  write_weights(folder_ / "w.safetensors", net_, values_);
  const Net other = two_layers("last_flowers");
  std::vector<float> fresh = initial_weights(other, 2);
  const Pretrained report = read_pretrained(folder_ / "w.safetensors", other, &fresh);
  EXPECT_THAT(report.copied, ElementsAre("first"));
  EXPECT_THAT(report.missing, ElementsAre("last_flowers"));
  EXPECT_THAT(report.unused, ElementsAre("last"));
}

TEST(Pretrained, AFileOfManyUnknownArraysIsRefusedInAShortLine) {
  const TempFolder folder;
  const std::vector<float> nothing;
  std::vector<NamedArray> arrays;
  for (int i = 0; i < 20'000; ++i) {
    arrays.push_back({fmt::format("unknown{}.weight", i), {0}, nothing.data()});
  }
  const std::filesystem::path file = folder.path() / "many.safetensors";
  write_safetensors(file, arrays, {});
  const Net net = two_layers();
  std::vector<float> values(static_cast<size_t>(net.weight_floats));
  const std::string message = message_of([&] { (void)read_pretrained(file, net, &values); });
  EXPECT_THAT(message, AllOf(HasSubstr("is of another net"), HasSubstr(" and 19995 more")));
  EXPECT_LT(message.size(), 2000U);
}

}  // namespace
}  // namespace tandem
