// The ABI's promises about streams, events and copies, on cpu devices and on those of a GPU.
#include <gmock/gmock.h>

#include <chrono>
#include <future>

#include "tests/cuda/machines.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;

class Streams : public OnDevices {
 protected:
  tandem_work fill(const Machine& machine, const DeviceArray<>& array, float value) {
    return works_.work("fill", [&machine, &array, value](const tandem_call& call) {
      return machine.backend().arithmetic->fill(&call, array.data(), value, array.count());
    });
  }
  // Streams that are busy for some tenths of a second.
  static MachineOptions delayed(double seconds) {
    MachineOptions options;
    options.delay_seed = 3;
    options.delay_seconds = seconds;
    return options;
  }
  Works works_;
};
INSTANTIATE_TEST_SUITE_P(Devices, Streams, cpu_and_gpu(), device_name);

TEST_P(Streams, CopyBytesFromTheHostOverBothDevicesAndBack) {
  const Machine machine = open();
  Floats values(100'003);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const DeviceArray<> first(machine, 0, values), second(machine, 1, Floats(values.size()));
  const Stream stream(machine, 1, 0, "communication");
  stream.copy("send", 1, second.data(), 0, first.data(), first.bytes());
  stream.synchronize();
  EXPECT_EQ(second.values(), values);
}

TEST_P(Streams, CopyFromAndToPinnedMemory) {
  const Machine machine = open();
  const Memory pinned(machine, 0, TANDEM_MEMORY_PINNED, 4096);
  auto* values = reinterpret_cast<float*>(pinned.data());
  for (int i = 0; i < 1024; ++i) values[i] = static_cast<float>(i);
  const DeviceArray<> array(machine, 1, Floats(1024));
  const Stream stream(machine, 1, 0, "copy");
  stream.copy("to the device", 1, array.data(), TANDEM_HOST, values, 4096);
  stream.synchronize();
  for (int i = 0; i < 1024; ++i) values[i] = -1;
  stream.copy("back", TANDEM_HOST, values, 1, array.data(), 4096);
  stream.synchronize();
  for (int i = 0; i < 1024; ++i) ASSERT_EQ(values[i], static_cast<float>(i));
}

// For any priority: on cuda, streams that only copy and add have none.
TEST_P(Streams, HaveLibraryHandlesOnceAKernelWasPreparedOnThem) {
  const Machine machine = open();
  const Stream stream(machine, 1, 1, "compute");
  std::vector<bool> found;
  const auto look = [&found](const tandem_call& call) {
    EXPECT_EQ(call.native_blas == nullptr, call.native_dnn == nullptr);
    found.push_back(call.native_blas != nullptr);
    return TANDEM_OK;
  };
  stream.submit(works_.work("clear", look));
  stream.submit(works_.host("prepare", look));
  stream.submit(works_.work("forward", look));
  stream.synchronize();
  const bool is_cuda = is_gpu(GetParam());
  EXPECT_EQ(found, (std::vector<bool>{false, is_cuda, is_cuda}));
}

TEST_P(Streams, KeepTheOrderOfTheirWork) {
  const Machine machine = open(delayed(0.001));
  const DeviceArray<> array(machine, 0, Floats(1000)), kept(machine, 0, Floats(1000));
  const Stream stream(machine, 0, 1, "compute");
  for (int i = 1; i <= 50; ++i) stream.submit(fill(machine, array, static_cast<float>(i)));
  stream.copy("keep", 0, kept.data(), 0, array.data(), array.bytes());
  stream.submit(fill(machine, array, 99));
  stream.synchronize();
  EXPECT_EQ(kept.values(), Floats(1000, 50));
  EXPECT_EQ(array.values(), Floats(1000, 99));
}

TEST_P(Streams, WaitForTheLatestRecord) {
  const Machine machine = open(delayed(0.02));
  const DeviceArray<> array(machine, 0, Floats(1000)), seen(machine, 1, Floats(1000));
  const Stream first(machine, 0, 1, "compute"), second(machine, 1, 0, "communication");
  const Event ready(machine), read(machine);
  for (int round = 1; round <= 10; ++round) {
    first.wait(read);
    first.submit(fill(machine, array, static_cast<float>(round)));
    first.record(ready);
    second.wait(ready);
    second.copy("send", 1, seen.data(), 0, array.data(), array.bytes());
    second.record(read);
  }
  read.synchronize(-1);
  EXPECT_EQ(seen.values(), Floats(1000, 10));
}

TEST_P(Streams, ANewEventIsDone) {
  const Machine machine = open();
  const Event event(machine);
  const Stream stream(machine, 1, 0, "copy");
  stream.wait(event);
  EXPECT_TRUE(event.synchronize(0));
  EXPECT_THAT(message_of([&] { static_cast<void>(event.time()); }), HasSubstr("never recorded"));
}

TEST_P(Streams, AnEventThatIsNotReachedTimesOut) {
  const Machine machine = open(delayed(0.1));
  const DeviceArray<> array(machine, 0, Floats(10));
  const Stream stream(machine, 0, 1, "compute");
  const Event event(machine);
  for (int i = 0; i < 10; ++i) stream.submit(fill(machine, array, 1));
  stream.record(event);
  EXPECT_FALSE(event.synchronize(0));
  EXPECT_FALSE(event.synchronize(0.01));
  EXPECT_TRUE(event.synchronize(-1));
  EXPECT_TRUE(event.synchronize(0));
}

TEST_P(Streams, ReturnAtOnceFromLongWork) {
  const Machine machine = open(delayed(0.1));
  const DeviceArray<> array(machine, 0, Floats(10));
  const Stream stream(machine, 0, 1, "compute");
  const Event begin(machine), end(machine);
  stream.record(begin);
  for (int i = 0; i < 10; ++i) stream.submit(fill(machine, array, 1));
  stream.record(end);
  EXPECT_FALSE(end.synchronize(0)) << "submit() waited for its work";
  end.synchronize(-1);
  EXPECT_GT(end.time() - begin.time(), 0.2);  // ten delays of 0.05 s on average
}

TEST_P(Streams, TimesOfAllDevicesAreOnOneClock) {
  const Machine machine = open();
  const Stream first(machine, 0, 0, "one"), second(machine, 1, 0, "two");
  double before = 0;
  for (int round = 0; round < 20; ++round) {
    const Stream& stream = round % 2 == 0 ? first : second;
    const Event event(machine);
    stream.record(event);
    event.synchronize(-1);
    // Each event is recorded after the host saw the one before; the clocks agree within 0.1 ms.
    EXPECT_GT(event.time(), before - 1e-4);
    before = event.time();
  }
}

TEST_P(Streams, AFailingWorkFailsTheMachineAndLaterWorkIsSkipped) {
  const Machine machine = open();
  const DeviceArray<> array(machine, 0, Floats(100, 1));
  {
    const Stream stream(machine, 0, 1, "compute"), other(machine, 1, 0, "communication");
    const Event event(machine);
    stream.submit(works_.work("conv1 forward", [](const tandem_call&) {
      host_table().explain("no algorithm fits");
      return TANDEM_FAILED;
    }));
    stream.submit(fill(machine, array, 2));
    stream.record(event);
    other.wait(event);
    const std::string message = message_of([&] { other.synchronize(); });
    EXPECT_THAT(message, HasSubstr("task 'conv1 forward': no algorithm fits"));
    EXPECT_THAT(message_of([&] { event.synchronize(0); }), HasSubstr("conv1 forward"));
  }
}

TEST_P(Streams, AHostWorkRunsAfterEarlierWork) {
  const Machine machine = open(delayed(0.05));
  const DeviceArray<> array(machine, 0, Floats(100, 1));
  const Stream stream(machine, 0, 1, "compute");
  const Event filled(machine);
  for (int i = 0; i < 5; ++i) stream.submit(fill(machine, array, 2));
  stream.record(filled);
  bool was_filled = false;
  stream.submit(works_.host("prepare", [&](const tandem_call& call) {
    was_filled = filled.synchronize(0);
    EXPECT_EQ(call.device, 0);
    return TANDEM_OK;
  }));
  stream.synchronize();
  EXPECT_TRUE(was_filled);
}

// A message of another process, which arrives when the test says so.
class Message {
 public:
  tandem_work work(Works& works) {
    return works.message("receive", [this](const tandem_call&) {
      arrived_.get_future().wait();
      return status_;
    });
  }
  void arrive(tandem_status status = TANDEM_OK) {
    status_ = status;
    arrived_.set_value();
  }

 private:
  std::promise<void> arrived_;
  tandem_status status_ = TANDEM_OK;
};

TEST_P(Streams, WaitForAMessageWhileTheHostAndOtherStreamsGoOn) {
  const Machine machine = open(delayed(0.001));
  const DeviceArray<> array(machine, 0, Floats(1000, 1)), other(machine, 1, Floats(1000, 1));
  const Stream stream(machine, 0, 0, "communication"), free(machine, 1, 1, "compute");
  Message message;
  const Event before(machine), after(machine);
  stream.submit(fill(machine, array, 2));
  stream.record(before);
  stream.submit(message.work(works_));
  stream.submit(fill(machine, array, 3));
  stream.record(after);
  free.submit(fill(machine, other, 5));
  free.synchronize();
  EXPECT_EQ(other.values(), Floats(1000, 5));
  EXPECT_TRUE(before.synchronize(-1));
  EXPECT_FALSE(after.synchronize(0.05));
  EXPECT_THAT(message_of([&] { static_cast<void>(after.time()); }), HasSubstr("not yet reached"));
  EXPECT_EQ(array.values(), Floats(1000, 2));
  message.arrive();
  after.synchronize(-1);
  EXPECT_GT(after.time(), before.time());
  EXPECT_EQ(array.values(), Floats(1000, 3));
}

TEST_P(Streams, WaitForEventsThatComeAfterAMessage) {
  const Machine machine = open(delayed(0.001));
  const DeviceArray<> array(machine, 0, Floats(1000, 1)), seen(machine, 1, Floats(1000, 1)),
      seen_again(machine, 1, Floats(1000, 1));
  const Stream stream(machine, 0, 0, "communication"), second(machine, 1, 1, "compute"),
      third(machine, 1, 0, "copy");
  Message message;
  const Event ready(machine), read(machine), again(machine);
  stream.submit(message.work(works_));
  stream.submit(fill(machine, array, 2));
  stream.record(ready);
  second.wait(ready);
  second.copy("see", 1, seen.data(), 0, array.data(), array.bytes());
  second.record(read);
  third.wait(read);
  third.copy("see again", 1, seen_again.data(), 1, seen.data(), array.bytes());
  third.record(again);
  EXPECT_FALSE(again.synchronize(0.02));
  message.arrive();
  again.synchronize(-1);
  EXPECT_EQ(seen.values(), Floats(1000, 2));
  EXPECT_EQ(seen_again.values(), Floats(1000, 2));
}

TEST_P(Streams, WaitForTheRecordThatWasTheLatestWhenTheyAskedThoughAMessageHoldsThemUp) {
  const Machine machine = open();
  const DeviceArray<> array(machine, 0, Floats(10, 1));
  const Stream held(machine, 0, 0, "communication"), recorded(machine, 1, 1, "compute");
  Message first, second;
  const Event event(machine), passed(machine);
  recorded.record(event);
  held.submit(first.work(works_));
  held.wait(event);
  held.record(passed);
  recorded.submit(second.work(works_));
  recorded.record(event);  // comes when the second message has
  first.arrive();
  EXPECT_TRUE(passed.synchronize(10));
  EXPECT_FALSE(event.synchronize(0));
  second.arrive();
  EXPECT_TRUE(event.synchronize(-1));
}

TEST_P(Streams, AFailingMessageFailsTheMachineAndReleasesWhoeverWaits) {
  const Machine machine = open();
  const DeviceArray<> array(machine, 0, Floats(10, 1));
  {
    const Stream stream(machine, 0, 0, "communication"), other(machine, 1, 1, "compute");
    Message message;
    const Event event(machine);
    stream.submit(message.work(works_));
    stream.submit(fill(machine, array, 2));
    stream.record(event);
    other.wait(event);
    message.arrive(TANDEM_FAILED);
    EXPECT_THAT(message_of([&] { other.synchronize(); }), HasSubstr("task 'receive'"));
  }
}

TEST_P(Streams, RefuseInvalidArguments) {
  const Machine machine = open();
  const DeviceArray<> array(machine, 0, Floats(4));
  const Stream stream(machine, 0, 0, "copy");
  EXPECT_THAT(message_of([&] { Stream(machine, 2, 0, "x"); }),
              HasSubstr("device 2 of a machine of 2"));
  EXPECT_THAT(message_of([&] { stream.copy("c", 5, array.data(), TANDEM_HOST, &machine, 4); }),
              HasSubstr("device 5 of a machine of 2"));
  EXPECT_THAT(message_of([&] { stream.copy("c", 0, array.data(), 1, nullptr, 4); }),
              HasSubstr("a copy of 4 bytes from NULL"));
  EXPECT_THAT(message_of([&] { stream.copy("c", 0, array.data(), 1, array.data(), -1); }),
              HasSubstr("a copy of -1 bytes"));
  EXPECT_THAT(message_of([&] { Memory(machine, 0, TANDEM_MEMORY_DEVICE, int64_t{1} << 50); }),
              HasSubstr("out of memory"));
}

TEST_P(Streams, DescribeTheirDevice) {
  const Machine machine = open();
  for (int device = 0; device < 2; ++device) {
    const tandem_device_info info = machine.device_info(device);
    EXPECT_NE(std::string(info.name), "");
    EXPECT_GT(info.available_bytes, 0);
    EXPECT_LE(info.available_bytes, info.memory_bytes);
    EXPECT_GT(info.peak_flops, 1e9);
    EXPECT_GT(info.memory_bandwidth, 1e8);
  }
}

}  // namespace
}  // namespace tandem::test
