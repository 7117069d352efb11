#include "datasets/image_folder/list_file.h"

#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "datasets/picture/data_file.h"
#include "datasets/picture/names.h"
#include "datasets/picture/split_names.h"
#include "plugins/plain_text.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

using picture::as_utf8;
using picture::beginning_of;
using picture::extension_of;
using picture::lower_case;

constexpr int64_t max_class = 1'000'000;
constexpr size_t longest_line = 1 << 16;

struct Line {
  const std::string& file;
  int64_t line;
};

template <class... Parts>
sdk::Refusal wrong(const Line& place, const Parts&... parts) {
  return sdk::invalid(place.file, ":", place.line, ": ", parts...);
}

std::string_view trimmed(std::string_view text) {
  return without_blanks(text);
}

ListEntry caffe_entry(std::string_view line, const Line& place) {
  const size_t gap = line.find_last_of(" \t");
  if (gap == std::string_view::npos) {
    throw wrong(place, "'", beginning_of(line), "' must be a path, a space and the class's number");
  }
  const std::string_view label = line.substr(gap + 1);
  int64_t number = -1;
  const auto [stop, status] = std::from_chars(label.data(), label.data() + label.size(), number);
  if (status != std::errc{} || stop != label.data() + label.size() || number < 0) {
    throw wrong(place, "the class '", beginning_of(label),
                "' must be a number from 0 on (a list with class names is CSV: path,label)");
  }
  if (number > max_class) {
    throw wrong(place, "the class number ", number, " is absurd; at most ", max_class);
  }
  return {std::string(trimmed(line.substr(0, gap))), std::to_string(number), "", place.line};
}

// The fields of one CSV line (RFC 4180, but no field contains a line break).
std::vector<std::string> csv_fields(std::string_view line, const Line& place) {
  std::vector<std::string> fields;
  size_t at = 0;
  while (true) {
    std::string field;
    if (at < line.size() && line[at] == '"') {
      for (++at;; ++at) {
        if (at >= line.size()) throw wrong(place, "a quotation mark is not closed");
        if (line[at] != '"') {
          field += line[at];
        } else if (at + 1 < line.size() && line[at + 1] == '"') {
          field += line[at++];
        } else {
          break;
        }
      }
      const size_t end = std::min(line.find(',', ++at), line.size());
      if (!trimmed(line.substr(at, end - at)).empty()) {
        throw wrong(place, "text after a closing quotation mark");
      }
      at = end;
    } else {
      const size_t end = std::min(line.find(',', at), line.size());
      field = trimmed(line.substr(at, end - at));
      at = end;
    }
    fields.push_back(std::move(field));
    if (at >= line.size()) return fields;
    ++at;
  }
}

struct Columns {
  size_t path = 0, label = 1, split = std::string::npos;
  bool heading = false;
  size_t count = 2;
};

Columns columns_of(const std::vector<std::string>& first) {
  const auto find = [&](std::initializer_list<const char*> names) {
    for (size_t i = 0; i < first.size(); ++i) {
      for (const char* name : names) {
        if (lower_case(first[i]) == name) return i;
      }
    }
    return std::string::npos;
  };
  Columns columns;
  const size_t path = find({"path", "file", "filename", "file_name", "image", "image_path"});
  const size_t label = find({"label", "class", "class_name", "category"});
  columns.count = first.size();
  if (path != std::string::npos && label != std::string::npos) {
    return {path, label, find({"split", "set", "subset"}), true, first.size()};
  }
  if (first.size() > 2) columns.split = 2;
  return columns;
}

std::string split_of(const std::string& text, const Line& place) {
  const std::string split = picture::split_of_name(text);
  if (!split.empty()) return split;
  throw wrong(place, "the split '", beginning_of(text), "' is not one of train, val, test");
}

class CsvReader {
 public:
  // False: the line was the heading.
  bool read(std::string_view line, const Line& place, ListEntry& entry) {
    std::vector<std::string> fields = csv_fields(line, place);
    if (!begun_) {
      begun_ = true;
      columns_ = columns_of(fields);
      if (columns_.count < 2) {
        throw wrong(place, "'", beginning_of(line),
                    "' must be a path, a comma and the class's name");
      }
      if (columns_.count > 3 && !columns_.heading) {
        throw wrong(place, "has ", columns_.count,
                    " columns and no heading with 'path' and 'label'");
      }
      if (columns_.heading) return false;
    }
    if (fields.size() != columns_.count) {
      throw wrong(place, "has ", fields.size(), " fields instead of ", columns_.count,
                  " (put what contains a comma into quotation marks)");
    }
    entry.path = fields[columns_.path];
    entry.label = as_utf8(fields[columns_.label]);
    if (has_splits()) entry.split = split_of(fields[columns_.split], place);
    if (entry.label.empty()) throw wrong(place, "names no class");
    if (entry.label.size() > longest_class_name) {
      throw wrong(place, "names a class by ", entry.label.size(), " bytes; a name has at most ",
                  longest_class_name);
    }
    entry.line = place.line;
    return true;
  }
  [[nodiscard]] bool has_splits() const { return columns_.split != std::string::npos; }

 private:
  Columns columns_;
  bool begun_ = false;
};

bool is_csv(const std::string& file) {
  const std::string extension = extension_of(std::filesystem::path(file).filename().string());
  return extension == ".csv" || extension == ".tsv";
}

}  // namespace

ListFile parse_list(const std::string& text, const std::string& file) {
  ListFile list;
  list.numbered = !is_csv(file);
  CsvReader csv;
  // In CSV a path keeps its blanks, as commas divide the fields.
  const std::string plain = list.numbered ? with_plain_blanks(text) : text;
  std::string_view rest = plain;
  for (int64_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const Line place{file, number};
    const std::string_view line = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty()) continue;
    if (line.size() > longest_line) throw wrong(place, "is ", line.size(), " bytes long");
    ListEntry entry;
    if (list.numbered) {
      entry = caffe_entry(line, place);
    } else if (!csv.read(line, place, entry)) {
      continue;
    }
    if (entry.path.empty()) throw wrong(place, "names no file");
    list.entries.push_back(std::move(entry));
  }
  list.has_splits = !list.numbered && csv.has_splits();
  return list;
}

ListFile read_list(const std::string& file) {
  return parse_list(picture::text_of_file(file), file);
}

}  // namespace tandem::image_folder
