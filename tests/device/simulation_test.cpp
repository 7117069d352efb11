// The engine of virtual time that the backend `sim` and the planner share, and its links, without
// either of them.
#include "plugins/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace tandem::timing {
namespace {

constexpr int64_t kilobyte = 1000, large = 1'000'000;

Links links(int32_t devices, double bandwidth, double latency) {
  tandem_machine_options options{};
  options.device_count = devices;
  options.link_bandwidth = bandwidth;
  options.link_latency = latency;
  return {options, default_link_bandwidth};
}

// Devices 0 and 1 share a hub of 1 MB/s, which also ends the link of 4 MB/s from device 2.
class Hub {
 public:
  [[nodiscard]] Links links() const {
    tandem_machine_options options{};
    options.device_count = 3;
    const tandem_topology topology{
        sizeof(tandem_topology), 2,      bandwidths.data(), latencies.data(), begins.data(),
        channels.data(),         nullptr};
    options.topology = &topology;
    return {options, 0};
  }

 private:
  const std::array<double, 2> bandwidths{1e6, 4e6};
  const std::array<double, 9> latencies{0, 0.5, 0.5, 0.5, 0, 0.5, 0.5, 0.5, 0};
  const std::array<uint32_t, 10> begins{0, 0, 1, 3, 4, 4, 6, 8, 10, 10};
  const std::array<uint32_t, 10> channels{0, 0, 1, 0, 0, 1, 1, 0, 1, 0};
};

Operation taking(double seconds) {
  Operation operation;
  operation.seconds = seconds;
  return operation;
}
Operation copying(uint32_t stream, int32_t source, int32_t target,
                  std::span<const int64_t> copies) {
  Operation operation;
  operation.stream = stream;
  operation.source = source;
  operation.target = target;
  operation.copies = copies;
  return operation;
}

bool run(Simulation& simulation, const Operation& until) {
  return simulation.run([&] { return until.is_done; });
}

TEST(Links, TakeLatencyAndBytesOverTheSlowestChannel) {
  EXPECT_DOUBLE_EQ(links(2, 1e6, 0.5).seconds(0, 1, 2 * large), 2.5);
  EXPECT_DOUBLE_EQ(links(2, 0, 0).seconds(1, 0, 4'000'000'000), 1);
  EXPECT_DOUBLE_EQ(Hub().links().seconds(2, 0, 2 * large), 2.5);
}

TEST(Links, ServeOneCopyAfterTheOtherOnSharedChannels) {
  Links hub = Hub().links();
  EXPECT_DOUBLE_EQ(hub.reserve(0, 1, large, 0), 1.5);
  EXPECT_DOUBLE_EQ(hub.reserve(2, 1, large, 1), 3);  // its own channel is free, the hub is not
  EXPECT_DOUBLE_EQ(hub.reserve(0, 1, large, 5), 6.5);
}

TEST(Links, TellFromWhenACopyTakesNoLongerThanAlone) {
  Links hub = Hub().links();
  EXPECT_DOUBLE_EQ(hub.free_for(0, 1, large), 0);
  hub.reserve(0, 1, large, 1);
  EXPECT_DOUBLE_EQ(hub.free_for(1, 0, large), 2.5);
  EXPECT_DOUBLE_EQ(hub.reserve(1, 0, large, 2.5), 2.5 + hub.seconds(1, 0, large));
}

TEST(Links, LetSmallCopiesPassLargeOnesThatTheyDelay) {
  Links pair = links(2, 1e6, 0);
  EXPECT_DOUBLE_EQ(pair.reserve(0, 1, large, 0), 1);
  EXPECT_DOUBLE_EQ(pair.reserve(0, 1, kilobyte, 0.5), 0.501);
  EXPECT_DOUBLE_EQ(pair.reserve(0, 1, kilobyte, 0.5), 0.502);
  EXPECT_DOUBLE_EQ(pair.reserve(0, 1, large, 0.5), 2.002);
}

TEST(Simulation, AnOperationBeginsWhenAllThatItFollowsAreDone) {
  Simulation simulation(links(1, 0, 0));
  Operation a = taking(1), b = taking(3), c = taking(2), d = taking(1);
  simulation.follow(c, a);
  simulation.follow(c, b);
  d.begin = 10;
  simulation.follow(d, c);
  for (Operation* operation : {&d, &c, &b, &a}) simulation.issue(*operation);
  ASSERT_TRUE(run(simulation, d));
  EXPECT_DOUBLE_EQ(c.begin, 3);
  EXPECT_DOUBLE_EQ(c.end, 5);
  EXPECT_DOUBLE_EQ(d.begin, 10);
  Operation late = taking(1);
  simulation.follow(late, b);  // which is done
  simulation.issue(late);
  ASSERT_TRUE(run(simulation, late));
  EXPECT_DOUBLE_EQ(late.end, 4);
}

TEST(Simulation, ServesCopiesInTheOrderInWhichTheyBecomeReady) {
  const std::vector<int64_t> bytes{large};
  for (const bool is_reversed : {false, true}) {
    Simulation simulation(links(2, 1e6, 0));
    Operation before = taking(0.5), first = copying(7, 0, 1, bytes),
              second = copying(3, 0, 1, bytes), third = copying(4, 0, 1, bytes);
    simulation.follow(second, before);
    simulation.follow(third, before);  // ready together with `second`, whose stream is lower
    std::vector<Operation*> all{&before, &first, &second, &third};
    if (is_reversed) std::reverse(all.begin(), all.end());
    for (Operation* operation : all) simulation.issue(*operation);
    ASSERT_TRUE(run(simulation, third));
    EXPECT_DOUBLE_EQ(first.end, 1);
    EXPECT_DOUBLE_EQ(second.end, 2);
    EXPECT_DOUBLE_EQ(third.end, 3);
  }
}

TEST(Simulation, CopiesOfOneOperationCompeteOneByOne) {
  const std::vector<int64_t> two{large, large}, one{large};
  Simulation simulation(links(2, 1e6, 0));
  Operation both = copying(0, 0, 1, two), other = copying(1, 0, 1, one);
  other.begin = 0.5;
  simulation.issue(both);
  simulation.issue(other);
  ASSERT_TRUE(run(simulation, both));
  EXPECT_DOUBLE_EQ(other.end, 2);  // ready before the second
  EXPECT_DOUBLE_EQ(both.end, 3);
}

TEST(Simulation, TheHostHasAChannelToAndFromEachDevice) {
  const std::vector<int64_t> bytes{12'000'000};
  Simulation simulation(links(2, 1e6, 0));
  Operation in = copying(0, TANDEM_HOST, 0, bytes), again = copying(1, TANDEM_HOST, 0, bytes),
            out = copying(2, 0, TANDEM_HOST, bytes), within = copying(3, 1, 1, bytes);
  for (Operation* operation : {&in, &again, &out, &within}) simulation.issue(*operation);
  EXPECT_FALSE(simulation.run([] { return false; }));
  EXPECT_DOUBLE_EQ(in.end, 1e-3);
  EXPECT_DOUBLE_EQ(again.end, 2e-3);
  EXPECT_DOUBLE_EQ(out.end, 1e-3);
  EXPECT_DOUBLE_EQ(within.end, 0.4e-3);
}

TEST(Simulation, ReturnsFalseWhenNothingCanBegin) {
  Simulation simulation(links(1, 0, 0));
  Operation never = taking(1), waiting = taking(1);
  simulation.follow(waiting, never);
  simulation.issue(waiting);
  EXPECT_FALSE(run(simulation, waiting));
  simulation.issue(never);
  EXPECT_TRUE(run(simulation, waiting));
}

TEST(Simulation, AnOperationThatBeginsMayIssueOthersAndDecideWhatItTakes) {
  Simulation simulation(links(1, 0, 0));
  Operation first = taking(0), second = taking(1);
  simulation.issue(first);
  ASSERT_TRUE(simulation.run([&] { return second.is_done; },
                             [&](Operation& operation) {
                               if (&operation != &first) return;
                               operation.seconds = 2;
                               simulation.follow(second, first);
                               simulation.issue(second);
                             }));
  EXPECT_DOUBLE_EQ(second.end, 3);
}

}  // namespace
}  // namespace tandem::timing
