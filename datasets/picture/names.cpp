#include "datasets/picture/names.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace tandem::picture {
namespace {

constexpr size_t listed = 8;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The number at `position` without leading zeros. Moves `position` past it.
std::string_view take_number(std::string_view text, size_t& position) {
  while (position + 1 < text.size() && text[position] == '0' && is_digit(text[position + 1])) {
    ++position;
  }
  const size_t begin = position;
  while (position < text.size() && is_digit(text[position])) ++position;
  return text.substr(begin, position - begin);
}

// Comparing two names takes time by the product of their lengths.
constexpr size_t longest_typed = 200;

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j - 1] + 1, row[j] + 1, replaced});
    }
  }
  return row[b.size()];
}

// The length of the well-formed character (RFC 3629) at `at`; 0: there is none.
size_t character_length(std::string_view text, size_t at) {
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

}  // namespace

std::string as_utf8(const std::string& name) {
  size_t at = 0;
  while (at < name.size()) {
    const size_t length = character_length(name, at);
    if (length == 0) break;
    at += length;
  }
  if (at == name.size()) return name;
  std::string result;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      result += c;
    } else {
      result += static_cast<char>(0xc0U | byte >> 6);
      result += static_cast<char>(0x80U | (byte & 0x3fU));
    }
  }
  return result;
}

std::string beginning_of(std::string_view text) {
  constexpr size_t most = 60;
  std::string result;
  for (const char c : text.substr(0, most)) {
    result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return as_utf8(result) + (text.size() > most ? "..." : "");
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

bool has_word(std::string_view name, std::string_view word) {
  const std::string text = lower_case(name);
  const auto is_inside = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'z'); };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || !is_inside(text[at - 1]);
    if (begins && (end == text.size() || !is_inside(text[end]))) return true;
  }
  return false;
}

bool natural_less(std::string_view a, std::string_view b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::string_view x = take_number(a, i);
      const std::string_view y = take_number(b, j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
    ++i;
    ++j;
  }
  if (i < a.size() || j < b.size()) return i == a.size();
  return a < b;
}

bool is_litter(std::string_view name) {
  static constexpr std::array known{"__macosx",   "thumbs.db",    "desktop.ini", "@eadir",
                                    "lost+found", "$recycle.bin", "ehthumbs.db", "__pycache__"};
  const std::string small = lower_case(name);
  return name.starts_with('.') || std::find(known.begin(), known.end(), small) != known.end();
}

std::string extension_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return "without extension";
  return lower_case(name.substr(dot));
}

bool is_image(std::string_view name) {
  static constexpr std::array known{".jpg", ".jpeg", ".jpe", ".jfif", ".png",  ".bmp",
                                    ".dib", ".webp", ".tif", ".tiff", ".ppm",  ".pgm",
                                    ".pbm", ".pnm",  ".gif", ".avif", ".heic", ".heif"};
  return std::find(known.begin(), known.end(), extension_of(name)) != known.end();
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  if (name.size() > longest_typed) return "";
  std::string nearest;
  size_t least = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    if (candidate.size() > longest_typed) continue;
    const size_t distance = edit_distance(lower_case(name), lower_case(candidate));
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest.empty() ? "" : " (did you mean '" + nearest + "'?)";
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  const size_t shown = std::min(names.size(), listed);
  for (size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > shown) text += " and " + std::to_string(names.size() - shown) + " more";
  return text;
}

}  // namespace tandem::picture
