// What ranks compare before they train together, and how they wait for each other. The ranks are
// threads here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/ranks/agreement.h"
#include "core/ranks/ranks.h"
#include "tests/support/thread_transport.h"

namespace tandem {
namespace {

using test::ThreadWorld;

// What rank 1 says when rank 0 has version `first` and rank 1 has version `second`.
std::string refusal_of_second(const std::string& first, const std::string& second) {
  ThreadWorld world(2);
  std::string refusal;
  std::thread other([&] {
    world.join(1);
    const Communicator ranks(ThreadWorld::transport());
    try {
      require_same_version(ranks, second);
    } catch (const Error& failure) {
      refusal = failure.what();
    }
  });
  world.join(0);
  const Communicator ranks(ThreadWorld::transport());
  require_same_version(ranks, first);
  other.join();
  return refusal;
}

TEST(RankVersions, ThatDifferAreRefusedByTheRankThatDiffers) {
  EXPECT_EQ(refusal_of_second("1.2.0", "1.2.0"), "");
  EXPECT_THAT(refusal_of_second("1.2.0", "1.3.0"),
              testing::MatchesRegex("rank 1 of 2 .host .*.: this is version 1.3.0 of Tandem, rank "
                                    "0 has version 1.2.0: install the "
                                    "same one on all hosts"));
}

constexpr double watchdog_seconds = 0.2;

// What rank `number` of two says when it does that and the other rank does nothing.
template <class Function>
std::string report_of(int number, const Function& function) {
  ThreadWorld world(2);
  world.join(number);
  Communicator ranks(ThreadWorld::transport(), watchdog_seconds);
  ranks.set_hosts({{"a", "b"}, 1});
  try {
    function(ranks);
  } catch (const Error& failure) {
    return failure.what();
  }
  return "";
}

const std::string rest = ": it is stopped, stuck or slow, or cannot be reached";

TEST(RankWaits, EndWithTheRankAndTheHostThatAreWaitedForAndWhatFor) {
  int64_t hash = 0;
  EXPECT_EQ(report_of(1, [&](Communicator& r) { r.broadcast(&hash, sizeof(hash), "its hash"); }),
            "waited 0.22 seconds (--watchdog) for rank 0 (host a) to send its hash" + rest);
  EXPECT_EQ(report_of(0, [&](Communicator& r) { r.receive(1, &hash, sizeof(hash), "its part"); }),
            "waited 0.2 seconds (--watchdog) for rank 1 (host b) to send its part" + rest);
  EXPECT_EQ(report_of(0, [&](Communicator& r) { r.meet("the first step"); }),
            "waited 0.2 seconds (--watchdog) for rank 1 (host b) to come to the first step" + rest);
}

TEST(RankWaits, EndBeforeALargeMessageOfWhichNobodyKnowsWhoHoldsItBack) {
  std::vector<float> weights(100000);
  EXPECT_EQ(
      report_of(0,
                [&](Communicator& ranks) {
                  ranks.broadcast(weights.data(), int64_t(weights.size() * sizeof(float)),
                                  "the weights");
                }),
      "waited 0.2 seconds (--watchdog) for rank 1 (host b) to be ready for the weights" + rest);
}

TEST(RankWaits, NameTheRankAloneBeforeHostsAreKnown) {
  EXPECT_EQ(report_of(0,
                      [&](Communicator& ranks) {
                        ranks.set_hosts({});
                        static_cast<void>(ranks.receive_text(1, "its host"));
                      }),
            "waited 0.2 seconds (--watchdog) for rank 1 to send its host" + rest);
}

}  // namespace
}  // namespace tandem
