// What ranks compare before they train together. The ranks are threads here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "core/base/error.h"
#include "core/train/ranks.h"
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
  EXPECT_EQ(refusal_of_second("1.2.0", "1.3.0"),
            "rank 1 of 2: this is version 1.3.0 of Tandem, rank 0 has version 1.2.0: install the "
            "same one on all hosts");
}

}  // namespace
}  // namespace tandem
