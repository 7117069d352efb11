#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "core/base/numbers/random.h"
#include "core/schedule/plan/dependencies.h"
#include "core/schedule/plan/memory_plan.h"
#include "core/schedule/plan/ordering.h"
#include "core/schedule/plan/plan.h"
#include "tests/schedule/handmade.h"
#include "tests/support/races.h"

namespace tandem {
namespace {

using test::accesses;
using test::communication;
using test::compute;
using test::copies;
using test::find_races;
using test::HappensBefore;
using test::Maker;
using test::Race;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const std::vector<Dependency>& after(const Plan& plan, int task) {
  return plan.tasks[static_cast<size_t>(task)].after;
}

// Takes out each wait in turn; returns the labels of tasks whose wait nobody missed.
std::vector<std::string> waits_not_missed(const Plan& plan, const MemoryPlan* memory = nullptr) {
  std::vector<std::string> result;
  for (size_t task = 0; task < plan.tasks.size(); ++task) {
    for (size_t wait = 0; wait < plan.tasks[task].after.size(); ++wait) {
      Plan without = plan;
      auto& after = without.tasks[task].after;
      const Dependency removed = after[wait];
      after.erase(after.begin() + static_cast<int64_t>(wait));
      const std::vector<Race> races = find_races(without, memory);
      const bool found = std::any_of(races.begin(), races.end(), [&](const Race& race) {
        return race.first == removed.task && race.second == static_cast<int>(task) &&
               race.micro_batches_apart == removed.micro_batches_back;
      });
      if (!found) result.push_back(plan.tasks[task].label);
    }
  }
  return result;
}

size_t wait_count(const Plan& plan) {
  size_t count = 0;
  for (const Task& task : plan.tasks) count += task.after.size();
  return count;
}

// Tasks on all streams of several devices that use parts of a few buffers, some with two slots.
Plan random_plan(uint64_t seed, int tasks, int devices) {
  Random random(seed, stream_of("plans"));
  Maker maker(devices);
  const int buffers = tasks / 3 + 2;
  for (int i = 0; i < buffers; ++i) {
    const int device = static_cast<int>(random.below(static_cast<uint64_t>(devices)));
    const int slots = 1 + static_cast<int>(random.below(5) / 3) + static_cast<int>(i == 0);
    const auto kind = random.below(2) == 0 ? BufferKind::persistent : BufferKind::transient;
    maker.floats("b" + std::to_string(i), device, 64, kind, slots);
  }
  const auto region = [&] {
    const Region whole{static_cast<int>(random.below(static_cast<uint64_t>(buffers)))};
    if (random.below(2) == 0) return whole;
    const auto offset = static_cast<int64_t>(random.below(192));
    return Region{whole.buffer, offset, 1 + static_cast<int64_t>(random.below(63))};
  };
  for (int i = 0; i < tasks; ++i) {
    std::vector<StreamId> streams;
    const size_t wanted = random.below(5) == 0 ? 2 : 1;
    while (streams.size() < wanted) {
      const StreamId stream{static_cast<int>(random.below(static_cast<uint64_t>(devices))),
                            static_cast<StreamKind>(random.below(3))};
      if (streams.empty() || !(streams[0] == stream)) streams.push_back(stream);
    }
    std::vector<Region> reads, writes;
    for (uint64_t n = random.below(3); n > 0; --n) reads.push_back(region());
    for (uint64_t n = random.below(3); n > 0; --n) writes.push_back(region());
    maker.touch("t" + std::to_string(i), streams, reads, writes);
  }
  return maker.derived();
}

TEST(Dependencies, AReaderWaitsForTheWriterOfAnotherStreamAndTheNextWriterForTheReader) {
  Maker maker(1);
  const Region a = maker.floats("a", 0, 4);
  const int write = maker.touch("write", {compute(0)}, {}, {a});
  const int read = maker.touch("read", {communication(0)}, {a}, {});
  const Plan& plan = maker.derived();
  EXPECT_THAT(after(plan, read), ElementsAre(Dependency{write, 0}));
  EXPECT_THAT(after(plan, write), ElementsAre(Dependency{read, 1}));
}

TEST(Dependencies, OneStreamNeedsNoWaits) {
  Maker maker(1);
  const Region a = maker.floats("a", 0, 4);
  maker.touch("write", {compute(0)}, {}, {a});
  maker.touch("read", {compute(0)}, {a}, {});
  EXPECT_EQ(wait_count(maker.derived()), 0U);
}

TEST(Dependencies, TwoReadersOrTwoPartsOfABufferAreNotOrdered) {
  Maker maker(1);
  const Region a = maker.floats("a", 0, 8);
  maker.touch("left", {compute(0)}, {}, {{a.buffer, 0, 16}});
  maker.touch("right", {communication(0)}, {}, {{a.buffer, 16, 16}});
  EXPECT_EQ(wait_count(maker.derived()), 0U);
  EXPECT_THAT(find_races(maker.plan), IsEmpty());
}

TEST(Dependencies, OverlappingPartsAreOrdered) {
  Maker maker(1);
  const Region a = maker.floats("a", 0, 8);
  maker.touch("left", {compute(0)}, {}, {{a.buffer, 0, 17}});
  const int right = maker.touch("right", {communication(0)}, {}, {{a.buffer, 16, 16}});
  EXPECT_THAT(after(maker.derived(), right), ElementsAre(Dependency{0, 0}));
}

TEST(Dependencies, ASecondSlotLetsTheWriterRunAMicroBatchAhead) {
  Maker maker(1);
  const Region a = maker.floats("a", 0, 4, BufferKind::transient, 2);
  const int write = maker.touch("write", {copies(0)}, {}, {a});
  const int read = maker.touch("read", {compute(0)}, {a}, {});
  const Plan& plan = maker.derived();
  EXPECT_THAT(after(plan, read), ElementsAre(Dependency{write, 0}));
  EXPECT_THAT(after(plan, write), ElementsAre(Dependency{read, 2}));
}

TEST(Dependencies, AWaitThatOthersImplyIsLeftOut) {
  Maker maker(2);
  const Region a = maker.floats("a", 0, 4), b = maker.floats("b", 0, 4);
  const int first = maker.touch("first", {compute(0)}, {}, {a});
  const int second = maker.touch("second", {communication(0)}, {a}, {b});
  const int third = maker.touch("third", {compute(1)}, {a, b}, {});
  const Plan& plan = maker.derived();
  EXPECT_THAT(after(plan, third), ElementsAre(Dependency{second, 0}));
  EXPECT_THAT(after(plan, second), ElementsAre(Dependency{first, 0}));
  EXPECT_THAT(after(plan, first), ElementsAre(Dependency{third, 1}));
}

TEST(Dependencies, ATransferOrdersAllItsStreams) {
  Maker maker(2);
  const Region a = maker.floats("a", 0, 4), b = maker.floats("b", 1, 4);
  maker.touch("write", {communication(1)}, {}, {b});
  maker.touch("exchange", {communication(0), communication(1)}, {b}, {a});
  maker.touch("read", {communication(0)}, {a}, {});
  EXPECT_EQ(wait_count(maker.derived()), 0U);
  EXPECT_THAT(find_races(maker.plan), IsEmpty());
}

TEST(Dependencies, OldWaitsAreReplaced) {
  Maker maker(1);
  maker.touch("a", {compute(0)}, {}, {});
  maker.touch("b", {communication(0)}, {}, {});
  maker.plan.tasks[1].after = {{0, 0}};
  EXPECT_EQ(wait_count(maker.derived()), 0U);
}

TEST(Dependencies, OfRandomPlansLeaveNoRaceAndNoneCanBeTakenOut) {
  size_t waits = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Plan plan = random_plan(seed, 24, 3);
    waits += wait_count(plan);
    EXPECT_THAT(find_races(plan), IsEmpty()) << "seed " << seed;
    EXPECT_THAT(waits_not_missed(plan), IsEmpty()) << "seed " << seed;
  }
  EXPECT_GT(waits, 1000U);
}

TEST(Dependencies, ThatAreMissingAreSeenByACheckThatIsMadeOnce) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    Plan plan = random_plan(seed, 24, 3);
    const test::RaceCheck check(plan);
    EXPECT_FALSE(check.has_race(plan));
    for (Task& task : plan.tasks) {
      const std::vector<Dependency> all = task.after;
      if (!all.empty()) task.after.push_back(all.front());
      EXPECT_FALSE(check.has_race(plan)) << "with a wait that nobody needs";
      for (task.after = all; !task.after.empty(); task.after.pop_back()) {
        EXPECT_EQ(check.has_race(plan), !find_races(plan).empty()) << seed << " " << task.label;
      }
      EXPECT_EQ(check.has_race(plan), !all.empty()) << seed << " " << task.label;
      task.after = all;
    }
  }
}

TEST(Dependencies, OfRandomPlansHoldForTheAddressesOfTheMemoryPlan) {
  for (uint64_t seed = 100; seed < 130; ++seed) {
    const Plan plan = random_plan(seed, 24, 2);
    const MemoryPlan memory = plan_memory(plan);
    EXPECT_THAT(find_races(plan, &memory), IsEmpty()) << "seed " << seed;
    EXPECT_THAT(waits_not_missed(plan, &memory), IsEmpty()) << "seed " << seed;
  }
}

TEST(Dependencies, OfTwoThousandTasksAreFound) {
  const Plan plan = random_plan(7, 2000, 8);
  EXPECT_GT(wait_count(plan), 500U);
  EXPECT_THAT(find_races(plan), IsEmpty());
}

TEST(Races, NameBothTasksTheMicroBatchAndTheBuffer) {
  Maker maker(1);
  const Region a = maker.persistent("weights", 0, 4);
  maker.touch("forward conv1 @0", {compute(0)}, {a}, {});
  maker.touch("update conv1 @0", {communication(0)}, {}, {a});
  const std::vector<Race> races = find_races(maker.plan);
  std::vector<std::string> texts;
  for (const Race& race : races) texts.push_back(race.text);
  EXPECT_THAT(
      texts,
      UnorderedElementsAre(
          "'forward conv1 @0' and 'update conv1 @0' both use 'weights' @0, unordered",
          "'update conv1 @0' and 'forward conv1 @0' of the next micro-batch both use 'weights' @0, "
          "unordered",
          "'forward conv1 @0' and 'update conv1 @0' of the next micro-batch both use 'weights' @0, "
          "unordered"));
}

TEST(Races, AreSeenWhereBuffersOfTwoStreamsShareAddresses) {
  Maker maker(1);
  const Region a = maker.floats("a", 0, 16), b = maker.floats("b", 0, 16);
  maker.touch("one", {compute(0)}, {}, {a});
  maker.touch("other", {communication(0)}, {}, {b});
  MemoryPlan memory = plan_memory(maker.plan);
  EXPECT_THAT(find_races(maker.plan, &memory), IsEmpty());
  memory.offsets[1] = memory.offsets[0] + 60;
  const std::vector<Race> races = find_races(maker.plan, &memory);
  ASSERT_FALSE(races.empty());
  EXPECT_EQ(races[0].text, "'one' and 'other' use 'a' @0 and 'b' @0 in the same place, unordered");
}

TEST(Races, PersistentAndTransientArenasAreDifferentPlaces) {
  Maker maker(1);
  const Region a = maker.floats("a", 0, 16), b = maker.persistent("b", 0, 16);
  maker.touch("one", {compute(0)}, {}, {a});
  maker.touch("other", {communication(0)}, {}, {b});
  MemoryPlan memory = plan_memory(maker.plan);
  memory.offsets[0] = memory.offsets[1] = 0;
  EXPECT_THAT(find_races(maker.plan, &memory), IsEmpty());
}

// What waits order over some micro-batches, if each task also comes after itself.
class Closure {
 public:
  Closure(size_t tasks, size_t micro_batches)
      : tasks_(tasks), before_(tasks * micro_batches, std::vector<bool>(tasks * micro_batches)) {
    for (size_t node = tasks; node < before_.size(); ++node) before_[node][node - tasks] = true;
  }
  void add(int earlier, int later, int back) {
    for (size_t run = static_cast<size_t>(back); run * tasks_ < before_.size(); ++run) {
      const size_t from = (run - static_cast<size_t>(back)) * tasks_ + static_cast<size_t>(earlier);
      before_[run * tasks_ + static_cast<size_t>(later)][from] = true;
    }
  }
  [[nodiscard]] std::vector<std::vector<bool>> take() {
    for (size_t node = 0; node < before_.size(); ++node) {
      for (size_t earlier = node; earlier-- > 0;) {
        if (!before_[node][earlier]) continue;
        for (size_t i = 0; i < earlier; ++i) {
          if (before_[earlier][i]) before_[node][i] = true;
        }
      }
    }
    return std::move(before_);
  }

 private:
  size_t tasks_;
  std::vector<std::vector<bool>> before_;  // by node: the nodes before it
};

// The definition of a conflict, pair by pair.
TEST(Conflicts, ImplyThoseOfAllPairsAndNoOthers) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const Plan plan = random_plan(seed, 40, 3);
    const auto runs = static_cast<size_t>(unrolled_micro_batches(plan));
    Closure expected(plan.tasks.size(), runs), found(plan.tasks.size(), runs);
    const std::vector<Access> list = accesses(plan);
    std::set<std::tuple<int, int, int>> pairs;
    for (const Access& a : list) {
      for (const Access& b : list) {
        if (a.task < b.task && a.buffer == b.buffer && (a.writes || b.writes) &&
            a.bytes.overlaps(b.bytes)) {
          const int slots = plan.buffers[static_cast<size_t>(a.buffer)].slots;
          expected.add(a.task, b.task, 0);
          expected.add(b.task, a.task, slots);
          pairs.insert({a.task, b.task, 0});
          pairs.insert({b.task, a.task, slots});
        }
      }
    }
    std::set<std::tuple<int, int, int>> visited;
    for_each_conflict(plan, [&](int earlier, int later, int back) {
      EXPECT_TRUE(pairs.contains({earlier, later, back})) << seed;
      visited.insert({earlier, later, back});
      found.add(earlier, later, back);
    });
    EXPECT_LT(visited.size(), pairs.size()) << seed;
    EXPECT_EQ(found.take(), expected.take()) << seed;
  }
}

TEST(Conflicts, OfALongChainInOneBufferAreItsNeighbors) {
  constexpr int tasks = 5000;
  Maker maker(1);
  const Region a = maker.floats("a", 0, 16);
  for (int i = 0; i < tasks; ++i) {
    maker.touch(fmt::format("task {}", i), {compute(0)}, {a}, {a});
  }
  int calls = 0;
  for_each_conflict(maker.plan, [&](int, int, int) { ++calls; });
  EXPECT_LE(calls, 4 * tasks);
}

// Everything that streams and waits order, node by node.
TEST(Order, IsTheClosureOfStreamsAndWaits) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Plan plan = random_plan(seed, 25, 3);
    derive_dependencies(plan);
    const int apart = unrolled_micro_batches(plan);
    const size_t tasks = plan.tasks.size(), nodes = tasks * static_cast<size_t>(apart);
    const auto predecessors = stream_predecessors(plan);
    std::vector<std::vector<bool>> before(nodes, std::vector<bool>(nodes));
    for (size_t node = 0; node < nodes; ++node) {
      for (const auto* list :
           {&predecessors[node % tasks], &std::as_const(plan).tasks[node % tasks].after}) {
        for (const Dependency& wait : *list) {
          const auto back = static_cast<size_t>(wait.micro_batches_back);
          if (back > node / tasks) continue;
          const size_t earlier = (node / tasks - back) * tasks + static_cast<size_t>(wait.task);
          before[node][earlier] = true;
          for (size_t i = 0; i < nodes; ++i)
            before[node][i] = before[node][i] || before[earlier][i];
        }
      }
    }
    const HappensBefore order(plan, apart);
    for (int distance = 0; distance < apart; ++distance) {
      for (size_t a = 0; a < tasks; ++a) {
        for (size_t b = 0; b < tasks; ++b) {
          EXPECT_EQ(order.ordered(static_cast<int>(a), static_cast<int>(b), distance),
                    before[static_cast<size_t>(distance) * tasks + b][a])
              << seed << " " << a << " " << b << " " << distance;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tandem
