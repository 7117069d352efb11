// Rows that are copied together: the same bytes as row by row, on any devices, in one call to CUDA.
// On cpu devices the host copies row by row.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>

#include "tests/cuda/graph_rig.h"
#include "tests/cuda/machines.h"
#include "tests/support/backend_copy.h"

namespace tandem::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The number of copies that the stand-in has seen; -1: a GPU does not report it.
int copies_seen() {
  const auto count = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "tandem_fake_copies"));
  return count == nullptr ? -1 : count();
}

// 7 rows of 3 floats, 5 apart in the source, 4 apart in the target.
constexpr int64_t rows = 7, width = 3, from_width = 5, to_width = 4;

Floats counted(int64_t count, float first) {
  Floats values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
  return values;
}
Floats copied_by_hand(const Floats& source, Floats target) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < width; ++i) {
      target[static_cast<size_t>(row * to_width + i)] =
          source[static_cast<size_t>(row * from_width + i)];
    }
  }
  return target;
}
tandem_rows rows_of(int target_device, void* target, int source_device, const void* source) {
  return {sizeof(tandem_rows), target_device,  source_device, target, source,
          4 * to_width,        4 * from_width, 4 * width,     rows};
}

class RowsOnStreams : public OnDevices {
 protected:
  void TearDown() override { unsetenv("TANDEM_FAKE_FAILS"); }
  const Floats source_ = counted(rows * from_width, 1), target_ = counted(rows * to_width, -500);
  const Floats expected_ = copied_by_hand(source_, target_);
};
INSTANTIATE_TEST_SUITE_P(Devices, RowsOnStreams, testing::Values("cpu:2", "cuda:0,0", two_gpus),
                         device_name);

TEST_P(RowsOnStreams, AreCopiedBetweenDevicesWithinOneAndToAndFromTheHost) {
  const Machine machine = open();
  for (const auto& [from, to] : {std::pair{0, 0}, {0, 1}, {1, 0}}) {
    const DeviceArray<> source(machine, from, source_), target(machine, to, target_);
    const Stream stream(machine, to, 0, "communication");
    const int before = copies_seen();
    stream.copy_rows("rows", rows_of(to, target.data(), from, source.data()));
    stream.synchronize();
    if (before >= 0 && is_gpu(GetParam())) {
      EXPECT_EQ(copies_seen() - before, 1);
    }
    EXPECT_EQ(target.values(), expected_) << from << " to " << to;
  }
  const DeviceArray<> source(machine, 1, source_), target(machine, 1, target_);
  const Stream stream(machine, 1, 0, "copy");
  Floats out = target_;
  stream.copy_rows("out", rows_of(TANDEM_HOST, out.data(), 1, source.data()));
  stream.copy_rows("in", rows_of(1, target.data(), TANDEM_HOST, source_.data()));
  stream.synchronize();
  EXPECT_EQ(out, expected_);
  EXPECT_EQ(target.values(), expected_);
}

TEST_P(RowsOnStreams, CanBeCapturedAndAreCopiedAgainAtEachLaunch) {
  if (!is_gpu(GetParam())) return;
  const Machine machine = open();
  const DeviceArray<> source(machine, 0, source_), target(machine, 1, target_);
  const Stream stream(machine, 0, 1, "compute");
  stream.begin_capture();
  stream.copy_rows("rows", rows_of(1, target.data(), 0, source.data()));
  const Graph graph = stream.end_capture();
  EXPECT_EQ(target.values(), target_);
  stream.launch("step", graph);
  stream.synchronize();
  EXPECT_EQ(target.values(), expected_);
  const Floats others = counted(rows * from_width, 70);
  stream.copy("others", 0, source.data(), TANDEM_HOST, others.data(), source.bytes());
  stream.launch("step", graph);
  stream.synchronize();
  EXPECT_EQ(target.values(), copied_by_hand(others, target_));
}

TEST_P(RowsOnStreams, ThatCudaRefusesAreReportedWithTheCallTheGpuAndItsMessage) {
  if (copies_seen() < 0 || !is_gpu(GetParam())) {
    GTEST_SKIP() << "only the stand-in can make calls fail";
  }
  const Machine machine = open();
  const DeviceArray<> source(machine, 0, source_), target(machine, 1, target_);
  const bool between_gpus = GetParam() == two_gpus;
  const std::string call = between_gpus ? "cudaMemcpy3DPeerAsync" : "cudaMemcpy2DAsync";
  setenv("TANDEM_FAKE_FAILS", call.c_str(), 1);
  {
    const Stream stream(machine, 1, 0, "communication");
    stream.copy_rows("gather", rows_of(1, target.data(), 0, source.data()));
    EXPECT_THAT(
        message_of([&] { stream.synchronize(); }),
        AllOf(HasSubstr("task 'gather': "), HasSubstr(between_gpus ? "cuda:1: " : "cuda:0: "),
              HasSubstr(call + ": "), HasSubstr("(cudaErrorUnknown)")));
  }
  EXPECT_EQ(message_of([&] { (void)open(); }), "");
}

TEST_P(RowsOnStreams, AreRefusedIfTheyAreInvalid) {
  if (!is_gpu(GetParam())) return;
  const Machine machine = open();
  const DeviceArray<> array(machine, 0, source_);
  const Stream stream(machine, 0, 0, "copy");
  const tandem_rows good = rows_of(0, array.data(), TANDEM_HOST, source_.data());
  const auto refusal = [&](const auto& spoil) {
    tandem_rows bad = good;
    spoil(bad);
    return message_of([&] { stream.copy_rows("rows", bad); });
  };
  EXPECT_THAT(refusal([](tandem_rows& r) { r.target_stride = 8; }),
              HasSubstr("rows of 12 bytes that begin 8 bytes apart"));
  EXPECT_THAT(refusal([](tandem_rows& r) { r.source_stride = -20; }), HasSubstr("-20 bytes apart"));
  EXPECT_THAT(refusal([](tandem_rows& r) { r.row_bytes = -4; }), HasSubstr("a copy of -4 bytes"));
  EXPECT_THAT(refusal([](tandem_rows& r) { r.source = nullptr; }), HasSubstr("bytes from NULL"));
  EXPECT_THAT(refusal([](tandem_rows& r) { r.target_device = 7; }),
              HasSubstr("device 7 of a machine of 2"));
}

// The calls of the executor to the backend.
std::atomic<int> row_copies, plain_copies;
tandem_status count_rows(tandem_stream* stream, const char* label, const tandem_rows* given) {
  ++row_copies;
  return cuda().streams->copy_rows(stream, label, given);
}
tandem_status count_copy(tandem_stream* stream, const char* label, int32_t to, void* target,
                         int32_t from, const void* source, int64_t bytes) {
  ++plain_copies;
  return cuda().streams->copy(stream, label, to, target, from, source, bytes);
}

// Two blocks of 6 rows, 2 and 3 floats wide, are put side by side, as fc_parallel does with logits.
Plan gathering() {
  constexpr int64_t count = 6;
  Maker maker(1);
  const Region left = maker.constant("left", 0, counted(count * 2, 1)),
               right = maker.constant("right", 0, counted(count * 3, 100)),
               whole = maker.persistent("whole", 0, count * 5);
  CopyWork work;
  for (const auto& [source, begin, floats] : {std::tuple{left, 0, 2}, {right, 2, 3}}) {
    for (int64_t row = 0; row < count; ++row) {
      work.segments.push_back({{source.buffer, row * floats * 4, floats * 4},
                               {whole.buffer, (row * 5 + begin) * 4, floats * 4}});
    }
  }
  maker.task("gather", {communication(0)}, {left, right}, {whole}, work);
  maker.add("more", compute(0), left, {left});
  return maker.derived();
}

class RowsOfPlans : public OnDevices {
 protected:
  struct Outcome {
    Floats whole;
    int rows, copies;  // of the first step
  };
  static Outcome run(const tandem_backend& given, GraphUse use) {
    BackendCopy backend = given;
    if (backend.streams.copy_rows != nullptr) backend.streams.copy_rows = &count_rows;
    backend.streams.copy = &count_copy;
    GpuRig rig(GetParam(), gathering(), backend, with_graphs(use));
    row_copies = plain_copies = 0;
    rig.executor->issue(0, {});
    Outcome outcome{Floats(30), row_copies, plain_copies};
    for (int64_t step = 1; step < 6; ++step) rig.executor->issue(step, {});
    rig.executor->drain();
    rig.runtime.read_persistent("whole", 0, outcome.whole.data(), 120);
    return outcome;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, RowsOfPlans, testing::Values("cuda:0,0"), device_name);

TEST_P(RowsOfPlans, AreOneCallForEachBlock) {
  const Outcome live = run(cuda(), GraphUse::off);
  EXPECT_EQ(live.rows, 2);
  EXPECT_EQ(live.copies, 0);
  for (size_t row = 0; row < 6; ++row) {
    const auto at = [&](size_t i) { return live.whole[row * 5 + i]; };
    // Doubled by each of the five steps before the last.
    EXPECT_EQ(at(0), 32 * static_cast<float>(1 + 2 * row));
    EXPECT_EQ(at(1), 32 * static_cast<float>(2 + 2 * row));
    EXPECT_EQ(at(4), static_cast<float>(102 + 3 * row));
  }
  EXPECT_EQ(run(cuda(), GraphUse::on).whole, live.whole);
}

TEST_P(RowsOfPlans, AreCopiedOneByOneOnABackendWithoutRowCopies) {
  BackendCopy older = cuda();
  older.streams.copy_rows = nullptr;
  const Outcome each = run(older, GraphUse::off);
  EXPECT_EQ(each.rows, 0);
  EXPECT_EQ(each.copies, 12);
  EXPECT_EQ(each.whole, run(cuda(), GraphUse::off).whole);
}

}  // namespace
}  // namespace tandem::test
