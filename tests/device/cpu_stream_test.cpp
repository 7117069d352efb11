#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "tests/device/backends.h"

namespace tandem {
namespace {

using test::open_machine;
using test::Works;

// Holds a stream until it is opened.
class Gate {
 public:
  void open() { promise_.set_value(); }
  std::function<void()> body() {
    return [opened = opened_] { opened.wait(); };
  }

 private:
  std::promise<void> promise_;
  std::shared_future<void> opened_ = promise_.get_future().share();
};

TEST(CpuStream, RunsWorksInTheOrderTheyWereIssued) {
  const Machine machine = open_machine("cpu");
  Works works;
  std::vector<int> order;
  const Stream stream(machine, 0, 0, "compute");
  for (int i = 0; i < 100; ++i) stream.submit(works.action("push", [&, i] { order.push_back(i); }));
  stream.synchronize();
  ASSERT_EQ(order.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(CpuStream, SubmitReturnsBeforeTheWorkRan) {
  const Machine machine = open_machine("cpu");
  Works works;
  Gate gate;
  std::atomic<bool> ran{false};
  const Stream stream(machine, 0, 0, "compute");
  stream.submit(works.action("blocked", gate.body()));
  stream.submit(works.action("after it", [&] { ran = true; }));
  EXPECT_FALSE(ran);  // a stream that runs works inside submit() never gets here
  gate.open();
  stream.synchronize();
  EXPECT_TRUE(ran);
}

TEST(CpuStream, TwoStreamsOfADeviceRunAtTheSameTime) {
  const Machine machine = open_machine("cpu");
  Works works;
  Gate gate;
  const Stream first(machine, 0, 0, "compute"), second(machine, 0, 0, "communicate");
  first.submit(works.action("blocked", gate.body()));
  second.submit(works.action("opens", [&] { gate.open(); }));
  first.synchronize();
}

TEST(CpuStream, GivesAWorkItsDeviceAndThreads) {
  MachineOptions options;
  options.threads = 5;
  const Machine machine = open_machine("cpu:3", options);
  Works works;
  std::vector<int> threads;
  for (int device = 0; device < 3; ++device) {
    const Stream stream(machine, device, 0, "compute");
    stream.submit(works.work("look", [&, device](const tandem_call& call) {
      EXPECT_EQ(call.device, device);
      threads.push_back(call.threads);
      return TANDEM_OK;
    }));
    stream.synchronize();
  }
  EXPECT_EQ(threads, (std::vector<int>{1, 1, 1}));
}

TEST(CpuStream, MoreDevicesThanCoresHaveOneThreadEach) {
  MachineOptions options;
  options.threads = 2;
  const Machine machine = open_machine("cpu:4", options);
  for (int device = 0; device < 4; ++device) EXPECT_EQ(machine.device_info(device).threads, 1);
}

TEST(CpuStream, FinishesWhatWasIssuedWhenItIsDestroyed) {
  const Machine machine = open_machine("cpu");
  Works works;
  std::atomic<int> ran{0};
  {
    const Stream stream(machine, 0, 0, "compute");
    for (int i = 0; i < 50; ++i) stream.submit(works.action("count", [&] { ++ran; }));
  }
  EXPECT_EQ(ran, 50);
}

TEST(CpuStream, CopiesBytesBetweenDevicesAndHost) {
  const Machine machine = open_machine("cpu:2");
  const Stream stream(machine, 0, 0, "communicate");
  const Memory a(machine, 0, TANDEM_MEMORY_DEVICE, 16), b(machine, 1, TANDEM_MEMORY_DEVICE, 16);
  const std::vector<int32_t> sent{1, 2, 3, 4};
  std::vector<int32_t> received(4);
  stream.copy("in", 0, a.data(), TANDEM_HOST, sent.data(), 16);
  stream.copy("across", 1, b.data(), 0, a.data(), 16);
  stream.copy("out", TANDEM_HOST, received.data(), 1, b.data(), 16);
  stream.synchronize();
  EXPECT_EQ(received, sent);
}

TEST(CpuStream, ACopyThatCannotBeIsRefusedWhenItIsIssued) {
  const Machine machine = open_machine("cpu:2");
  const Stream stream(machine, 0, 0, "communicate");
  int32_t value = 0;
  const auto refused = [&](int target_device, void* target, int64_t bytes) {
    return test::message_of([&] { stream.copy("bad", target_device, target, 0, &value, bytes); });
  };
  EXPECT_EQ(refused(2, &value, 4), "copy 'bad': device 2 of a machine of 2");
  EXPECT_EQ(refused(1, nullptr, 4), "copy 'bad': a copy of 4 bytes to NULL");
  EXPECT_EQ(refused(1, &value, -4), "copy 'bad': a copy of -4 bytes");
}

TEST(CpuEvent, AFreshEventIsDone) {
  const Machine machine = open_machine("cpu");
  Works works;
  const Event event(machine);
  EXPECT_TRUE(event.synchronize(0));
  bool ran = false;
  const Stream stream(machine, 0, 0, "compute");
  stream.wait(event);
  stream.submit(works.action("after it", [&] { ran = true; }));
  stream.synchronize();
  EXPECT_TRUE(ran);
}

TEST(CpuEvent, IsNotDoneUntilTheStreamReachesTheRecord) {
  const Machine machine = open_machine("cpu");
  Works works;
  Gate gate;
  const Stream stream(machine, 0, 0, "compute");
  const Event event(machine);
  stream.submit(works.action("blocked", gate.body()));
  stream.record(event);
  EXPECT_FALSE(event.synchronize(0));
  EXPECT_FALSE(event.synchronize(0.01));
  gate.open();
  EXPECT_TRUE(event.synchronize(-1));
  EXPECT_TRUE(event.synchronize(0));
}

TEST(CpuEvent, MakesAnotherStreamWait) {
  const Machine machine = open_machine("cpu:2");
  Works works;
  Gate gate;
  int value = 0, seen = -1;
  const Stream writer(machine, 0, 0, "compute"), reader(machine, 1, 0, "compute");
  const Event written(machine);
  writer.submit(works.action("write", [&, hold = gate.body()] {
    hold();
    value = 7;
  }));
  writer.record(written);
  reader.wait(written);
  reader.submit(works.action("read", [&] { seen = value; }));
  gate.open();
  reader.synchronize();
  EXPECT_EQ(seen, 7);
}

TEST(CpuEvent, AWaitMeansTheLatestRecordIssuedBeforeIt) {
  const Machine machine = open_machine("cpu");
  Works works;
  Gate first, second;
  const Stream source(machine, 0, 0, "compute"), early(machine, 0, 0, "early"),
      late(machine, 0, 0, "late");
  const Event event(machine), early_done(machine), late_done(machine);
  source.submit(works.action("first", first.body()));
  source.record(event);
  early.wait(event);
  early.record(early_done);
  source.submit(works.action("second", second.body()));
  source.record(event);
  late.wait(event);
  late.record(late_done);

  EXPECT_FALSE(early_done.synchronize(0.01));
  first.open();
  EXPECT_TRUE(early_done.synchronize(60));  // although the event was recorded again meanwhile
  EXPECT_FALSE(late_done.synchronize(0.01));
  EXPECT_FALSE(event.synchronize(0));  // the host, too, means the latest
  second.open();
  EXPECT_TRUE(late_done.synchronize(60));
}

TEST(CpuEvent, TimesFollowTheOrderOfTheStream) {
  const Machine machine = open_machine("cpu");
  Works works;
  const Stream stream(machine, 0, 0, "compute");
  const Event before(machine), after(machine);
  stream.record(before);
  stream.submit(
      works.action("sleep", [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }));
  stream.record(after);
  stream.synchronize();
  EXPECT_GE(before.time(), 0);
  EXPECT_GE(after.time() - before.time(), 0.005);
}

TEST(CpuEvent, HasNoTimeBeforeItIsRecorded) {
  const Machine machine = open_machine("cpu");
  const Event event(machine);
  EXPECT_EQ(test::message_of([&] { static_cast<void>(event.time()); }),
            "the time of an event: the event was never recorded");
}

}  // namespace
}  // namespace tandem
