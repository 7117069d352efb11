#include "core/base/numbers/interval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <random>

namespace tandem {
namespace {

TEST(Interval, SharesCoverEverythingOnceAndDifferByAtMostOne) {
  for (const int64_t count : {0, 1, 7, 8, 100}) {
    for (const int parts : {1, 2, 3, 8}) {
      int64_t next = 0;
      for (int i = 0; i < parts; ++i) {
        const Interval part = share(count, parts, i);
        EXPECT_EQ(part.begin, next);
        EXPECT_GE(part.count(), count / parts);
        EXPECT_LE(part.count(), count / parts + 1);
        next = part.end;
      }
      EXPECT_EQ(next, count);
    }
  }
}

TEST(Interval, OverlapsWhereTheIntersectionIsNotEmpty) {
  const Interval a{2, 5};
  for (int64_t begin = 0; begin < 8; ++begin) {
    for (int64_t end = begin + 1; end < 8; ++end) {
      const Interval b{begin, end};
      EXPECT_EQ(a.overlaps(b), !intersection(a, b).is_empty()) << begin << " to " << end;
      EXPECT_EQ(a.contains(b), intersection(a, b) == b) << begin << " to " << end;
    }
  }
}

// Against one flag a number.
TEST(IntervalSet, HoldsWhatWasAddedInTheFewestIntervals) {
  constexpr size_t size = 60;
  std::mt19937 random(7);  // NOLINT: always the same
  for (int round = 0; round < 200; ++round) {
    IntervalSet set;
    std::array<bool, size + 1> flags{};  // the last one stays false
    for (int i = 0; i < 8; ++i) {
      const auto begin = static_cast<int64_t>(random() % size);
      const int64_t end = std::min<int64_t>(begin + static_cast<int64_t>(random() % 12), size);
      set.add({begin, end});
      for (int64_t n = begin; n < end; ++n) flags[static_cast<size_t>(n)] = true;
    }
    size_t intervals = 0;
    for (size_t n = 0; n < size; ++n) {
      if (flags[n] && !flags[n + 1]) ++intervals;
      const Interval found = set.find(static_cast<int64_t>(n));
      ASSERT_EQ(!found.is_empty(), flags[n]) << n;
      for (size_t end = n + 1; end <= size; ++end) {
        bool all = true;
        for (size_t i = n; i < end; ++i) all = all && flags[i];
        ASSERT_EQ(set.contains({static_cast<int64_t>(n), static_cast<int64_t>(end)}), all)
            << n << " to " << end;
      }
    }
    EXPECT_EQ(set.intervals().size(), intervals);
  }
}

}  // namespace
}  // namespace tandem
