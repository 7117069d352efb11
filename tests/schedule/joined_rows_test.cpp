// Copies that join to one copy of rows, and those that must not.
#include "core/schedule/execution/joined_rows.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace tandem {
namespace {

// Bytes of a device's memory, which these copies are between.
struct Memory {
  std::array<char, 256> target{}, source{};
  Memory() {
    for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>(i);
  }
  tandem_rows copy(int64_t to, int64_t from, int64_t bytes, int device = 0) {
    return one_row(device, target.data() + to, device, source.data() + from, bytes);
  }
  // What the target then holds.
  std::array<char, 256> after(const std::vector<tandem_rows>& copies) {
    target.fill(-1);
    for (const tandem_rows& rows : copies) {
      for (int64_t row = 0; row < rows.row_count; ++row) {
        std::memcpy(static_cast<char*>(rows.target) + row * rows.target_stride,
                    static_cast<const char*>(rows.source) + row * rows.source_stride,
                    static_cast<size_t>(rows.row_bytes));
      }
    }
    return target;
  }
  // As many as are expected, and the same bytes.
  std::vector<tandem_rows> joined(const std::vector<tandem_rows>& copies, size_t count) {
    std::vector<tandem_rows> result = joined_rows(copies);
    EXPECT_EQ(result.size(), count);
    EXPECT_EQ(after(result), after(copies));
    return result;
  }
};

TEST(JoinedRows, AreCopiesAtEvenDistances) {
  Memory memory;
  std::vector<tandem_rows> copies;
  for (int row = 0; row < 5; ++row) copies.push_back(memory.copy(20 * row, 8 * row, 8));
  for (int row = 0; row < 5; ++row) copies.push_back(memory.copy(20 * row + 8, 100 + 12 * row, 12));
  const std::vector<tandem_rows> joined = memory.joined(copies, 2);
  EXPECT_EQ(joined[0].row_count, 5);
  EXPECT_EQ(joined[0].target_stride, 20);
  EXPECT_EQ(joined[0].source_stride, 8);
  EXPECT_EQ(joined[1].row_bytes, 12);
}

TEST(JoinedRows, ThatTouchOnBothSidesAreOneRow) {
  Memory memory;
  const std::vector<tandem_rows> joined =
      memory.joined({memory.copy(4, 40, 4), memory.copy(8, 44, 4), memory.copy(12, 48, 4)}, 1);
  EXPECT_EQ(joined[0].row_count, 1);
  EXPECT_EQ(joined[0].row_bytes, 12);
}

TEST(JoinedRows, EndWhereADistanceChangesOrARowIsOfAnotherWidth) {
  Memory memory;
  memory.joined({memory.copy(0, 0, 4), memory.copy(10, 8, 4), memory.copy(21, 16, 4)}, 2);
  memory.joined({memory.copy(0, 0, 4), memory.copy(10, 8, 4), memory.copy(20, 17, 4)}, 2);
  memory.joined({memory.copy(0, 0, 4), memory.copy(10, 8, 4), memory.copy(20, 16, 5)}, 2);
  memory.joined({memory.copy(0, 0, 4), memory.copy(10, 8, 4, 1)}, 2);
}

// The later copy must win, and no distance may be negative.
TEST(JoinedRows, AreNoneThatOverlapOrGoBackwards) {
  Memory memory;
  memory.joined({memory.copy(0, 0, 8), memory.copy(4, 20, 8)}, 2);
  memory.joined({memory.copy(0, 0, 8), memory.copy(20, 4, 8)}, 2);
  memory.joined({memory.copy(0, 0, 8), memory.copy(20, 0, 8)}, 2);
  memory.joined({memory.copy(40, 40, 8), memory.copy(20, 20, 8)}, 2);
  memory.joined({}, 0);
}

}  // namespace
}  // namespace tandem
