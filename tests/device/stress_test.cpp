#include <atomic>
#include <thread>
#include <vector>

#include "core/base/numbers/random.h"
#include "tests/device/backends.h"

namespace tandem {
namespace {

using test::open_machine;
using test::Works;

// Many host threads issue to many streams. Every stream owns a counter that only its works touch,
// without atomics: a sanitizer sees a work that runs early.
TEST(Stress, StreamsIssuedToByManyHostThreadsKeepEveryWork) {
  const Machine machine = open_machine("cpu:3");
  constexpr int stream_count = 6, host_count = 4, rounds = 500;
  Works works;
  std::vector<Stream> streams;
  std::vector<int> counters(stream_count);
  std::vector<tandem_work> increments;
  for (int s = 0; s < stream_count; ++s) {
    streams.emplace_back(machine, s % 3, 0, "stream");
    increments.push_back(works.action("count", [&counters, s] { ++counters[size_t(s)]; }));
  }
  std::vector<std::thread> hosts;
  for (int h = 0; h < host_count; ++h) {
    hosts.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        for (int s = 0; s < stream_count; ++s) streams[size_t(s)].submit(increments[size_t(s)]);
      }
    });
  }
  for (std::thread& host : hosts) host.join();
  for (const Stream& stream : streams) stream.synchronize();
  EXPECT_EQ(counters, std::vector<int>(stream_count, host_count * rounds));
}

// A random graph over random streams with re-recorded events, twice: plain values written by one
// task and read by the next must come out the same as when played one after the other.
std::vector<uint64_t> play(const MachineOptions& options, uint64_t seed) {
  const Machine machine = open_machine("cpu:4", options);
  constexpr size_t cells = 8;
  std::vector<uint64_t> values(cells, 1);
  Works works;
  std::vector<Event> written;  // one for each cell, recorded again and again
  for (size_t i = 0; i < cells; ++i) written.emplace_back(machine);
  std::vector<Stream> streams;
  for (size_t i = 0; i < cells; ++i) {
    streams.emplace_back(machine, static_cast<int>(i % 4), 0, "s");
  }
  Random random(seed, 0);
  for (uint64_t task = 0; task < 400; ++task) {
    const size_t a = random.below(cells), b = random.below(cells), s = random.below(cells);
    streams[s].wait(written[a]);
    streams[s].wait(written[b]);
    streams[s].submit(works.action("mix", [&values, a, b, task] {
      values[a] = values[a] * 6364136223846793005U + values[b] + task;
    }));
    streams[s].record(written[a]);
    streams[s].record(written[b]);  // whoever writes b next waits for this reader
  }
  for (const Stream& stream : streams) stream.synchronize();
  return values;
}

TEST(Stress, ARandomGraphOfEventsGivesTheSameBitsUnderDelays) {
  for (const uint64_t seed : {11, 12}) {
    const std::vector<uint64_t> expected = play({}, seed);
    for (const uint64_t delay_seed : {1, 2}) {
      MachineOptions options;
      options.delay_seed = delay_seed;
      options.delay_seconds = 0.0002;
      EXPECT_EQ(play(options, seed), expected);
    }
  }
}

TEST(Stress, MachinesOpenAndCloseManyTimes) {
  for (int i = 0; i < 50; ++i) {
    const Machine machine = open_machine("cpu:2");
    Works works;
    std::atomic<int> ran{0};
    const Stream a(machine, 0, 0, "a"), b(machine, 1, 0, "b");
    const Event event(machine);
    a.submit(works.action("one", [&] { ++ran; }));
    a.record(event);
    b.wait(event);
    b.submit(works.action("two", [&] { ++ran; }));
    b.synchronize();
    EXPECT_EQ(ran, 2);
  }
}

}  // namespace
}  // namespace tandem
