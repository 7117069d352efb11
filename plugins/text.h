// Names of files, classes and layers: their order, how near two of them are, and whether they are
// UTF-8. Of both sides, so that core and data sets sort and suggest alike. ASCII only, whatever the
// locale.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

namespace characters {

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
inline char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// The bytes of the well-formed character of UTF-8 (RFC 3629) at `at`; 0: there is none.
inline size_t utf8_bytes(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0U) != 0x80U) return 0;
  }
  const unsigned char second = byte(at + 1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool no_character = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return overlong || no_character ? 0 : length;
}

// The digits at `position` without leading zeros. Moves `position` past them.
inline std::string_view take_digits(std::string_view text, size_t& position) {
  const size_t begin = position;
  while (position < text.size() && is_digit(text[position])) ++position;
  const std::string_view run = text.substr(begin, position - begin);
  return run.substr(std::min(run.find_first_not_of('0'), run.size()));
}

}  // namespace characters

// Whether the bytes are well-formed UTF-8.
[[nodiscard]] inline bool is_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t bytes = characters::utf8_bytes(text, at);
    if (bytes == 0) return false;
    at += bytes;
  }
  return true;
}

// Sorts "2" before "10", otherwise by bytes: the order of class folders.
[[nodiscard]] inline bool natural_less(std::string_view a, std::string_view b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (characters::is_digit(a[i]) && characters::is_digit(b[j])) {
      const std::string_view x = characters::take_digits(a, i);
      const std::string_view y = characters::take_digits(b, j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
      ++i;
      ++j;
    }
  }
  if (i < a.size() || j < b.size()) return i == a.size();
  return a < b;  // equal but for leading zeros
}

// The edits of one letter that make `a` of `b`, in any case.
[[nodiscard]] inline size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool is_same = characters::lower(a[i - 1]) == characters::lower(b[j - 1]);
      const size_t replaced = diagonal + (is_same ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

// " (did you mean 'cat'?)" for the nearest of `known` by distance(name, candidate); "" if all are
// further away than `near` and than a third of the name's length.
template <class Distance>
[[nodiscard]] std::string suggest_nearest(std::string_view name,
                                          const std::vector<std::string>& known, size_t near,
                                          const Distance& distance) {
  // Nobody types a longer name, and comparing two takes time by the product of their lengths.
  constexpr size_t max_typed = 200;
  if (name.size() > max_typed) return "";
  std::string nearest;
  size_t least = std::max(near, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    if (candidate.size() > max_typed) continue;
    const size_t away = distance(name, candidate);
    if (away >= least) continue;
    least = away;
    nearest = candidate;
  }
  return nearest.empty() ? "" : " (did you mean '" + nearest + "'?)";
}

}  // namespace tandem
