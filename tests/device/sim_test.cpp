#include <gmock/gmock.h>

#include <thread>
#include <vector>

#include "core/base/numbers/random.h"
#include "tests/device/backends.h"

namespace tandem {
namespace {

using test::message_of;
using test::open_machine;
using test::Works;

MachineOptions link(double bandwidth, double latency) {
  MachineOptions options;
  options.link = {bandwidth, latency};
  return options;
}

void copy(const Stream& stream, int target, int source, int64_t bytes) {
  stream.copy("copy", target, nullptr, source, nullptr, bytes);
}

TEST(Sim, WorksTakeExactlyTheirPredictedTime) {
  const Machine machine = open_machine("sim");
  Works works;
  const Stream stream(machine, 0, 0, "compute");
  const Event middle(machine), end(machine);
  stream.submit(works.timed("one", 0.25));
  stream.record(middle);
  stream.submit(works.timed("two", 1000));
  stream.record(end);
  EXPECT_EQ(end.time(), 1000.25);
  EXPECT_EQ(middle.time(), 0.25);
}

TEST(Sim, ComputeWorksNeverRunAndHostWorksAlwaysDo) {
  const Machine machine = open_machine("sim");
  Works works;
  bool computed = false, hosted = false;
  const Stream stream(machine, 0, 0, "compute");
  stream.submit(works.action(
      "compute", [&] { computed = true; }, 1));
  stream.submit(works.host("host", [&](const tandem_call&) { return hosted = true, TANDEM_OK; }));
  stream.synchronize();
  EXPECT_FALSE(computed);
  EXPECT_TRUE(hosted);
}

TEST(Sim, AWaitTakesTheLaterOfBothTimes) {
  const Machine machine = open_machine("sim:2");
  Works works;
  const Stream a(machine, 0, 0, "a"), b(machine, 1, 0, "b");
  const Event early(machine), late(machine), middle_of_b(machine), end_of_b(machine);
  a.submit(works.timed("a1", 1));
  a.record(early);
  a.submit(works.timed("a2", 4));
  a.record(late);
  b.submit(works.timed("b1", 2));
  b.wait(early);  // already past
  b.submit(works.timed("b2", 1));
  b.record(middle_of_b);
  b.wait(late);
  b.submit(works.timed("b3", 1));
  b.record(end_of_b);
  EXPECT_EQ(end_of_b.time(), 6);
  EXPECT_EQ(middle_of_b.time(), 3);
}

TEST(Sim, AWaitMeansTheLatestRecordIssuedBeforeIt) {
  const Machine machine = open_machine("sim");
  Works works;
  const Stream a(machine, 0, 0, "a"), b(machine, 0, 0, "b");
  const Event event(machine), end(machine);
  a.submit(works.timed("first", 1));
  a.record(event);
  b.wait(event);
  b.record(end);
  a.submit(works.timed("second", 5));
  a.record(event);
  EXPECT_EQ(end.time(), 1);
  EXPECT_EQ(event.time(), 6);
}

TEST(Sim, ACopyTakesLatencyAndBytesOverBandwidth) {
  const Machine machine = open_machine("sim:2", link(1e9, 0.5));
  const Stream stream(machine, 0, 0, "communicate");
  const Event end(machine);
  copy(stream, 1, 0, 2'000'000'000);
  stream.record(end);
  EXPECT_DOUBLE_EQ(end.time(), 2.5);
}

TEST(Sim, DefaultSpeedsAreThoseOfTheDesign) {
  const Machine machine = open_machine("sim:2");
  const Stream across(machine, 0, 0, "communicate"), in(machine, 0, 0, "copy");
  const Event copied_across(machine), copied_in(machine);
  copy(across, 1, 0, 4'000'000);
  across.record(copied_across);
  copy(in, 0, TANDEM_HOST, 12'000'000);
  in.record(copied_in);
  EXPECT_DOUBLE_EQ(copied_across.time(), 1e-3);
  EXPECT_DOUBLE_EQ(copied_in.time(), 1e-3);
}

TEST(Sim, DirectionsAndPairsAreLinksOfTheirOwn) {
  const Machine machine = open_machine("sim:3", link(1e9, 0));
  const Stream a(machine, 0, 0, "a"), b(machine, 1, 0, "b"), c(machine, 2, 0, "c");
  std::vector<Event> ends;
  for (int i = 0; i < 3; ++i) ends.emplace_back(machine);
  copy(a, 1, 0, 1'000'000'000);
  copy(b, 0, 1, 1'000'000'000);
  copy(c, 1, 2, 1'000'000'000);
  a.record(ends[0]);
  b.record(ends[1]);
  c.record(ends[2]);
  for (const Event& end : ends) EXPECT_DOUBLE_EQ(end.time(), 1);
}

TEST(Sim, AContendedLinkServesInOrderOfReadiness) {
  const Machine machine = open_machine("sim:2", link(1e9, 0));
  Works works;
  const Stream late(machine, 0, 0, "late"), early(machine, 0, 0, "early");
  const Event late_end(machine), early_end(machine);
  late.submit(works.timed("long", 0.5));
  copy(late, 1, 0, 1'000'000'000);  // issued first, ready at 0.5
  late.record(late_end);
  early.submit(works.timed("short", 0.25));
  copy(early, 1, 0, 1'000'000'000);  // ready at 0.25
  early.record(early_end);
  EXPECT_DOUBLE_EQ(early_end.time(), 1.25);
  EXPECT_DOUBLE_EQ(late_end.time(), 2.25);
}

TEST(Sim, ATieGoesToTheStreamCreatedFirst) {
  const Machine machine = open_machine("sim:2", link(1e9, 0));
  std::vector<Stream> streams;
  std::vector<Event> ends;
  for (int i = 0; i < 5; ++i) {
    streams.emplace_back(machine, 0, 0, "stream");
    ends.emplace_back(machine);
  }
  for (const size_t issued : {3, 1, 4, 0, 2}) {
    copy(streams[issued], 1, 0, 1'000'000'000);
    streams[issued].record(ends[issued]);
  }
  for (size_t i = 0; i < 5; ++i) EXPECT_DOUBLE_EQ(ends[i].time(), static_cast<double>(i + 1));
}

// Eight streams that compute and then contend for two links; `threads` host threads issue to them.
std::vector<double> contended_times(int threads) {
  const Machine machine = open_machine("sim:4", link(1e9, 1e-5));
  Works works;
  std::vector<Stream> streams;
  std::vector<Event> ends;
  std::vector<std::vector<tandem_work>> prepared(8);
  Random random(7, 0);
  for (int s = 0; s < 8; ++s) {
    streams.emplace_back(machine, s % 4, 0, "stream");
    ends.emplace_back(machine);
    for (int i = 0; i < 100; ++i) {
      prepared[static_cast<size_t>(s)].push_back(works.timed("w", 1e-3 * random.uniform()));
    }
  }
  std::vector<std::thread> hosts;
  for (int t = 0; t < threads; ++t) {
    hosts.emplace_back([&, t] {
      for (size_t s = static_cast<size_t>(t); s < 8; s += static_cast<size_t>(threads)) {
        for (const tandem_work& work : prepared[s]) {
          streams[s].submit(work);
          copy(streams[s], static_cast<int>(s % 2), 2, 300'000);
        }
        streams[s].record(ends[s]);
      }
    });
  }
  for (std::thread& host : hosts) host.join();
  std::vector<double> times;
  for (const Event& end : ends) times.push_back(end.time());
  return times;
}

TEST(Sim, TimesDoNotDependOnWhichHostThreadIssuedFirst) {
  const std::vector<double> times = contended_times(1);
  EXPECT_GT(*std::max_element(times.begin(), times.end()), 0.1);
  for (const int threads : {2, 4, 8, 8, 8}) EXPECT_EQ(contended_times(threads), times);
}

TEST(Sim, NeverTouchesMemoryAndGivesEveryAllocationAnAddress) {
  const Machine machine = open_machine("sim:2");
  const int64_t huge = int64_t{1} << 44;
  const Memory a(machine, 0, TANDEM_MEMORY_DEVICE, huge), b(machine, 1, TANDEM_MEMORY_DEVICE, huge);
  const Memory c(machine, 0, TANDEM_MEMORY_DEVICE, 0);
  ASSERT_NE(a.data(), nullptr);
  ASSERT_NE(c.data(), nullptr);
  EXPECT_GE(std::abs(b.data() - a.data()), huge);
  EXPECT_NE(c.data(), b.data());
  const Stream stream(machine, 0, 0, "communicate");
  stream.copy("across", 1, b.data(), 0, a.data(), huge);
  EXPECT_EQ(message_of([&] { stream.synchronize(); }), "");
}

TEST(Sim, PinnedMemoryIsTheHostsToUse) {
  const Machine machine = open_machine("sim");
  const Memory memory(machine, 0, TANDEM_MEMORY_PINNED, 100);
  EXPECT_EQ(memory.data()[99], std::byte{0});
  memory.data()[99] = std::byte{1};
}

TEST(Sim, AWorkWithoutATimeIsAFailureThatNamesIt) {
  const Machine machine = open_machine("sim");
  Works works;
  const Stream stream(machine, 0, 0, "compute");
  const Event event(machine);
  stream.submit(works.timed("conv9 forward", -1));
  stream.record(event);
  EXPECT_THAT(message_of([&] { event.synchronize(-1); }),
              testing::HasSubstr("task 'conv9 forward': its time is not known"));
}

TEST(Sim, AThousandDevicesAreNoTrouble) {
  const Machine machine = open_machine("sim:1024");
  Works works;
  std::vector<Stream> streams;
  std::vector<Event> events;
  for (int device = 0; device < 1024; ++device) {
    streams.emplace_back(machine, device, 0, "compute");
    events.emplace_back(machine);
    if (device > 0) streams.back().wait(events[events.size() - 2]);
    streams.back().submit(works.timed("one", 1));
    if (device > 0) copy(streams.back(), device, device - 1, 4'000'000'000);
    streams.back().record(events.back());
  }
  EXPECT_DOUBLE_EQ(events.back().time(), 1024 + 1023);
}

TEST(Sim, AHostWorkThatWaitsForItsOwnMachineIsRefused) {
  const Machine machine = open_machine("sim");
  Works works;
  const Event event(machine);
  std::string refused;
  const Stream stream(machine, 0, 0, "compute");
  stream.submit(works.host("host", [&](const tandem_call&) {
    refused = message_of([&] { event.synchronize(-1); });
    return TANDEM_OK;
  }));
  stream.record(event);
  event.synchronize(-1);
  EXPECT_THAT(refused, testing::HasSubstr("waits for an event of its own machine"));
}

TEST(Sim, AFreshEventIsDoneAndHasNoTime) {
  const Machine machine = open_machine("sim");
  const Event event(machine);
  EXPECT_TRUE(event.synchronize(0));
  EXPECT_THAT(message_of([&] { static_cast<void>(event.time()); }),
              testing::HasSubstr("never recorded"));
}

}  // namespace
}  // namespace tandem
