#include <gmock/gmock.h>

#include <atomic>
#include <future>

#include "core/plugin/host.h"
#include "tests/device/backends.h"

namespace tandem {
namespace {

using test::message_of;
using test::open_machine;
using test::Works;

tandem_work failing(Works& works, const char* label, const char* reason) {
  return works.work(label, [reason](const tandem_call&) {
    host_table().explain(reason);
    return TANDEM_FAILED;
  });
}

TEST(CpuFailure, SynchronizeSaysWhichTaskFailedAndWhy) {
  const Machine machine = open_machine("cpu");
  Works works;
  const Stream stream(machine, 0, 0, "compute");
  stream.submit(failing(works, "conv1 forward", "the primitive failed"));
  EXPECT_EQ(message_of([&] { stream.synchronize(); }),
            "devices 'cpu': task 'conv1 forward': the primitive failed");
}

TEST(CpuFailure, AFailureWithoutAReasonStillNamesTheTask) {
  const Machine machine = open_machine("cpu");
  Works works;
  const Stream stream(machine, 0, 0, "compute");
  stream.submit(works.action("well", [] { host_table().explain("of an earlier work"); }));
  stream.submit(works.work("mute", [](const tandem_call&) { return TANDEM_UNSUPPORTED; }));
  EXPECT_EQ(message_of([&] { stream.synchronize(); }),
            "devices 'cpu': task 'mute': failed with status 2");
}

TEST(CpuFailure, OnlyTheFirstIsToldAndForEver) {
  const Machine machine = open_machine("cpu:2");
  Works works;
  const Stream first(machine, 0, 0, "compute"), second(machine, 1, 0, "compute");
  const Event failed(machine);
  first.submit(failing(works, "first", "one"));
  first.record(failed);
  second.wait(failed);
  second.submit(failing(works, "second", "two"));
  for (int ask = 0; ask < 2; ++ask) {
    EXPECT_THAT(message_of([&] { second.synchronize(); }), testing::HasSubstr("'first': one"));
  }
  const Event fresh(machine);
  EXPECT_THAT(message_of([&] { fresh.synchronize(0); }), testing::HasSubstr("'first': one"));
}

TEST(CpuFailure, OfAWorkThatWasAlreadyRunningDoesNotReplaceTheFirst) {
  const Machine machine = open_machine("cpu:2");
  Works works;
  std::promise<void> started, go_on;
  const Stream first(machine, 0, 0, "compute"), second(machine, 1, 0, "compute");
  second.submit(works.work("second", [&](const tandem_call&) {
    started.set_value();
    go_on.get_future().wait();
    host_table().explain("two");
    return TANDEM_FAILED;
  }));
  started.get_future().wait();
  first.submit(failing(works, "first", "one"));
  EXPECT_NE(message_of([&] { first.synchronize(); }), "");
  go_on.set_value();
  EXPECT_THAT(message_of([&] { second.synchronize(); }), testing::HasSubstr("'first': one"));
}

TEST(CpuFailure, LaterWorksAndCopiesAreSkippedAndRecordsHappen) {
  const Machine machine = open_machine("cpu:2");
  Works works;
  std::atomic<bool> ran{false};
  int32_t target = 1;
  const int32_t source = 2;
  const Stream first(machine, 0, 0, "compute"), second(machine, 1, 0, "compute");
  const Event event(machine);
  first.submit(failing(works, "first", "one"));
  first.submit(works.action("skipped", [&] { ran = true; }));
  first.copy("skipped too", TANDEM_HOST, &target, TANDEM_HOST, &source, 4);
  first.record(event);
  second.wait(event);
  EXPECT_NE(message_of([&] { second.synchronize(); }), "");
  EXPECT_FALSE(ran);
  EXPECT_EQ(target, 1);
}

TEST(CpuFailure, OfOneMachineLeavesOthersAlone) {
  const Machine broken = open_machine("cpu"), sound = open_machine("cpu");
  Works works;
  const Stream bad(broken, 0, 0, "compute"), good(sound, 0, 0, "compute");
  bad.submit(failing(works, "bad", "no"));
  EXPECT_NE(message_of([&] { bad.synchronize(); }), "");
  EXPECT_EQ(message_of([&] { good.synchronize(); }), "");
}

TEST(CpuFailure, OptionsThatMakeNoSenseAreRefused) {
  MachineOptions options;
  options.link.bandwidth = -1;
  EXPECT_EQ(message_of([&] { open_machine("cpu:2", options); }),
            "devices 'cpu:2': link bandwidth -1 must not be negative");
  DeviceSpec none;
  none.ordinals.clear();
  EXPECT_THAT(message_of([&] { Machine(test::backend("cpu"), none, {}); }),
              testing::HasSubstr("there can be 1 to 1024"));
  const Machine machine = open_machine("cpu:2");
  EXPECT_EQ(message_of([&] { Stream(machine, 2, 0, "x"); }),
            "stream 'x' of cpu:2: device 2 of a machine of 2");
}

}  // namespace
}  // namespace tandem
