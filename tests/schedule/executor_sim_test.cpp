// The executor on the sim backend: virtual times, exactly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/schedule/handmade.h"

namespace tandem {
namespace {

using test::communication;
using test::compute;
using test::Maker;
using test::Rig;

const tandem_backend& sim() {
  return test::registry().backend("sim");
}

// An addition to n KiB takes n milliseconds; a link passes a KiB in one.
CostTable costs() {
  Maker maker(1);
  maker.add("add", compute(0), maker.floats("sum", 0, 256), {});
  CostTable table;
  table.set("add", {1e-3, 0, cost_bytes(maker.plan, maker.plan.tasks[0])});
  return table;
}
MachineOptions links() {
  MachineOptions options;
  options.link.bandwidth = 1024e3;
  return options;
}
Region kibibytes(Maker& maker, const std::string& name, int device, int64_t count) {
  return maker.floats(name, device, count * 256);
}

double end_of(const std::vector<TraceEvent>& events) {
  double end = 0;
  for (const TraceEvent& event : events) end = std::max(end, event.end);
  return end;
}

// A gradient travels while 5 ms of other work are done.
Plan overlap(int64_t sent) {
  Maker maker(2);
  const Region gradient = kibibytes(maker, "gradient", 1, sent),
               received = kibibytes(maker, "received", 0, sent),
               other = kibibytes(maker, "other", 1, 5);
  maker.add("compute", compute(1), gradient, {});
  maker.copy("send", {communication(0), communication(1)}, received, gradient);
  maker.add("more", compute(1), other, {});
  return maker.derived();
}

TEST(ExecutorOnSim, ACopyTakesItsLinksTimeBesideWhatIsComputed) {
  const CostTable table = costs();
  for (const int64_t sent : {2, 5, 9}) {
    Rig rig(overlap(sent), sim(), links(), {}, {}, &table);
    rig.run(3);
    const std::vector<TraceEvent> events = rig.executor->trace(1);
    const double begin = events[0].start;
    EXPECT_NEAR(events[0].end - begin, 1e-3 * static_cast<double>(sent), 1e-9);
    EXPECT_NEAR(events[1].start, events[0].end, 1e-9);
    EXPECT_NEAR(events[1].end - events[1].start, 1e-3 * static_cast<double>(sent), 1e-9);
    EXPECT_NEAR(events[2].end - events[2].start, 5e-3, 1e-9);
    EXPECT_NEAR(end_of(events) - begin,
                1e-3 * static_cast<double>(sent + std::max<int64_t>(sent, 5)), 1e-9);
  }
}

TEST(ExecutorOnSim, ATransferHoldsAllItsStreamsUntilItIsDone) {
  Maker maker(2);
  const CostTable table = costs();
  const Region a = kibibytes(maker, "a", 0, 3), b = kibibytes(maker, "b", 1, 3),
               late = kibibytes(maker, "late", 1, 7);
  maker.add("busy", communication(1), late, {});
  maker.copy("exchange", {communication(0), communication(1)}, b, a);
  const int after = maker.add("after", communication(1), late, {});
  Rig rig(maker.derived(), sim(), links(), {}, {}, &table);
  rig.run(1);
  const std::vector<TraceEvent> events = rig.executor->trace(0);
  EXPECT_NEAR(events[1].start - events[0].start, 7e-3, 1e-9);
  EXPECT_NEAR(events[static_cast<size_t>(after)].start - events[0].start, 10e-3, 1e-9);
}

TEST(ExecutorOnSim, TheNextStepBeginsWhereItsOwnWaitsLetIt) {
  Maker maker(1);
  const CostTable table = costs();
  const Region a = kibibytes(maker, "a", 0, 4), b = kibibytes(maker, "b", 0, 4);
  maker.add("produce", communication(0), a, {});
  maker.touch("consume", {compute(0)}, {a}, {b});
  Rig rig(maker.derived(), sim(), {}, {}, {}, &table);
  rig.executor->issue(0, {});
  rig.executor->issue(1, {});
  rig.executor->drain();
  const auto first = rig.executor->trace(0), second = rig.executor->trace(1);
  EXPECT_NEAR(second[0].start, first[1].end, 1e-9);  // one slot: consumed before produced anew
}

TEST(ExecutorOnSim, AWorkWithoutAPredictedTimeIsNamed) {
  Maker maker(1);
  maker.add("without a cost", compute(0), kibibytes(maker, "a", 0, 1), {});
  Rig rig(maker.derived(), sim());
  rig.executor->issue(0, {});
  const std::string text = test::message_of([&] { rig.executor->wait(0); });
  EXPECT_THAT(text, testing::HasSubstr("'without a cost'"));
}

TEST(ExecutorOnSim, RunsManyDevices) {
  constexpr int count = 64;
  Maker maker(count);
  const CostTable table = costs();
  for (int device = 0; device < count; ++device) {
    const std::string number = std::to_string(device);
    const Region mine = kibibytes(maker, "mine", device, 2);
    maker.add("compute " + number, compute(device), mine, {});
    if (device > 0) {
      maker.copy("send " + number, {communication(0), communication(device)},
                 kibibytes(maker, "from " + number, 0, 2), mine);
    }
  }
  Rig rig(maker.derived(), sim(), links(), {}, {}, &table);
  rig.run(2);
  const std::vector<TraceEvent> events = rig.executor->trace(0);
  EXPECT_NEAR(end_of(events) - events[0].start, 2e-3 + 2e-3 * (count - 1), 1e-9);
}

}  // namespace
}  // namespace tandem
