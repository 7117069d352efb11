// What the texts in a column of labels look like: missing, 0 and 1, numbers, and numbers as people
// write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace tandem::image_folder {

// As an empty field, "NaN" or "?".
[[nodiscard]] bool is_missing(const std::string& text);

constexpr double not_binary = -2;
// 0 or 1; -1 as CelebA writes 0; else `not_binary`.
[[nodiscard]] double binary_of(const std::string& text);

// What the texts of one column have in common.
struct Survey {
  bool is_binary = true, is_number = true, is_whole = true;
  bool is_count = true;  // whole numbers from 0 on, perhaps written as 3.0
  bool has_negative = false, has_zero = false, has_minus_one = false;
  int64_t missing = 0, numbers = 0;
  int64_t fractions = 0;  // numbers with a decimal point
  size_t most_distinct = std::numeric_limits<size_t>::max();
  std::set<std::string> distinct;  // as they came, up to so many

  void add(const std::string& text);
  // Of 0 and 1, or of -1 and 1.
  [[nodiscard]] bool has_two_values() const { return is_binary && !(has_zero && has_minus_one); }
};

// A number with a sign of money, a percent sign or marks between thousands: "$1,200", "1'200.50".
[[nodiscard]] bool is_written_number(std::string text);
// A number with a unit or a bound: "7.5 cm", "90+", "<5".
[[nodiscard]] bool is_quantity(const std::string& text);

}  // namespace tandem::image_folder
