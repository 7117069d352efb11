#include "core/model/net/net_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/net_test.h"

namespace tandem {
namespace {

using namespace test;
using testing::AllOf;
using testing::HasSubstr;

const std::string reported_net = data_layer + convolution("a", "data", "a", 4) +
                                 layer("relu", "ReLU", "a", "a") +
                                 inner_product_layer("ip", "a", "ip") + loss_layer;

TEST(NetReport, CountsEveryWeightOnce) {
  const Net net = build(reported_net);
  int64_t counted = 0, expected = 0;
  for (const LayerSummary& row : summarize(net)) counted += row.weights;
  for (const WeightArray& weight : net.weights) expected += weight.count;
  EXPECT_EQ(counted, expected);
}

TEST(NetReport, GivesAnInPlaceLayerNoMemoryOfItsOwn) {
  const Net net = build(reported_net);
  for (const LayerSummary& row : summarize(net)) {
    const Layer& layer = net.layers[static_cast<size_t>(row.layer)];
    const Tensor& output = net.tensors[static_cast<size_t>(layer.outputs[0])];
    EXPECT_EQ(row.output_bytes, layer.runs_in_place ? 0 : element_count(output.shape) * 4)
        << layer.name;
  }
}

TEST(NetReport, CountsTheBackwardWorkThatIsDone) {
  const Net net = build(reported_net);
  const Net testing = build(reported_net, TANDEM_TEST);
  for (const LayerSummary& row : summarize(testing)) EXPECT_EQ(row.backward_flops, 0);
  // The first layer has no input gradient.
  const auto a = static_cast<size_t>(net.find_layer("a"));
  EXPECT_EQ(summarize(net)[a].backward_flops,
            net.cost(static_cast<int>(a), net.batch).backward_weights_flops);
}

TEST(NetReport, DrawsAnEdgeForEveryUseOfATensor) {
  const Net net = build(reported_net);
  const std::string dot = to_dot(net);
  size_t edges = 0, uses = 0;
  for (size_t at = dot.find("->"); at != std::string::npos; at = dot.find("->", at + 2)) ++edges;
  for (const Tensor& tensor : net.tensors) uses += tensor.consumers.size();
  EXPECT_EQ(edges, uses);
  EXPECT_THAT(dot, AllOf(HasSubstr("digraph net"), HasSubstr("\"a\\nConvolution\\n"),
                         HasSubstr("[label=\"3x8x8\"]")));
}

}  // namespace
}  // namespace tandem
