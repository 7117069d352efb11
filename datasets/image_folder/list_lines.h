// The lines of a list of pictures and the fields of CSV, before it is known what they mean.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/plain_text.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {

// Of a file, for messages.
struct Line {
  const std::string& file;
  int64_t line;
};
template <class... Parts>
sdk::Refusal wrong(const Line& place, const Parts&... parts) {
  return sdk::invalid(place.file, ":", place.line, ": ", parts...);
}

inline std::string_view trimmed(std::string_view text) {
  return without_blanks(text);
}

struct ListLines {
  // By number, without blanks at their ends; those that are empty and comments are left out.
  std::vector<std::pair<int64_t, std::string_view>> lines;
  char separator = '\0';           // that the file itself names ("sep=;")
  std::vector<std::string> notes;  // what was left out
};
// Of a text that outlives them. Refusal for a line that is too long.
[[nodiscard]] ListLines lines_of_list(std::string_view text, const std::string& file, bool is_csv);

using Rows = std::vector<std::pair<int64_t, std::vector<std::string>>>;  // line and fields

struct CsvRows {
  Rows rows;
  char separator = ',';
  std::vector<std::string> notes;
};
// By RFC 4180, with ',', ';' or tabs between the fields; in single quotes where all lines have
// some. A line break within quotes becomes a blank.
[[nodiscard]] CsvRows csv_rows(const ListLines& lines, const std::string& file);

}  // namespace tandem::image_folder
