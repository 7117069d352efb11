// Plans that several executors run together, each with its own machine. The ranks are threads here.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "core/device/communicator.h"
#include "core/schedule/plan/localize.h"
#include "tests/schedule/handmade.h"
#include "tests/support/thread_transport.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;

constexpr int devices_in_all = 4;
constexpr int64_t floats = 6;

// Every device adds what its neighbor before it has, then doubles it; in a ring.
Plan ring() {
  Maker maker(devices_in_all);
  std::vector<Region> own, received;
  for (int device = 0; device < devices_in_all; ++device) {
    std::vector<float> values;
    for (int64_t i = 0; i < floats; ++i) values.push_back(float(device * 10 + i) / 64);
    own.push_back(maker.constant("own", device, values));
    received.push_back(maker.floats("received", device, floats));
  }
  for (int device = 0; device < devices_in_all; ++device) {
    const int next = (device + 1) % devices_in_all;
    maker.copy(fmt::format("send @{}->@{}", device, next),
               {communication(next), communication(device)}, received[size_t(next)],
               own[size_t(device)]);
    maker.add(fmt::format("add @{}", next), compute(next), own[size_t(next)],
              {received[size_t(next)]});
  }
  return maker.derived();
}

// What each device has after some micro-batches.
std::vector<std::vector<float>> run_by_ranks(int ranks, int64_t micro_batches) {
  ThreadWorld world(ranks);
  const int each = devices_in_all / ranks;
  std::vector<std::vector<float>> result(devices_in_all);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      world.join(rank);
      const Communicator communicator(ThreadWorld::transport());
      ExecutorOptions options;
      options.ranks = &communicator;
      Rig rig(localize(ring(), equal_ranks(ranks, each), rank), cpu(), {}, options);
      rig.run(micro_batches);
      for (int device = 0; device < each; ++device) {
        result[size_t(rank * each + device)] = rig.read("own", device, floats);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return result;
}

TEST(RanksOfThreads, ComputeWhatOneProcessDoes) {
  Rig alone(ring(), cpu());
  alone.run(5);
  std::vector<std::vector<float>> expected;
  for (int device = 0; device < devices_in_all; ++device) {
    expected.push_back(alone.read("own", device, floats));
  }
  EXPECT_EQ(run_by_ranks(2, 5), expected);
  EXPECT_EQ(run_by_ranks(4, 5), expected);
}

TEST(RanksOfThreads, EndATaskThatWaitsForAMessageWhenTheyGiveUp) {
  ThreadWorld world(2);
  world.join(1);
  const Communicator communicator(ThreadWorld::transport());
  ExecutorOptions options;
  options.ranks = &communicator;
  Rig rig(localize(ring(), equal_ranks(2, 2), 1), cpu(), {}, options);
  rig.executor->issue(0, {});  // rank 0 never sends
  communicator.abort();
  EXPECT_THAT(message_of([&] { rig.executor->drain(); }),
              HasSubstr("receive send @1->@2 from rank 0"));
}

TEST(RanksOfThreads, AreNamedInTheReportOfAStuckStep) {
  ThreadWorld world(2);
  world.join(1);
  const Communicator communicator(ThreadWorld::transport());
  ExecutorOptions options;
  options.ranks = &communicator;
  options.watchdog_seconds = 0.2;
  Rig rig(localize(ring(), equal_ranks(2, 2), 1), cpu(), {}, options);
  rig.executor->issue(0, {});
  EXPECT_THAT(message_of([&] { rig.executor->drain(); }),
              HasSubstr("receive send @1->@2 from rank 0"));
  communicator.abort();
}

TEST(RanksOfThreads, NeedATransportForMessages) {
  EXPECT_THAT(message_of([] { Rig rig(localize(ring(), equal_ranks(2, 2), 1), cpu()); }),
              HasSubstr("devices 'cpu' send no messages to other ranks"));
}

}  // namespace
}  // namespace tandem::test
