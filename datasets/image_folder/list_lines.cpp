#include "datasets/image_folder/list_lines.h"

#include <algorithm>
#include <array>
#include <deque>

#include "datasets/picture/names.h"
#include "plugins/cells.h"

namespace tandem::image_folder {
namespace {

using picture::lower_case;

constexpr size_t longest_line = 1 << 16;

// How the lines of a CSV file are divided into fields.
struct CsvForm {
  char separator = ',';
  bool single_quotes = false;  // are quotation marks, too
};

// The fields of one CSV line.
std::vector<std::string> csv_fields(std::string_view line, const CsvForm& form, const Line& place) {
  const char separator = form.separator;
  std::vector<std::string> fields;
  size_t at = 0;
  while (true) {
    std::string field;
    const size_t begin = line.find_first_not_of(' ', at);
    const char mark = begin < line.size() ? line[begin] : '\0';
    if (mark == '"' || (form.single_quotes && mark == '\'')) {
      for (at = begin + 1;; ++at) {
        if (at >= line.size()) throw wrong(place, "a quotation mark is not closed");
        if (line[at] != mark) {
          field += line[at];
        } else if (at + 1 < line.size() && line[at + 1] == mark) {
          field += line[at++];
        } else {
          break;
        }
      }
      const size_t end = std::min(line.find(separator, ++at), line.size());
      if (!trimmed(line.substr(at, end - at)).empty()) {
        throw wrong(place, "text after a closing quotation mark");
      }
      at = end;
    } else {
      const size_t end = std::min(line.find(separator, at), line.size());
      field = trimmed(line.substr(at, end - at));
      at = end;
    }
    fields.push_back(name_of_cell(field));
    if (at >= line.size()) return fields;
    ++at;
  }
}

// Between the fields: what divides one of the first lines so that a field is an image, or else the
// first of these marks that the first line has. In "a.jpg;3,5" the comma is of a number.
char separator_of(const std::vector<std::pair<int64_t, std::string_view>>& lines) {
  constexpr std::array marks{',', ';', '\t'};
  const auto has_image = [](std::string_view line, char mark) {
    for (size_t at = 0; at <= line.size();) {
      const size_t end = std::min(line.find(mark, at), line.size());
      std::string_view field = trimmed(line.substr(at, end - at));
      if (field.ends_with('"') || field.ends_with('\'')) field.remove_suffix(1);
      if (field.size() < line.size() && picture::is_image(field)) return true;
      at = end + 1;
    }
    return false;
  };
  constexpr size_t looked_at = 7;
  for (const char one : marks) {
    for (size_t i = 0; i < std::min(looked_at, lines.size()); ++i) {
      if (has_image(lines[i].second, one)) return one;
    }
  }
  const std::string_view first = lines[0].second;
  const auto found = std::find_if(marks.begin(), marks.end(), [&](char one) {
    return first.find(one) != std::string_view::npos;
  });
  return found == marks.end() ? ',' : *found;
}

// Whether a field of the line is between single quotes.
bool has_single_quotes(std::string_view line, char separator) {
  for (size_t at = 0; at <= line.size();) {
    const size_t begin = line.find_first_not_of(' ', at);
    const bool is_quoted = begin < line.size() && line[begin] == '\'';
    const size_t close = is_quoted ? line.find('\'', begin + 1) : std::string_view::npos;
    if (close != std::string_view::npos) {
      const size_t after = line.find_first_not_of(' ', close + 1);
      if (after == std::string_view::npos || line[after] == separator) return true;
    }
    const size_t end = line.find(separator, at);
    if (end == std::string_view::npos) return false;
    at = end + 1;
  }
  return false;
}

using Lines = std::vector<std::pair<int64_t, std::string_view>>;

// "sep=;", which Excel reads and no other program writes on purpose.
char separator_line(std::string_view line) {
  return line.size() == 5 && lower_case(line.substr(0, 4)) == "sep=" ? line[4] : '\0';
}

// A line that begins with '#', unless that begins the name of a picture.
bool is_comment(std::string_view line) {
  if (!line.starts_with('#')) return false;
  if (line.size() == 1 || line[1] == ' ' || line[1] == '\t') return true;
  const std::string_view word = line.substr(0, line.find_first_of(" \t,;"));
  return !picture::is_image(word);
}

// Whether a quotation mark is open where the line ends, whose field goes on in the next one.
bool is_open(std::string_view line, char separator) {
  for (size_t at = 0; at < line.size();) {
    const size_t begin = line.find_first_not_of(' ', at);
    if (begin < line.size() && line[begin] == '"') {
      for (at = begin + 1;; ++at) {
        at = line.find('"', at);
        if (at == std::string_view::npos) return true;
        if (at + 1 >= line.size() || line[at + 1] != '"') break;
        ++at;
      }
    }
    at = line.find(separator, at);
    if (at == std::string_view::npos) return false;
    ++at;
  }
  return false;
}

// Joins lines within quotes, with a blank in place of the break. `room` keeps the texts.
Lines joined(const Lines& lines, char separator, std::deque<std::string>& room) {
  Lines result;
  for (size_t i = 0; i < lines.size(); ++i) {
    result.push_back(lines[i]);
    if (!is_open(lines[i].second, separator)) continue;
    std::string text(lines[i].second);
    size_t last = i;
    while (last + 1 < lines.size() && text.size() < longest_line && is_open(text, separator)) {
      text.append(" ").append(lines[++last].second);
    }
    if (is_open(text, separator)) continue;  // refused as it is
    room.push_back(std::move(text));
    result.back().second = room.back();
    i = last;
  }
  return result;
}

}  // namespace

ListLines lines_of_list(std::string_view text, const std::string& file, bool is_csv) {
  ListLines result;
  int64_t comments = 0;
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    // Of a file that is joined with others.
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
    line = trimmed(line);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (is_comment(line)) {
      ++comments;
    } else if (is_csv && result.lines.empty() && separator_line(line) != '\0') {
      result.separator = separator_line(line);
    } else if (line.size() > longest_line) {
      throw wrong({file, number}, "is ", line.size(), " bytes long");
    } else {
      result.lines.emplace_back(number, line);
    }
  }
  if (comments > 0) {
    result.notes.push_back(
        sdk::text("'", file, "': ", comments,
                  comments == 1 ? " line begins with '#' and is" : " lines begin with '#' and are",
                  " left out"));
  }
  return result;
}

CsvRows csv_rows(const ListLines& given, const std::string& file) {
  CsvRows result;
  if (given.lines.empty()) return result;
  result.separator = given.separator != '\0' ? given.separator : separator_of(given.lines);
  std::deque<std::string> room;
  const Lines lines = joined(given.lines, result.separator, room);
  // The first line may be a heading without them.
  const bool are_single = std::all_of(
      lines.begin() + (lines.size() > 1 ? 1 : 0), lines.end(),
      [&](const auto& line) { return has_single_quotes(line.second, result.separator); });
  if (are_single) {
    result.notes.push_back(
        sdk::text("'", file, "': the single quotes around fields are no part of them"));
  }
  for (const auto& [number, line] : lines) {
    std::vector<std::string> fields =
        csv_fields(line, {result.separator, are_single}, {file, number});
    // Rows that a table has emptied are no more than empty lines.
    const bool is_empty = std::all_of(fields.begin(), fields.end(),
                                      [](const std::string& field) { return field.empty(); });
    if (!is_empty) result.rows.emplace_back(number, std::move(fields));
  }
  return result;
}

}  // namespace tandem::image_folder
