#include "datasets/image_folder/caffe_list.h"

#include <algorithm>

#include "datasets/image_folder/list_lines.h"
#include "datasets/picture/names.h"

namespace tandem::image_folder {
namespace {

using picture::as_utf8;
using picture::beginning_of;
using NumberedLines = std::vector<std::pair<int64_t, std::string_view>>;

// Caffe's form: a path, and behind it one number or several.
struct CaffeLine {
  std::vector<std::string_view> words;  // without the first one, which is of the path
  std::string_view text;
  size_t numbers = 0;  // words at the end that are numbers
  int64_t line = 0;
};

CaffeLine caffe_line(std::string_view text, const Line& place) {
  CaffeLine result;
  result.text = text;
  result.line = place.line;
  constexpr const char* gaps = " \t";
  for (size_t at = text.find_first_of(gaps); at < text.size();) {
    at = text.find_first_not_of(gaps, at);
    const size_t end = std::min(text.find_first_of(gaps, at), text.size());
    result.words.push_back(text.substr(at, end - at));
    at = end;
  }
  if (result.words.empty()) {
    throw wrong(place, "'", beginning_of(text), "' must be a path, a space and the class's number");
  }
  double ignored = 0;
  for (size_t i = result.words.size(); i-- > 0 && read_number(result.words[i], &ignored);) {
    ++result.numbers;
  }
  if (result.numbers > 0) return result;
  if (picture::is_image(result.words.back())) {
    throw wrong(place, "'", beginning_of(text),
                "': the path comes first, and the number behind it");
  }
  throw wrong(place, "the class '", beginning_of(result.words.back()),
              "' must be a number from 0 on (a list with class names is CSV: path,label)");
}

// Of the list of CelebA the first line is the number of images, the second one names the labels.
bool has_celeba_heading(const std::vector<std::string_view>& lines) {
  double count = 0;
  if (lines.size() < 3 || !read_number(lines[0], &count)) return false;
  const auto words = [](std::string_view line) {
    size_t result = 0;
    for (size_t i = 0; i < line.size(); ++i) {
      const auto is_gap = [&](size_t at) { return line[at] == ' ' || line[at] == '\t'; };
      if (!is_gap(i) && (i == 0 || is_gap(i - 1))) ++result;
    }
    return result;
  };
  return words(lines[1]) + 1 == words(lines[2]);
}

// Words that are numbers and end a path, as "photo 12", are of the path where other lines have
// fewer numbers.
ListEntry caffe_entry(const CaffeLine& line, size_t numbers, const Line& place) {
  const auto first = line.words.end() - static_cast<ptrdiff_t>(numbers);
  const auto path_bytes = static_cast<size_t>(first->data() - line.text.data());
  ListEntry entry{std::string(trimmed(line.text.substr(0, path_bytes))), {}, "", "", place.line};
  if (line.numbers > numbers) {
    const auto end = (first - 1)->data() - line.text.data();
    if (picture::is_image(trimmed(line.text.substr(0, static_cast<size_t>(end))))) {
      throw wrong(place, "has ", line.numbers, " numbers behind the path, other lines have ",
                  numbers,
                  ": a list has as many on each line (images with different numbers of labels are "
                  "CSV: path,label with a|c)");
    }
  }
  entry.labels.assign(first, line.words.end());
  return entry;
}

bool are_paths(const NumberedLines& lines) {
  return std::all_of(lines.begin(), lines.end(),
                     [](const auto& line) { return picture::is_image(line.second); });
}

}  // namespace

void read_caffe(const NumberedLines& all, bool may_lack_labels, ListFile& list) {
  if (may_lack_labels && are_paths(all)) {
    for (const auto& [number, line] : all) {
      list.entries.push_back({std::string(line), {}, "", "", number});
    }
    return;
  }
  std::vector<std::string_view> texts;
  for (size_t i = 0; i < std::min<size_t>(all.size(), 3); ++i) texts.push_back(all[i].second);
  const bool has_heading = has_celeba_heading(texts);
  std::vector<CaffeLine> lines;
  size_t numbers = std::string::npos;
  for (size_t i = has_heading ? 2 : 0; i < all.size(); ++i) {
    lines.push_back(caffe_line(all[i].second, {list.file, all[i].first}));
    numbers = std::min(numbers, lines.back().numbers);
  }
  for (const CaffeLine& line : lines) {
    list.entries.push_back(caffe_entry(line, numbers, {list.file, line.line}));
  }
  const auto quote = [&](char mark) {
    return !list.entries.empty() &&
           std::all_of(list.entries.begin(), list.entries.end(), [&](const ListEntry& entry) {
             return entry.path.size() > 2 && entry.path.front() == mark &&
                    entry.path.back() == mark;
           });
  };
  if (quote('"') || quote('\'')) {
    list.notes.push_back(
        sdk::text("'", list.file, "': the quotes around paths are no part of them"));
    for (ListEntry& entry : list.entries) entry.path = entry.path.substr(1, entry.path.size() - 2);
  }
  list.columns.assign(lines.empty() ? 1 : numbers, "");
  if (!has_heading) return;
  list.columns.clear();
  std::string_view headings = all[1].second;
  while (!headings.empty()) {
    const size_t end = std::min(headings.find_first_of(" \t"), headings.size());
    list.columns.push_back(as_utf8(std::string(headings.substr(0, end))));
    headings = trimmed(headings.substr(end));
  }
}

}  // namespace tandem::image_folder
