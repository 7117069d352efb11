// layerwise as docs/design/strategies.md §2 has it: buckets, the way of their gradients and
// weights, who keeps what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/schedule/strategies/common/collectives.h"
#include "tests/schedule/plan_checks.h"

namespace tandem::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names(const std::vector<Bucket>& buckets) {
  std::vector<std::string> result;
  for (const Bucket& bucket : buckets) result.push_back(bucket.name);
  return result;
}

TEST(Buckets, AreLayersInTheOrderInWhichTheyGoBackward) {
  const Net net = small_net(8);
  EXPECT_THAT(names(make_buckets(net, 1)), ElementsAre("fc2", "fc1", "conv2", "conv1"));
}

TEST(Buckets, TakeMoreLayersUntilTheyHaveSoManyBytes) {
  const Net net = small_net(8);  // fc2 2 kB, fc1 64 kB, conv2 12 kB, conv1 2 kB
  EXPECT_THAT(names(make_buckets(net, 13000)), ElementsAre("fc1..fc2", "conv1..conv2"));
  const std::vector<Bucket> one = make_buckets(net, 1 << 20);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].layer, 0);
  EXPECT_EQ(one[0].weights.size(), net.weights.size());
}

TEST(Buckets, AreContiguousAndHoldEveryTrainedArrayOnce) {
  const Net net = normalised_net(8);
  for (const int64_t bytes : {int64_t{1}, int64_t{20000}, int64_t{1} << 30}) {
    std::set<int> seen;
    for (const Bucket& bucket : make_buckets(net, bytes)) {
      for (const int weight : bucket.weights) {
        const WeightArray& array = net.weights[size_t(weight)];
        EXPECT_TRUE(seen.insert(weight).second);
        EXPECT_GE(array.offset * 4, bucket.range.begin);
        EXPECT_LE((array.offset + array.count) * 4, bucket.range.end);
      }
    }
    for (size_t i = 0; i < net.weights.size(); ++i) {
      EXPECT_EQ(seen.contains(static_cast<int>(i)), net.weights[i].trained()) << i;
    }
  }
}

TEST(Buckets, LeaveOutLargeFrozenLayers) {
  const Net net = FakeNet("net", 4, {1, 1, 8, 8})
                      .inner_product("fc1", 512)
                      .inner_product("fc2", 512)
                      .inner_product("fc3", 16)
                      .loss()
                      .freeze("fc2")
                      .finish();
  const std::vector<Bucket> buckets = make_buckets(net, 1 << 30);
  EXPECT_THAT(names(buckets), ElementsAre("fc3", "fc1"));
}

TEST(Buckets, OfSharedWeightsWaitForTheirLastUser) {
  const Net net = FakeNet("net", 4, {1, 1, 4, 4})
                      .inner_product("fc1", 16)
                      .inner_product("fc2", 16)
                      .inner_product_sharing("fc3", "fc2")
                      .loss()
                      .finish();
  EXPECT_THAT(names(make_buckets(net, 1)), ElementsAre("fc2", "fc1"));
}

TEST(Slices, CoverTheRangeInOrder) {
  for (const int64_t bytes : {int64_t{4}, int64_t{64}, int64_t{1000}, int64_t{64 * 7}}) {
    int64_t end = 128;
    for (int i = 0; i < 5; ++i) {
      const Interval slice = slice_of({128, 128 + bytes}, i, 5);
      EXPECT_EQ(slice.begin, end);
      EXPECT_TRUE(slice.count() == 0 || slice.begin % 64 == 0);
      end += slice.count();
    }
    EXPECT_EQ(end, 128 + bytes);
  }
}

std::string text_of(const std::vector<BucketTransfer>& transfers) {
  std::string text;
  for (const BucketTransfer& transfer : transfers)
    text += fmt::format("{}{} ", transfer.is_broadcast ? "w" : "g", transfer.bucket);
  return text;
}

TEST(Moves, LetWeightsGoBackWhileNoGradientIsReady) {
  const Net net = small_net(8);
  const std::vector<Bucket> buckets = make_buckets(net, 1);
  // The last bucket comes long after the others.
  const TransferTimes times{{0, 1, 2, 100}, {1, 1, 1, 1}, {1, 1, 1, 1}};
  EXPECT_EQ(text_of(order_transfers(buckets, times, false, false)), "g0 g1 g2 w2 w1 w0 g3 w3 ");
}

TEST(Moves, LetGradientsGoFirstAndTheLowestLayersWeightsBackFirst) {
  const Net net = small_net(8);
  const std::vector<Bucket> buckets = make_buckets(net, 1);
  const TransferTimes times{{0, 0, 0, 0}, {5, 5, 5, 5}, {5, 5, 5, 5}};
  EXPECT_EQ(text_of(order_transfers(buckets, times, false, false)), "g0 g1 g2 g3 w3 w2 w1 w0 ");
  EXPECT_EQ(text_of(order_transfers(buckets, times, true, true)), "g0 g1 g2 g3 w3 w2 w1 w0 ");
}

TEST(Moves, OnLinksOfTheirOwnWeightsGoBackAtOnce) {
  const Net net = small_net(8);
  const std::vector<Bucket> buckets = make_buckets(net, 1);
  const TransferTimes times{{0, 0, 0, 0}, {5, 5, 5, 5}, {4, 4, 4, 4}};
  std::string returns;
  for (const BucketTransfer& transfer : order_transfers(buckets, times, true, false)) {
    if (transfer.is_broadcast) returns += fmt::format("w{} ", transfer.bucket);
  }
  EXPECT_EQ(returns, "w0 w1 w2 w3 ");
}

// Bytes from device to device.
std::map<std::pair<int, int>, int64_t> traffic(const Plan& plan, Stage stage) {
  std::map<std::pair<int, int>, int64_t> bytes;
  for (const Task& task : plan.tasks) {
    const auto* copy = std::get_if<CopyWork>(&task.work);
    if (copy == nullptr || task.stage != stage) continue;
    for (const CopySegment& segment : copy->segments) {
      bytes[{plan.buffers[size_t(segment.source.buffer)].device,
             plan.buffers[size_t(segment.target.buffer)].device}] += plan.bytes(segment.source);
    }
  }
  return bytes;
}

TEST(Ring, SendsOverEachOfItsLinksAllPartsButOneEachWay) {
  const Net net = small_net(8);
  constexpr int devices = 4;
  const Plan plan = build_plan("layerwise", layerwise_inputs(net, devices, "ring", 1 << 20));
  const int64_t all = make_buckets(net, 1 << 20)[0].range.count();
  for (const Stage stage : {stages::reduce_gradients, stages::broadcast_weights}) {
    const auto bytes = traffic(plan, stage);
    ASSERT_EQ(bytes.size(), size_t(devices));
    for (const auto& [ends, sent] : bytes) {
      EXPECT_EQ(ends.second, (ends.first + 1) % devices);
      EXPECT_NEAR(double(sent), double(all) * (devices - 1) / devices, 64 * devices);
    }
  }
}

TEST(Ring, SendsAndReceivesOnStreamsOfTheirOwn) {
  const Net net = small_net(8);
  const Plan plan = build_plan("layerwise", layerwise_inputs(net, 3, "ring", 1 << 20));
  EXPECT_THAT(task(plan, "reduce conv1..fc2 part 0 @1->@2").streams,
              ElementsAre(StreamId{2, StreamKind::communication}, StreamId{1, StreamKind::send}));
}

TEST(Ring, KeepsTheStateOfEachTrainedByteOnOneDevice) {
  const Net net = small_net(8);
  StrategyInputs inputs = layerwise_inputs(net, 3, "ring");
  inputs.solver_states = 2;
  const Plan plan = build_plan("layerwise", inputs);
  std::map<int, int64_t> kept;
  std::vector<int> owners(size_t(net.weight_floats), 0);
  for (const StatePlacement& part : plan.state_at) {
    kept[part.device] += part.weights.count();
    EXPECT_LE(part.weights.count(), part.stride);
    for (int64_t i = part.weights.begin / 4; i < part.weights.end / 4; ++i) ++owners[size_t(i)];
  }
  for (const WeightArray& array : net.weights) {
    for (int64_t i = array.offset; i < array.offset + array.count; ++i) {
      ASSERT_EQ(owners[size_t(i)], 1) << array.name;
    }
  }
  ASSERT_EQ(kept.size(), 3U);
  for (int device = 0; device < 3; ++device) {
    const int buffer = plan.find_buffer("state", device);
    ASSERT_GE(buffer, 0);
    EXPECT_LT(plan.buffers[size_t(buffer)].bytes, net.weight_floats * 4 * 2 / 2);
  }
}

TEST(Ring, WithNormsGathersGradientsAndUpdatesEverythingEverywhere) {
  const Net net = small_net(8);
  StrategyInputs inputs = layerwise_inputs(net, 3, "ring");
  inputs.needs_norms = true;
  const Plan plan = build_plan("layerwise", inputs);
  EXPECT_TRUE(traffic(plan, stages::broadcast_weights).empty());
  for (int device = 0; device < 3; ++device) {
    EXPECT_GE(find_task(plan, fmt::format("update fc1 @{}", device)), 0);
    EXPECT_GE(find_task(plan, fmt::format("norms fc1 @{}", device)), 0);
  }
  std::map<int, int64_t> kept;
  for (const StatePlacement& part : plan.state_at) kept[part.device] += part.weights.count();
  ASSERT_EQ(kept.size(), 3U);
  int64_t all = 0;
  for (const WeightArray& array : net.weights) all += array.count * 4;
  for (const auto& [device, bytes] : kept) EXPECT_GE(bytes, all) << device;
}

TEST(Tree, AddsPairsAndThenPairsOfPairs) {
  const Net net = small_net(8);
  const Plan plan = build_plan("layerwise", layerwise_inputs(net, 4, "tree", 1 << 20));
  std::vector<std::string> moved;
  for (const Task& task : plan.tasks) {
    const bool transfers =
        task.stage == stages::reduce_gradients || task.stage == stages::broadcast_weights;
    if (transfers && std::holds_alternative<CopyWork>(task.work)) moved.push_back(task.label);
  }
  EXPECT_THAT(moved, ElementsAre("reduce conv1..fc2 @1->@0", "reduce conv1..fc2 @3->@2",
                                 "reduce conv1..fc2 @2->@0", "broadcast conv1..fc2 @0->@2",
                                 "broadcast conv1..fc2 @0->@1", "broadcast conv1..fc2 @2->@3"));
}

// With clip_gradients no update may come before the last norm.
TEST(Layerwise, LetsClippedUpdatesWaitForAllGradients) {
  const Net net = small_net(8);
  for (const char* reduce : {"serial", "tree", "ring"}) {
    StrategyInputs inputs = layerwise_inputs(net, 2, reduce);
    inputs.needs_norms = inputs.clips_gradients = true;
    const Plan plan = build_plan("layerwise", inputs);
    EXPECT_LT(find_task(plan, "norms conv1 @0"), find_task(plan, "update fc2 @0")) << reduce;
  }
}

TEST(Layerwise, NamesTheReductionsItKnows) {
  const Net net = small_net(8);
  EXPECT_THAT(message_of([&] { (void)build_plan("layerwise", layerwise_inputs(net, 2, "star")); }),
              HasSubstr("--reduce star: unknown value; there are: serial, tree, ring"));
}

}  // namespace
}  // namespace tandem::test
