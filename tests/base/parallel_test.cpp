#include "core/base/parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace tandem {
namespace {

TEST(ParallelFor, VisitsEveryItemOnceForAnyNumberOfThreads) {
  for (const int threads : {1, 2, 5}) {
    std::vector<std::atomic<int>> visits(100);
    std::atomic<int> largest{0};
    parallel_for(100, threads, [&](int64_t item, int thread) {
      ++visits[static_cast<size_t>(item)];
      for (int seen = largest; thread > seen && !largest.compare_exchange_weak(seen, thread);) {
      }
    });
    for (const std::atomic<int>& count : visits) EXPECT_EQ(count.load(), 1);
    EXPECT_LT(largest, threads);
  }
}

TEST(ParallelFor, WithoutItemsCallsNothing) {
  parallel_for(0, 3, [](int64_t, int) { FAIL(); });
}

TEST(ParallelFor, ThrowsTheFirstExceptionAndEndsEarly) {
  std::atomic<int64_t> visited{0};
  const auto work = [&](int64_t item, int) {
    if (item == 3) throw std::runtime_error("item 3");
    ++visited;
  };
  EXPECT_THROW(parallel_for(1'000'000'000, 2, work), std::runtime_error);
  EXPECT_LT(visited, 1'000'000'000 - 1);
}

}  // namespace
}  // namespace tandem
