// The ABI's promises about captured graphs, on logical devices of one GPU, and on two GPUs.
#include <gmock/gmock.h>

#include "tests/cuda/machines.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;

class GraphsOfStreams : public OnDevices {
 protected:
  tandem_work add(const Machine& machine, const DeviceArray<>& target,
                  const DeviceArray<>& source) {
    return works_.work("add", [&](const tandem_call& call) {
      const float* sources[] = {source.data()};
      return machine.backend().arithmetic->add(&call, target.data(), sources, 1, target.count());
    });
  }
  Works works_;
};
INSTANTIATE_TEST_SUITE_P(Devices, GraphsOfStreams, testing::Values("cuda:0,0", two_gpus),
                         device_name);

TEST_P(GraphsOfStreams, RunTheCapturedWorkAtEachLaunchAndNotBefore) {
  const Machine machine = open();
  const DeviceArray<> sum(machine, 0, Floats(1000, 1)), one(machine, 0, Floats(1000, 1));
  const Stream stream(machine, 0, 1, "compute");
  stream.begin_capture();
  stream.submit(add(machine, sum, one));
  stream.submit(add(machine, sum, one));
  const Graph graph = stream.end_capture();
  stream.synchronize();
  EXPECT_EQ(sum.values(), Floats(1000, 1));
  stream.launch("twice", graph);
  stream.submit(add(machine, one, sum));
  stream.launch("twice", graph);
  stream.synchronize();
  EXPECT_EQ(one.values(), Floats(1000, 4));
  EXPECT_EQ(sum.values(), Floats(1000, 11));
}

// first: sum += one; then second: seen = sum; then first: sum += seen.
class Fork {
 public:
  Fork(const Machine& machine, Works& works) : machine_(machine), works_(works) {}

  [[nodiscard]] Graph capture(bool joins = true) {
    first.begin_capture();
    first.submit(add(one));
    first.record(summed);
    second.wait(summed);
    second.copy("see", 1, seen.data(), 0, sum.data(), sum.bytes());
    second.record(copied);
    if (joins) first.wait(copied);
    first.submit(add(seen));
    return first.end_capture();
  }

 private:
  tandem_work add(const DeviceArray<>& source) {
    return works_.work("add", [this, &source](const tandem_call& call) {
      const float* sources[] = {source.data()};
      return machine_.backend().arithmetic->add(&call, sum.data(), sources, 1, sum.count());
    });
  }

  const Machine& machine_;
  Works& works_;

 public:
  const DeviceArray<> sum{machine_, 0, Floats(100)}, one{machine_, 0, Floats(100, 1)},
      seen{machine_, 1, Floats(100)};
  const Stream first{machine_, 0, 1, "compute"}, second{machine_, 1, 0, "communication"};
  const Event summed{machine_}, copied{machine_};
};

TEST_P(GraphsOfStreams, KeepTheOrderOfEventsBetweenStreams) {
  const Machine machine = open();
  Fork fork(machine, works_);
  const Graph graph = fork.capture();
  float expected = 0;
  for (int launch = 0; launch < 20; ++launch) {
    fork.first.launch("step", graph);
    expected = 2 * (expected + 1);
  }
  fork.first.synchronize();
  EXPECT_EQ(fork.sum.values(), Floats(100, expected));
}

TEST_P(GraphsOfStreams, ReportTheCallThatFailsIfAStreamWasNotJoinedAndKeepTheMachineUsable) {
  const Machine machine = open();
  Fork fork(machine, works_);
  const std::string message = message_of([&] { static_cast<void>(fork.capture(false)); });
  EXPECT_THAT(message, HasSubstr("cuda:0: cudaStreamEndCapture: "));
  EXPECT_THAT(message, HasSubstr("(cudaErrorStreamCaptureUnjoined)"));
  const Graph graph = fork.capture();
  fork.first.launch("step", graph);
  fork.first.synchronize();
  EXPECT_EQ(fork.sum.values(), Floats(100, 2));
}

TEST_P(GraphsOfStreams, ReportTheWorkThatFailsInACaptureAndKeepTheMachineUsable) {
  const Machine machine = open();
  const DeviceArray<> sum(machine, 0, Floats(10, 1)), one(machine, 0, Floats(10, 1));
  const Stream stream(machine, 0, 1, "compute");
  stream.begin_capture();
  stream.submit(works_.work("conv1 forward", [](const tandem_call&) {
    host_table().explain("no algorithm fits");
    return TANDEM_FAILED;
  }));
  stream.submit(add(machine, sum, one));
  EXPECT_THAT(message_of([&] { static_cast<void>(stream.end_capture()); }),
              HasSubstr("task 'conv1 forward': no algorithm fits"));
  stream.submit(add(machine, sum, one));
  stream.synchronize();
  EXPECT_EQ(sum.values(), Floats(10, 2));
}

TEST_P(GraphsOfStreams, RefuseWorksThatAllocateOrWait) {
  const Machine machine = open();
  const Stream stream(machine, 0, 1, "compute");
  stream.begin_capture();
  stream.submit(works_.work("grows", [&](const tandem_call&) {
    void* address = nullptr;
    return machine.backend().buffers->allocate(machine.handle(), 0, TANDEM_MEMORY_DEVICE, 256,
                                               &address);
  }));
  const std::string message = message_of([&] { static_cast<void>(stream.end_capture()); });
  EXPECT_THAT(message, HasSubstr("task 'grows': cuda:0: cudaMalloc: "));
  EXPECT_THAT(message, HasSubstr("(cudaErrorStreamCaptureUnsupported)"));
  stream.begin_capture();
  EXPECT_THAT(message_of([&] {
                stream.submit(works_.host("prepare", [](const tandem_call&) { return TANDEM_OK; }));
              }),
              HasSubstr("a work of kind HOST cannot be captured"));
  static_cast<void>(stream.end_capture());
}

TEST_P(GraphsOfStreams, DoNotShareTheirEvents) {
  const Machine machine = open();
  const Stream stream(machine, 0, 1, "compute"), other(machine, 1, 0, "copy");
  const Event inside(machine), outside(machine);
  other.record(outside);
  stream.begin_capture();
  EXPECT_THAT(message_of([&] { stream.wait(outside); }),
              HasSubstr("a stream in a capture cannot wait for an event from outside the capture"));
  stream.record(inside);
  EXPECT_THAT(message_of([&] { static_cast<void>(inside.synchronize(0)); }),
              HasSubstr("recorded in a capture"));
  static_cast<void>(stream.end_capture());
  EXPECT_THAT(message_of([&] { other.wait(inside); }), HasSubstr("recorded in a capture"));
  EXPECT_THAT(message_of([&] { static_cast<void>(inside.time()); }),
              HasSubstr("recorded in a capture"));
  other.record(inside);
  EXPECT_TRUE(inside.synchronize(-1));
}

TEST_P(GraphsOfStreams, AreCapturedOneAtATimePerThreadAndEndOnTheirStream) {
  const Machine machine = open();
  const Stream stream(machine, 0, 1, "compute"), other(machine, 1, 0, "copy");
  EXPECT_THAT(message_of([&] { static_cast<void>(stream.end_capture()); }),
              HasSubstr("this thread has not begun a capture on this stream"));
  stream.begin_capture();
  EXPECT_THAT(message_of([&] { other.begin_capture(); }), HasSubstr("is already capturing"));
  EXPECT_THAT(message_of([&] { static_cast<void>(other.end_capture()); }),
              HasSubstr("has not begun a capture on this stream"));
  static_cast<void>(stream.end_capture());
  other.begin_capture();
  static_cast<void>(other.end_capture());
}

TEST(GraphsOfACpu, AreRefused) {
  const Machine machine =
      Machine(all_modules().backend("cpu"), parse_devices("cpu", all_modules()), {});
  const Stream stream(machine, 0, 1, "compute");
  EXPECT_FALSE(machine.captures_graphs());
  EXPECT_EQ(message_of([&] { stream.begin_capture(); }),
            "backend 'cpu' has no graphs of captured work");
}

}  // namespace
}  // namespace tandem::test
