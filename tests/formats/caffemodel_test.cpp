#include "core/formats/caffemodel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/net/initial_weights.h"
#include "tests/model/net_test.h"
#include "tests/model/wire.h"
#include "tests/support/sparse_files.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using namespace test;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Caffemodel : public testing::Test {
 protected:
  std::vector<CaffeLayer> read(const std::string& bytes) {
    return read_caffemodel(folder_.write("a.caffemodel", bytes));
  }
  std::string failure(const std::string& bytes) {
    return message_of([&] { (void)read(bytes); });
  }
  TempFolder folder_;
};

TEST_F(Caffemodel, OfTheCurrentFormIsReadLayerByLayer) {
  const auto layers =
      read(wire_bytes(1, "net") + wire_layer("data", {}) +
           wire_layer("ip", {wire_blob({2, 3}, {1, 2, 3, 4, 5, 6}), wire_blob({2}, {-1, 0.5F})}));
  ASSERT_EQ(layers.size(), 1U);
  EXPECT_EQ(layers[0].name, "ip");
  ASSERT_EQ(layers[0].blobs.size(), 2U);
  EXPECT_THAT(layers[0].blobs[0].shape, ElementsAre(2, 3));
  EXPECT_THAT(layers[0].blobs[0].values, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(layers[0].blobs[1].values, ElementsAre(-1, 0.5F));
}

TEST_F(Caffemodel, OfTheV1FormIsReadWithItsFourSizes) {
  const std::string blob = wire_number(1, 1) + wire_number(2, 1) + wire_number(3, 2) +
                           wire_number(4, 2) + wire_packed<float>(5, {1, 2, 3, 4});
  const auto layers =
      read(wire_bytes(2, wire_bytes(4, "fc8") + wire_number(5, 14) + wire_bytes(6, blob)));
  ASSERT_EQ(layers.size(), 1U);
  EXPECT_EQ(layers[0].name, "fc8");
  EXPECT_THAT(layers[0].blobs[0].shape, ElementsAre(1, 1, 2, 2));
}

TEST_F(Caffemodel, OfTheV0FormIsReadToo) {
  const auto layers =
      read(wire_bytes(2, wire_bytes(1, wire_bytes(1, "conv1") + wire_bytes(2, "conv") +
                                           wire_bytes(50, wire_blob({1}, {7})))));
  ASSERT_EQ(layers.size(), 1U);
  EXPECT_EQ(layers[0].name, "conv1");
  EXPECT_THAT(layers[0].blobs[0].values, ElementsAre(7));
}

TEST_F(Caffemodel, MayHoldDoubles) {
  const auto layers = read(wire_layer(
      "ip", {wire_bytes(7, wire_bytes(1, wire_varint(2))) + wire_packed<double>(8, {0.25, -3})}));
  EXPECT_THAT(layers.at(0).blobs.at(0).values, ElementsAre(0.25F, -3));
}

TEST_F(Caffemodel, CutShortAnywhereIsRefusedWithItsPath) {
  const std::string whole = wire_layer("ip", {wire_blob({2, 3}, {1, 2, 3, 4, 5, 6})});
  for (const size_t length : {whole.size() - 1, whole.size() / 2, size_t{3}}) {
    EXPECT_THAT(failure(whole.substr(0, length)),
                AllOf(HasSubstr("a.caffemodel' cannot be used"), HasSubstr("truncated")))
        << length;
  }
}

TEST_F(Caffemodel, ThatIsNearlyAllAHoleIsRefused) {
  constexpr uint64_t floats = uint64_t{1} << 28;
  const std::string values = wire_varint(5 << 3 | 2) + wire_varint(4 * floats);
  const std::string blob =
      wire_varint(7 << 3 | 2) + wire_varint(values.size() + 4 * floats) + values;
  const std::string layer = wire_bytes(1, "ip") + blob;
  const std::string begin =
      wire_varint(100 << 3 | 2) + wire_varint(layer.size() + 4 * floats) + layer;
  write_sparse(folder_ / "a.caffemodel", begin, begin.size() + 4 * floats);
  if (!is_sparse(folder_ / "a.caffemodel")) GTEST_SKIP() << "this file system tells of no holes";
  EXPECT_THAT(message_of([&] { (void)read_caffemodel(folder_ / "a.caffemodel"); }),
              AllOf(HasSubstr("a.caffemodel' has 1073741"), HasSubstr(" are on the disk")));
}

TEST_F(Caffemodel, WithoutWeightsOrOfAnotherKindIsRefused) {
  EXPECT_THAT(failure(""), HasSubstr("no layer in it has weights"));
  EXPECT_THAT(failure("name: 'a prototxt'"), HasSubstr("a.caffemodel' cannot be used"));
  EXPECT_THAT(message_of([&] { (void)read_caffemodel(folder_ / "none.caffemodel"); }),
              HasSubstr("none.caffemodel' cannot be read: No such file"));
  EXPECT_THAT(message_of([&] { (void)read_caffemodel(folder_.path()); }),
              HasSubstr("cannot be read"));
}

TEST_F(Caffemodel, WhoseSizesDoNotMatchItsValuesIsRefused) {
  EXPECT_THAT(failure(wire_layer("ip", {wire_blob({2, 3}, {1, 2})})),
              AllOf(HasSubstr("layer 'ip' has 2 values"), HasSubstr("2x3 (6)")));
  EXPECT_THAT(failure(wire_layer("ip", {wire_blob({1U << 31, 1U << 31}, {1})})),
              HasSubstr("layer 'ip' has an array of size 2147483648x2147483648"));
}

TEST_F(Caffemodel, ThatWasWrittenReadsBackWithCaffesSizes) {
  const Net net = build(data_layer + convolution("a", "data", "a", 4) +
                        inner_product_layer("ip", "a", "ip") + loss_layer);
  const std::vector<float> values = initial_weights(net, 3);
  write_caffemodel(folder_ / "w.caffemodel", net, values);
  const auto layers = read_caffemodel(folder_ / "w.caffemodel");
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[0].name, "a");
  EXPECT_EQ(layers[0].blobs[0].shape.size(), 4U);
  EXPECT_EQ(layers[1].blobs[0].shape.size(), 2U);
  EXPECT_EQ(layers[1].blobs[1].shape.size(), 1U);
  for (size_t l = 0; l < 2; ++l) {
    const Layer& layer = net.layers[static_cast<size_t>(net.find_layer(layers[l].name))];
    for (size_t i = 0; i < layer.weights.size(); ++i) {
      const WeightArray& weight = net.weights[static_cast<size_t>(layer.weights[i])];
      const auto first = values.begin() + weight.offset;
      EXPECT_EQ(layers[l].blobs[i].values, std::vector<float>(first, first + weight.count));
    }
  }
}

TEST_F(Caffemodel, ThatCannotBeWrittenLeavesNothing) {
  const Net net = build(data_layer + inner_product_layer("ip", "data", "ip") + loss_layer);
  const std::vector<float> values = initial_weights(net, 3);
  EXPECT_THAT(message_of([&] { write_caffemodel(folder_ / "no/w.caffemodel", net, values); }),
              HasSubstr("no/w.caffemodel' cannot be created"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

}  // namespace
}  // namespace tandem
