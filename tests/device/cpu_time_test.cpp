#include <atomic>
#include <chrono>
#include <future>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/device/backends.h"

namespace tandem {
namespace {

using test::open_machine;
using test::Works;

double seconds_between(const Event& start, const Event& end) {
  return end.time() - start.time();
}

class SlowLink : public testing::Test {
 protected:
  static MachineOptions options() {
    MachineOptions options;
    options.link = {1e8, 0.002};  // 1 MB takes 10 ms, and 2 ms before it
    return options;
  }
  static constexpr int64_t bytes = 1'000'000;
  const Machine machine_ = open_machine("cpu:2", options());
  const Memory a_{machine_, 0, TANDEM_MEMORY_DEVICE, bytes};
  const Memory b_{machine_, 1, TANDEM_MEMORY_DEVICE, bytes};
  const Event start_{machine_}, end_{machine_};
};

TEST_F(SlowLink, TakesLatencyAndBytesOverBandwidth) {
  const Stream stream(machine_, 0, 0, "communicate");
  a_.data()[bytes - 1] = std::byte{9};
  stream.record(start_);
  stream.copy("across", 1, b_.data(), 0, a_.data(), bytes);
  stream.record(end_);
  stream.synchronize();
  EXPECT_GE(seconds_between(start_, end_), 0.0119);
  EXPECT_EQ(b_.data()[bytes - 1], std::byte{9});
}

TEST_F(SlowLink, DoesNotSlowTheHostsCopiesNorThoseWithinADevice) {
  const Stream stream(machine_, 0, 0, "copy");
  std::vector<std::byte> host(64);
  stream.record(start_);
  for (int i = 0; i < 200; ++i) {
    stream.copy("in", 0, a_.data(), TANDEM_HOST, host.data(), 64);
    stream.copy("within", 0, a_.data(), 0, a_.data() + 64, 64);
  }
  stream.record(end_);
  stream.synchronize();
  EXPECT_LT(seconds_between(start_, end_), 200 * options().link.latency);
}

TEST_F(SlowLink, ServesOneCopyAtATimeInEachDirection) {
  const Stream one(machine_, 0, 0, "one"), two(machine_, 1, 0, "two");
  const Event end_of_two(machine_);
  one.record(start_);
  two.wait(start_);
  one.copy("across", 1, b_.data(), 0, a_.data(), bytes / 2);
  two.copy("across", 1, b_.data() + bytes / 2, 0, a_.data() + bytes / 2, bytes / 2);
  one.record(end_);
  two.record(end_of_two);
  one.synchronize();
  two.synchronize();
  const double both = std::max(end_.time(), end_of_two.time()) - start_.time();
  EXPECT_GE(both, 2 * 0.0069);
}

TEST(RandomDelays, LeaveTheResultsOfOrderedWorksTheSame) {
  for (const uint64_t seed : {1, 2, 3}) {
    MachineOptions options;
    options.delay_seed = seed;
    options.delay_seconds = 0.0005;
    const Machine machine = open_machine("cpu:2", options);
    Works works;
    const Stream a(machine, 0, 0, "a"), b(machine, 1, 0, "b");
    std::vector<Event> events;
    std::vector<int> order;
    for (int i = 0; i < 40; ++i) {
      const Stream& stream = i % 2 == 0 ? a : b;
      if (i > 0) stream.wait(events.back());
      stream.submit(works.action("push", [&, i] { order.push_back(i); }));
      stream.record(events.emplace_back(machine));
    }
    events.back().synchronize(-1);
    std::vector<int> expected(40);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(order, expected);
  }
}

TEST(RandomDelays, ShowAMissingWait) {
  MachineOptions options;
  options.delay_seed = 5;
  options.delay_seconds = 0.002;
  const Machine machine = open_machine("cpu:2", options);
  Works works;
  std::atomic<int> written{0};
  bool was_early = false;
  const Stream writer(machine, 0, 0, "writer"), reader(machine, 1, 0, "reader");
  for (int i = 1; i <= 50; ++i) {
    writer.submit(works.action("write", [&, i] { written = i; }));
    reader.submit(works.action("read", [&, i] { was_early = was_early || written < i; }));
    // Each time anew: a reader that once fell behind, on a busy machine, would stay behind.
    writer.synchronize();
    reader.synchronize();
  }
  EXPECT_TRUE(was_early);
}

MachineOptions paced() {
  MachineOptions options;
  options.paced = true;
  return options;
}

// Holds the stream until everything is issued: only then does nothing but its own sleeps count.
class Hold {
 public:
  Hold(const Stream& stream, Works& works) {
    stream.submit(works.host("hold", [opened = promise_.get_future().share()](const tandem_call&) {
      opened.wait();
      return TANDEM_OK;
    }));
  }
  void release() { promise_.set_value(); }

 private:
  std::promise<void> promise_;
};

TEST(PacedMode, WorksTakeTheirPredictedTimeAndDoNotRun) {
  const Machine machine = open_machine("cpu", paced());
  Works works;
  std::atomic<bool> ran{false};
  const Stream stream(machine, 0, 0, "compute");
  const Event start(machine), end(machine);
  stream.record(start);
  stream.submit(works.action(
      "never", [&] { ran = true; }, 0.02));
  stream.record(end);
  stream.synchronize();
  EXPECT_FALSE(ran);
  EXPECT_GE(seconds_between(start, end), 0.0195);
}

TEST(PacedMode, ErrorsOfManyShortWorksDoNotAddUp) {
  const Machine machine = open_machine("cpu", paced());
  Works works;
  const Stream stream(machine, 0, 0, "compute");
  const Event start(machine), end(machine);
  Hold hold(stream, works);
  stream.record(start);
  for (int i = 0; i < 100; ++i) stream.submit(works.timed("short", 0.002));
  stream.record(end);
  const auto begin = std::chrono::steady_clock::now();
  hold.release();
  stream.synchronize();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  EXPECT_NEAR(seconds_between(start, end), 0.2, 1e-6);
  EXPECT_GE(wall.count(), 0.2 * 0.97);
  EXPECT_LE(wall.count(), 0.2 * 2);
}

TEST(PacedMode, ErrorsDoNotAddUpAlongAChainOverStreamsAndLinks) {
  MachineOptions options = paced();
  options.link = {1e9, 0.001};
  const Machine machine = open_machine("cpu:2", options);
  const Memory a(machine, 0, TANDEM_MEMORY_DEVICE, 64), b(machine, 1, TANDEM_MEMORY_DEVICE, 64);
  Works works;
  const Stream compute(machine, 0, 0, "compute"), communicate(machine, 0, 0, "communicate");
  const Event start(machine), end(machine);
  std::vector<Event> events;
  Hold hold(compute, works);
  compute.record(start);
  for (int i = 0; i < 50; ++i) {
    compute.submit(works.timed("short", 0.001));
    compute.record(events.emplace_back(machine));
    communicate.wait(events.back());
    communicate.copy("across", 1, b.data(), 0, a.data(), 64);
    communicate.record(events.emplace_back(machine));
    compute.wait(events.back());
  }
  compute.record(end);
  hold.release();
  compute.synchronize();
  // 64 bytes take 64 ns of the link. A switch of threads that is later than the link takes counts.
  EXPECT_GE(seconds_between(start, end), 0.1 + 50 * 64e-9 - 1e-9);
  EXPECT_LE(seconds_between(start, end), 0.1 * 1.2);
}

TEST(PacedMode, AStreamThatWasIdleStartsItsNextWorkWhenItIsIssued) {
  const Machine machine = open_machine("cpu", paced());
  Works works;
  const Stream stream(machine, 0, 0, "compute");
  const Event start(machine), end(machine);
  stream.submit(works.timed("before", 0.001));
  stream.synchronize();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  stream.record(start);
  stream.submit(works.timed("after", 0.01));
  stream.record(end);
  stream.synchronize();
  EXPECT_GE(seconds_between(start, end), 0.009);
}

TEST(PacedMode, HostWorksAndCopiesAreReal) {
  const Machine machine = open_machine("cpu", paced());
  Works works;
  std::atomic<bool> ran{false};
  int32_t target = 0;
  const int32_t source = 3;
  const Stream stream(machine, 0, 0, "compute");
  stream.submit(works.host("host", [&](const tandem_call&) { return ran = true, TANDEM_OK; }));
  stream.copy("copy", 0, &target, TANDEM_HOST, &source, 4);
  stream.synchronize();
  EXPECT_TRUE(ran);
  EXPECT_EQ(target, 3);
}

TEST(PacedMode, AWorkWithoutATimeIsAFailureThatNamesIt) {
  const Machine machine = open_machine("cpu", paced());
  Works works;
  const Stream stream(machine, 0, 0, "compute");
  stream.submit(works.timed("conv9 forward", -1));
  EXPECT_NE(test::message_of([&] {
              stream.synchronize();
            }).find("task 'conv9 forward': its time is not known"),
            std::string::npos);
}

}  // namespace
}  // namespace tandem
