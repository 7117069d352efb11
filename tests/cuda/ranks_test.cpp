// Plans whose copies are messages between ranks, on devices whose memory the host may not address.
// The ranks are threads here, each with a machine of its own.
#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <thread>

#include "core/device/communicator.h"
#include "core/schedule/plan/localize.h"
#include "tests/cuda/machines.h"
#include "tests/schedule/handmade.h"
#include "tests/support/thread_transport.h"

namespace tandem::test {
namespace {

constexpr int in_all = 4;
constexpr int64_t floats = 4096;

// In a ring every device adds what its neighbor before it has: in two parts, whose messages have
// different sizes and share a stream.
Plan ring() {
  Maker maker(in_all);
  std::vector<Region> own, received;
  for (int device = 0; device < in_all; ++device) {
    std::vector<float> values;
    for (int64_t i = 0; i < floats; ++i) values.push_back(float(device * 10 + i % 97) / 64);
    own.push_back(maker.constant("own", device, values));
    received.push_back(maker.floats("received", device, floats));
  }
  for (int device = 0; device < in_all; ++device) {
    const int next = (device + 1) % in_all;
    for (const Interval part : {Interval{0, floats}, Interval{floats, 4 * floats}}) {
      const Region from{own[size_t(device)].buffer, part.begin, part.count()},
          to{received[size_t(next)].buffer, part.begin, part.count()};
      maker.copy(fmt::format("send {} @{}", part.begin, device),
                 {communication(next), communication(device)}, to, from);
    }
    maker.add(fmt::format("add @{}", next), compute(next), own[size_t(next)],
              {received[size_t(next)]});
  }
  return maker.derived();
}

MessagePath path_of(const tandem_backend& backend) {
  return is_host_addressable(backend) ? MessagePath::direct : MessagePath::host;
}

class RanksOnDevices : public OnDevices {
 protected:
  // The bytes of all devices after some micro-batches.
  static std::vector<Floats> run(int ranks, int64_t micro_batches,
                                 const MachineOptions& options = {}) {
    const tandem_backend& backend =
        all_modules().backend(parse_devices(GetParam(), all_modules()).kind);
    ThreadWorld world(ranks);
    const int each = in_all / ranks;
    std::vector<Floats> result(in_all);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        world.join(rank);
        const Communicator communicator(ThreadWorld::transport());
        ExecutorOptions executor;
        executor.ranks = &communicator;
        executor.watchdog_seconds = 60;
        Rig rig(localize(ring(), equal_ranks(ranks, each), rank, path_of(backend)), backend,
                options, executor);
        rig.run(micro_batches);
        for (int device = 0; device < each; ++device) {
          result[size_t(rank * each + device)] = rig.read("own", device, floats);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return result;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, RanksOnDevices,
                         testing::Values(std::string("cpu:4"), std::string("cuda:0,1,2,3")),
                         device_name);

TEST_P(RanksOnDevices, ComputeWhatOneProcessDoes) {
  const std::vector<Floats> alone = run(1, 6);
  EXPECT_EQ(run(2, 6), alone);
  EXPECT_EQ(run(4, 6), alone);
}

TEST_P(RanksOnDevices, ComputeTheSameBitsUnderRandomStreamDelays) {
  MachineOptions delayed;
  delayed.delay_seed = 5;
  delayed.delay_seconds = 0.002;
  EXPECT_EQ(run(2, 6, delayed), run(1, 6));
}

// Rank 1 of two, which waits for a message of rank 0. Rank 0 never sends.
struct WaitingRank {
  WaitingRank(const std::string& devices, double watchdog_seconds) {
    world.join(1);
    communicator = std::make_unique<Communicator>(ThreadWorld::transport());
    const tandem_backend& backend =
        all_modules().backend(parse_devices(devices, all_modules()).kind);
    ExecutorOptions options;
    options.ranks = communicator.get();
    options.watchdog_seconds = watchdog_seconds;
    rig = std::make_unique<Rig>(localize(ring(), equal_ranks(2, 2), 1, path_of(backend)), backend,
                                MachineOptions(), options);
    rig->executor->issue(0, {});
  }
  ThreadWorld world{2};
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<Rig> rig;
};

TEST_P(RanksOnDevices, EndATaskThatWaitsForAMessageWhenTheyGiveUp) {
  const WaitingRank rank(GetParam(), ExecutorOptions().watchdog_seconds);
  rank.communicator->abort();
  EXPECT_THAT(message_of([&] { rank.rig->executor->drain(); }),
              testing::HasSubstr("receive send 0 @1 from rank 0"));
}

TEST_P(RanksOnDevices, AreNamedInTheReportOfAStuckStep) {
  const WaitingRank rank(GetParam(), 0.2);
  EXPECT_THAT(message_of([&] { rank.rig->executor->drain(); }),
              testing::HasSubstr("receive send 0 @1 from rank 0"));
  rank.communicator->abort();
}

}  // namespace
}  // namespace tandem::test
