#include "datasets/picture/names.h"

#include <algorithm>
#include <array>

#include "plugins/composed.h"

namespace tandem::picture {
namespace {

constexpr size_t listed = 8;

}  // namespace

std::string as_utf8(const std::string& name) {
  if (is_utf8(name)) return plain_name(name);
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
  return plain_name(result);
}

std::string beginning_of(std::string_view text) {
  constexpr size_t max_bytes = 60;
  std::string result;
  for (const char c : text.substr(0, max_bytes)) {
    result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return as_utf8(result) + (text.size() > max_bytes ? "..." : "");
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = characters::lower(c);
  return result;
}

bool has_word(std::string_view name, std::string_view word) {
  const std::string text = lower_case(name);
  const auto is_inside = [](char c) { return characters::is_digit(c) || (c >= 'a' && c <= 'z'); };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || !is_inside(text[at - 1]);
    if (begins && (end == text.size() || !is_inside(text[end]))) return true;
  }
  return false;
}

bool is_litter(std::string_view name) {
  static constexpr std::array known{
      // of systems and network drives
      "__macosx", "thumbs.db", "ehthumbs.db", "desktop.ini", "@eadir", "lost+found", "$recycle.bin",
      "#recycle", "@recycle", "#snapshot", "@snapshot", "@recently-snapshot", "@tmp", "found.000",
      "system volume information", "network trash folder", "temporary items",
      // of programs
      "__pycache__", "wandb", "mlruns", "lightning_logs", "work_dirs"};
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
  // A name of which no letter is left is no misspelled one: '7' is not '0'.
  const auto distance = [](std::string_view a, std::string_view b) {
    const size_t away = edit_distance(a, b);
    return away > 0 && away >= std::max(a.size(), b.size()) ? std::string_view::npos : away;
  };
  return suggest_nearest(name, known, 1, distance);
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  const size_t shown = std::min(names.size(), listed);
  for (size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > shown) text += " and " + std::to_string(names.size() - shown) + " more";
  return text;
}

}  // namespace tandem::picture
