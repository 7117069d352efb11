// What each rank runs of a plan: all ranks together do what one process does.
#include "core/schedule/plan/localize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/schedule/handmade.h"
#include "tests/schedule/plan_promises.h"
#include "tests/schedule/rank_simulation.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;

// Adds and copies on all streams of several devices. A copy runs on a stream of either side, or on
// both; sums stay within a device.
Plan random_plan(uint64_t seed, int devices) {
  Random random(seed, stream_of("plans of ranks"));
  const auto below = [&](int count) {
    return static_cast<int>(random.below(static_cast<uint64_t>(count)));
  };
  Maker maker(devices);
  std::vector<std::vector<Region>> buffers(static_cast<size_t>(devices));
  for (int device = 0; device < devices; ++device) {
    for (int i = 0; i < 3; ++i) {
      const auto kind = below(2) == 0 ? BufferKind::persistent : BufferKind::transient;
      buffers[size_t(device)].push_back(
          maker.floats(fmt::format("b{}", i), device, 16, kind, 1 + below(2)));
      buffers[size_t(device)].back().bytes = 64;
    }
  }
  const auto any = [&](int device) { return buffers[size_t(device)][size_t(below(3))]; };
  const auto part = [&](Region region, int part) { return Region{region.buffer, part * 16, 16}; };
  const auto stream = [&](int device) {
    return StreamId{device, static_cast<StreamKind>(below(4))};
  };
  for (int i = 0; i < 40; ++i) {
    const int a = below(devices), b = below(devices);
    if (a == b) {
      const Region target = any(a), source = any(a);
      maker.touch(fmt::format("t{}", i), {stream(a)}, {source}, {target});
      maker.plan.tasks.back().work = AddWork{target, {source}};
      continue;
    }
    CopyWork work;
    std::vector<Region> reads, writes;
    const Region from = any(a), to = any(b);
    for (int p = 0; p < 1 + below(3); ++p) {
      work.segments.push_back({part(from, below(4)), part(to, below(4))});
      reads.push_back(work.segments.back().source);
      writes.push_back(work.segments.back().target);
    }
    std::vector<StreamId> streams{stream(b), stream(a)};
    if (below(3) == 0) streams.pop_back();
    if (streams.size() == 2 && below(3) == 0) std::swap(streams[0], streams[1]);
    maker.task(fmt::format("t{}", i), streams, reads, writes, std::move(work));
    maker.plan.tasks.back().when = std::vector{When::every_micro_batch, When::first_micro_batch,
                                               When::last_micro_batch}[size_t(below(3))];
  }
  maker.plan.micro_batches_per_step = 1 + below(2);
  return maker.derived();
}

TEST(Localize, RanksOfRandomPlansDoWhatOneProcessDoesAndNeverWaitInACircle) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Plan plan = random_plan(seed, 4);
    for (const DeviceRanks& ranks :
         {equal_ranks(4, 1), equal_ranks(2, 2), DeviceRanks{{1, 0, 1, 2}}}) {
      expect_ranks_do_what_one_process_does(plan, ranks, seed);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Localize, RanksOfRandomPlansHaveNoRace) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (int rank = 0; rank < 2; ++rank) {
      expect_no_race(localize(random_plan(seed, 4), equal_ranks(2, 2), rank));
    }
  }
}

TEST(Localize, RefusesATaskThatAddsMemoryOfAnotherRank) {
  Maker maker(2);
  const Region a = maker.persistent("a", 0, 4), b = maker.persistent("b", 1, 4);
  maker.add("sum", compute(0), a, {b});
  EXPECT_THAT(message_of([&] { (void)localize(maker.plan, equal_ranks(2, 1), 0); }),
              HasSubstr("task 'sum' of rank 0 touches memory of rank 1, but only copies may"));
}

TEST(Localize, NumbersARanksDevicesAmongThemselves) {
  Maker maker(4);
  const Region a = maker.persistent("a", 3, 4), b = maker.persistent("b", 3, 4);
  maker.add("sum", compute(3), a, {b});
  maker.plan.weights_at = {{1, {0, 8}}, {3, {8, 16}}};
  const Plan local = localize(maker.derived(), equal_ranks(2, 2), 1);
  ASSERT_EQ(local.tasks.size(), 1U);
  EXPECT_EQ(local.devices, 2);
  EXPECT_EQ(local.tasks[0].label, "sum");
  EXPECT_EQ(local.tasks[0].streams[0], compute(1));
  EXPECT_EQ(local.buffers[0].device, 1);
  EXPECT_THAT(local.weights_at, testing::ElementsAre(Placement{1, {8, 16}}));
}

// Two streams of device 1 get messages of device 0, and one sends one.
TEST(Localize, StagesTheMessagesOfAStreamInOneBufferOfTheHostAsLargeAsTheLargest) {
  Maker maker(2);
  const Region a = maker.persistent("a", 0, 100), b = maker.persistent("b", 1, 100),
               c = maker.persistent("c", 1, 3), d = maker.persistent("d", 0, 3);
  maker.copy("all", {communication(1), communication(0)}, b, a);
  maker.copy("some", {communication(1), communication(0)}, {c.buffer, 0, 8}, {a.buffer, 0, 8});
  maker.copy("apart", {copies(1), communication(0)}, {c.buffer, 8, 4}, {a.buffer, 0, 4});
  maker.copy("back", {communication(1), communication(0)}, d, c);
  const Plan& plan = maker.derived();
  const Plan direct = localize(plan, equal_ranks(2, 1), 1),
             staged = localize(plan, equal_ranks(2, 1), 1, MessagePath::host);
  EXPECT_EQ(direct.buffers.size(), 2U);
  ASSERT_EQ(staged.buffers.size(), 4U);
  std::vector<int64_t> bytes;
  for (size_t i = 2; i < 4; ++i) {
    EXPECT_EQ(staged.buffers[i].device, TANDEM_HOST);
    bytes.push_back(staged.buffers[i].bytes);
  }
  EXPECT_THAT(bytes, testing::ElementsAre(400, 4));
  expect_no_race(staged);
  EXPECT_EQ(plan_memory(staged).host_bytes[0], 448 + 64);
}

TEST(Localize, PacksMessagesByLinksInDeviceMemoryAndSendsThoseOfOnePieceFromWhereTheyAre) {
  Maker maker(2);
  const Region a = maker.persistent("a", 0, 100), b = maker.persistent("b", 1, 100),
               results = maker.persistent("results", -1, 4);
  const std::vector<StreamId> streams{communication(1), communication(0)};
  maker.copy("piece", streams, b, a);
  const CopyWork two{{{{a.buffer, 0, 8}, {b.buffer, 0, 8}}, {{a.buffer, 16, 4}, {b.buffer, 8, 4}}}};
  maker.task("pieces", streams, {{a.buffer, 0, 8}, {a.buffer, 16, 4}},
             {{b.buffer, 0, 8}, {b.buffer, 8, 4}}, two);
  maker.copy("to the host", {communication(1)}, results, {b.buffer, 0, 16});
  const Plan part = localize(maker.derived(), equal_ranks(2, 1), 1, MessagePath::links);
  std::vector<std::pair<bool, int>> paths;  // by a link; the device of the staging, or -2
  for (const Task& task : part.tasks) {
    const auto* send = std::get_if<SendWork>(&task.work);
    const auto* receive = std::get_if<ReceiveWork>(&task.work);
    const RankMessage& message =
        send != nullptr ? *send : static_cast<const RankMessage&>(*receive);
    const int staging = message.staging.buffer;
    paths.emplace_back(message.by_link, staging < 0 ? -2 : part.buffers[size_t(staging)].device);
  }
  EXPECT_THAT(paths, testing::ElementsAre(std::pair(true, -2), std::pair(true, 0),
                                          std::pair(false, TANDEM_HOST)));
}

TEST(Localize, RanksOfRandomPlansHaveNoRaceWithStagedMessages) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (int rank = 0; rank < 2; ++rank) {
      for (const MessagePath path : {MessagePath::host, MessagePath::links}) {
        expect_no_race(localize(random_plan(seed, 4), equal_ranks(2, 2), rank, path));
      }
    }
  }
}

TEST(Fingerprint, DiffersBetweenPlans) {
  Plan plan = random_plan(1, 4);
  const uint64_t before = fingerprint(plan);
  EXPECT_EQ(before, fingerprint(random_plan(1, 4)));
  EXPECT_NE(before, fingerprint(random_plan(2, 4)));
  plan.tasks.back().streams[0].kind = StreamKind::control;
  EXPECT_NE(before, fingerprint(plan));
}

}  // namespace
}  // namespace tandem::test
