#include "datasets/image_folder/list_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <set>
#include <utility>

#include "datasets/image_folder/list_lines.h"
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

// "3,5", as numbers are written where ';' divides the fields.
bool has_decimal_comma(std::string_view text) {
  const size_t comma = text.find(',');
  double ignored = 0;
  return comma != std::string_view::npos && comma + 1 < text.size() &&
         read_number(text.substr(0, comma), &ignored) &&
         text.find_first_not_of("0123456789", comma + 1) == std::string_view::npos;
}

// Columns of numbers with decimal commas get points.
void read_decimal_commas(ListFile& list) {
  double ignored = 0;
  for (size_t column = 0; column < list.columns.size(); ++column) {
    bool any = false;
    const bool are_numbers =
        std::all_of(list.entries.begin(), list.entries.end(), [&](const ListEntry& entry) {
          const std::string& text = entry.labels[column];
          any = any || has_decimal_comma(text);
          return text.empty() || has_decimal_comma(text) || read_number(text, &ignored);
        });
    if (!any || !are_numbers) continue;
    for (ListEntry& entry : list.entries) {
      std::replace(entry.labels[column].begin(), entry.labels[column].end(), ',', '.');
    }
    list.notes.push_back(
        sdk::text("'", list.file, "': the decimal commas ",
                  list.columns[column].empty() ? "" : sdk::text("of '", list.columns[column], "' "),
                  "are read as points (3,5 is 3.5)"));
  }
}

// The letters and digits of a heading, in lower case: "Image Index" is "imageindex".
std::string plain(const std::string& heading) {
  std::string result;
  for (const char c : lower_case(heading)) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c & 0x80) != 0) result += c;
  }
  return result;
}

size_t find_heading(const std::vector<std::string>& headings,
                    std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    for (size_t i = 0; i < headings.size(); ++i) {
      if (plain(headings[i]) == name) return i;
    }
  }
  return std::string::npos;
}

constexpr size_t none = std::string::npos;

struct Columns {
  size_t path = 0, split = none, fold = none;
  // Of a column of 1 and 0, as fastai's is_valid: the splits of these. "": it holds names.
  std::string split_of_one, split_of_zero;
  bool heading = false;
  size_t count = 2;
  std::vector<size_t> labels;
};

size_t image_column(const std::vector<std::string>& fields) {
  const auto found = std::find_if(fields.begin(), fields.end(), [](const std::string& field) {
    return picture::is_image(field);
  });
  return found == fields.end() ? none : static_cast<size_t>(found - fields.begin());
}

size_t label_heading(const std::vector<std::string>& headings) {
  return find_heading(headings, {"label", "labels", "class", "classname", "classes", "category",
                                 "categories", "tags", "tag", "findinglabels", "target", "classid",
                                 "labelid", "classlabel", "labelname"});
}

// How many rows have the first one's text in a column.
size_t like_first(const Rows& rows, size_t column) {
  return static_cast<size_t>(std::count_if(rows.begin(), rows.end(), [&](const auto& row) {
    return column < row.second.size() && row.second[column] == rows[0].second[column];
  }));
}

bool are_splits(const Rows& rows, size_t first, size_t column) {
  return rows.size() > first &&
         std::all_of(rows.begin() + static_cast<ptrdiff_t>(first), rows.end(),
                     [&](const auto& row) {
                       return column >= row.second.size() ||
                              !picture::split_of_name(row.second[column]).empty();
                     });
}

// The column of splits below a heading: by its name, or because it holds names of splits alone.
void find_splits(const Rows& rows, Columns& columns) {
  const std::vector<std::string>& headings = rows[0].second;
  columns.split = find_heading(headings, {"split", "set", "subset", "usage", "partition", "phase"});
  struct Flag {
    const char *name, *one, *zero;
  };
  for (const Flag& flag : {Flag{"isval", "val", "train"}, Flag{"istrain", "train", "val"},
                           Flag{"istest", "test", "train"}}) {
    if (columns.split != none) return;
    for (size_t i = 0; i < headings.size() && columns.split == none; ++i) {
      if (plain(headings[i]).starts_with(flag.name)) columns.split = i;
    }
    if (columns.split == none) continue;
    columns.split_of_one = flag.one;
    columns.split_of_zero = flag.zero;
  }
  for (size_t i = 0; i < columns.count && columns.split == none; ++i) {
    if (i == columns.path || i == label_heading(headings) || !are_splits(rows, 1, i)) continue;
    columns.split = i;
  }
}

// A heading without a known name, above names without extensions, looks as an image does.
void refuse_doubt(const Rows& rows, const std::string& file) {
  const size_t last = rows[0].second.size() - 1;
  if (rows[0].second[0].find_first_of("/\\.0123456789") != std::string::npos) return;
  std::set<std::string> labels;
  for (const auto& [line, fields] : rows) {
    if (image_column(fields) != none) return;
    if (last < fields.size()) labels.insert(fields[last]);
  }
  const bool some_repeat = labels.size() < rows.size();
  if (last == 0 || !some_repeat || like_first(rows, last) > 1) return;
  throw wrong({file, rows[0].first}, "'", beginning_of(rows[0].second[0]), ",",
              beginning_of(rows[0].second[last]),
              "' is a heading or an image: if it is a heading, call the columns path and label; "
              "else write a line path,label before it");
}

// The label columns that are named, those called so, or all that are left.
void choose_labels(const std::vector<std::string>& headings, const std::string& named,
                   const std::string& file, Columns& columns, ListFile& list) {
  const auto is_taken = [&](size_t i) {
    return i == columns.path || i == columns.split || i == columns.fold;
  };
  const size_t label = !columns.heading ? none : label_heading(headings);
  if (!named.empty()) {
    for (size_t at = 0; at <= named.size();) {
      const size_t end = std::min(named.find(',', at), named.size());
      const std::string one(trimmed(std::string_view(named).substr(at, end - at)));
      const auto found = std::find(headings.begin(), headings.end(), one);
      if (!columns.heading || found == headings.end()) {
        throw sdk::invalid("labels=", named, ": '", file, "' has no column '", one, "'",
                           picture::did_you_mean(one, headings));
      }
      columns.labels.push_back(static_cast<size_t>(found - headings.begin()));
      at = end + 1;
    }
  } else if (label != none) {
    columns.labels = {label};
  } else {
    size_t id = none;
    for (size_t i = 0; i < columns.count; ++i) {
      const std::string name = columns.heading ? plain(headings[i]) : "label";
      const bool is_index = name.empty() || name == "unnamed0" || name == "index" || name == "id";
      if (!is_taken(i) && !is_index) columns.labels.push_back(i);
      if (!is_taken(i) && name == "id") id = i;
    }
    // As of the whales of a competition: Image,Id.
    if (columns.labels.empty() && id != none) columns.labels = {id};
  }
  std::vector<std::string> unread;
  for (size_t i = 0; i < columns.count && columns.heading; ++i) {
    const bool is_read =
        std::find(columns.labels.begin(), columns.labels.end(), i) != columns.labels.end();
    const bool is_numbering = plain(headings[i]).empty() || plain(headings[i]) == "unnamed0";
    if (!is_taken(i) && !is_read && !is_numbering) unread.push_back(headings[i]);
  }
  for (const size_t i : columns.labels) {
    list.columns.push_back(columns.heading ? as_utf8(headings[i]) : "");
  }
  if (!unread.empty()) {
    list.notes.push_back(
        sdk::text("columns of '", file, "' that are not read: ", picture::list_of(unread)));
  }
}

// `rows`: all lines.
Columns columns_of(const Rows& rows, const std::string& file) {
  const std::vector<std::string>& first = rows[0].second;
  Columns columns;
  columns.count = first.size();
  const bool names_image = image_column(first) != none;
  const size_t path =
      find_heading(first, {"path", "file", "filename", "image", "imagepath", "filepath",
                           "imagename", "imageid", "imageindex", "imagefile", "img", "imgpath",
                           "imgname", "fname", "photo", "photoid", "picture", "idcode", "id"});
  // A word above numbers is a heading.
  const auto stands_above_numbers = [&](size_t column) {
    double ignored = 0;
    return rows.size() > 2 && !read_number(first[column], &ignored) &&
           std::all_of(rows.begin() + 1, rows.end(), [&](const auto& row) {
             return column < row.second.size() && read_number(row.second[column], &ignored);
           });
  };
  bool is_above_numbers = false;
  for (size_t i = 0; i < first.size(); ++i) is_above_numbers |= stands_above_numbers(i);
  const size_t below = rows.size() > 1 ? image_column(rows[1].second) : none;
  const bool is_image_below = below < first.size() && rows[1].second.size() == first.size();
  // The name of a column of labels, which is no label below.
  const size_t label = label_heading(first);
  const bool names_label = label != none && like_first(rows, label) == 1 && first.size() > 1;
  if (!names_image && (path != none || names_label || is_image_below || is_above_numbers)) {
    columns.heading = true;
    columns.path = path == none ? label == 0 ? 1 : 0 : path;
    if (is_image_below && !picture::is_image(rows[1].second[columns.path])) columns.path = below;
    find_splits(rows, columns);
  } else {
    if (!names_image) refuse_doubt(rows, file);
    columns.path = names_image ? image_column(first) : 0;
    for (size_t i = 0; columns.count > 2 && i < columns.count; ++i) {
      if (i != columns.path && are_splits(rows, 0, i)) columns.split = i;
    }
  }
  if (columns.count < 2) {
    throw wrong({file, rows[0].first}, "'", beginning_of(first[0]),
                "' must be a path, a comma and the class's name");
  }
  return columns;
}

// The column of folds: the one that is named, or one that is called so.
size_t find_folds(const std::vector<std::string>& headings, const Columns& columns,
                  const std::string& named, const std::string& file) {
  if (named == "none") return none;
  if (named.empty()) {
    return !columns.heading ? none
                            : find_heading(headings, {"fold", "folds", "kfold", "foldid", "foldno",
                                                      "foldnum", "foldnumber", "cvfold", "kfolds",
                                                      "stratifiedfold", "groupfold"});
  }
  const auto found = std::find(headings.begin(), headings.end(), named);
  if (columns.heading && found != headings.end()) {
    return static_cast<size_t>(found - headings.begin());
  }
  throw sdk::invalid("fold_column=", named, ": '", file, "' has no column '", named, "'",
                     picture::did_you_mean(named, headings));
}

std::string split_of(const std::string& text, const Columns& columns, const Line& place) {
  std::string split = picture::split_of_name(text);
  if (!columns.split_of_one.empty()) {
    const std::string small = lower_case(text);
    const bool one = small == "true" || small == "1" || small == "yes";
    const bool zero = small == "false" || small == "0" || small == "no";
    split = one ? columns.split_of_one : zero ? columns.split_of_zero : "";
    if (split.empty()) throw wrong(place, "'", beginning_of(text), "' is not True or False");
  }
  if (!split.empty()) return split;
  throw wrong(place, "the split '", beginning_of(text), "' is not one of train, val, test");
}

void read_csv(const Rows& rows, const ListRequest& request, ListFile& list) {
  if (rows.empty()) return;
  Columns columns = columns_of(rows, list.file);
  columns.fold = find_folds(rows[0].second, columns, request.fold_column, list.file);
  if (columns.fold == columns.split) columns.fold = none;  // of the names of splits
  choose_labels(rows[0].second, request.labels, list.file, columns, list);
  if (columns.labels.empty()) {
    throw wrong({list.file, rows[0].first}, "has no column of labels");
  }
  list.has_splits = columns.split != none;
  if (columns.fold != none) list.fold_column = as_utf8(rows[0].second[columns.fold]);
  if (columns.heading) {
    const auto heading = [&](size_t i) { return as_utf8(rows[0].second[i]); };
    const std::string split =
        list.has_splits ? sdk::text(", the split from '", heading(columns.split), "'") : "";
    const bool is_plain = plain(rows[0].second[columns.path]) == "path";
    if (!is_plain || (list.has_splits && plain(rows[0].second[columns.split]) != "split")) {
      list.notes.push_back(sdk::text("'", list.file, "': the path is read from the column '",
                                     heading(columns.path), "'", split));
    }
  }
  for (size_t i = columns.heading ? 1 : 0; i < rows.size(); ++i) {
    const auto& [line, fields] = rows[i];
    const Line place{list.file, line};
    if (fields.size() != columns.count) {
      throw wrong(place, "has ", fields.size(), " fields instead of ", columns.count,
                  " (put what contains a comma into quotation marks)");
    }
    ListEntry entry{fields[columns.path], {}, "", "", line};
    if (columns.fold != none) entry.fold = fields[columns.fold];
    if (entry.path.empty()) throw wrong(place, "names no file");
    if (list.has_splits) entry.split = split_of(fields[columns.split], columns, place);
    for (const size_t column : columns.labels) entry.labels.push_back(as_utf8(fields[column]));
    list.entries.push_back(std::move(entry));
  }
}

void read_caffe(const std::vector<std::pair<int64_t, std::string_view>>& all, ListFile& list) {
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

bool is_csv(const std::string& file) {
  const std::string extension = extension_of(std::filesystem::path(file).filename().string());
  return extension == ".csv" || extension == ".tsv";
}

}  // namespace

bool read_number(std::string_view text, double* value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return status == std::errc{} && stop == text.data() + text.size() && std::isfinite(*value);
}

ListFile parse_list(const std::string& text, const std::string& file, const ListRequest& request) {
  ListFile list;
  list.file = file;
  list.numbered = !is_csv(file);
  // In CSV a path keeps its blanks, as commas divide the fields.
  const std::string plain_text = list.numbered ? with_plain_blanks(text) : text;
  const ListLines lines = lines_of_list(plain_text, file, !list.numbered);
  list.notes = lines.notes;
  if (list.numbered) {
    for (const auto& [name, value] :
         {std::pair("labels", request.labels), std::pair("fold_column", request.fold_column)}) {
      if (value.empty() || value == "none") continue;
      throw sdk::invalid(name, "=", value, ": only CSV has named columns");
    }
    read_caffe(lines.lines, list);
    return list;
  }
  const CsvRows rows = csv_rows(lines, file);
  list.notes.insert(list.notes.end(), rows.notes.begin(), rows.notes.end());
  read_csv(rows.rows, request, list);
  if (rows.separator != ',') read_decimal_commas(list);
  return list;
}

ListFile read_list(const std::string& file, const ListRequest& request) {
  return parse_list(picture::text_of_file(file), file, request);
}

}  // namespace tandem::image_folder
