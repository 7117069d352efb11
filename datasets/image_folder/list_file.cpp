#include "datasets/image_folder/list_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <set>
#include <utility>

#include "datasets/image_folder/caffe_list.h"
#include "datasets/image_folder/csv_headings.h"
#include "datasets/image_folder/decimal_commas.h"
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
  size_t confidence = none;  // of 0 and 1: whether the image has the label of the line
  // Of a column of 1 and 0, as fastai's is_valid: the splits of these. "": it holds names.
  std::string split_of_one, split_of_zero;
  bool has_numbered_splits = false;  // 0, 1 and 2, as of CelebA and WILDS
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

// As Google's tables name the split of images that have none.
bool is_unassigned(const std::string& text) {
  return lower_case(text) == "unassigned";
}

bool are_splits(const Rows& rows, size_t first, size_t column) {
  return rows.size() > first &&
         std::all_of(rows.begin() + static_cast<ptrdiff_t>(first), rows.end(),
                     [&](const auto& row) {
                       return column >= row.second.size() ||
                              !picture::split_of_name(row.second[column]).empty() ||
                              is_unassigned(row.second[column]);
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

// The column that a text names by its place, from 1 on; `count`: none.
ptrdiff_t place_of(const std::string& text, size_t count) {
  size_t place = 0;
  const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), place);
  const bool is_place = status == std::errc{} && stop == text.data() + text.size() && place > 0;
  return static_cast<ptrdiff_t>(is_place && place <= count ? place - 1 : count);
}

// The label columns that are named, those called so, or all that are left.
void choose_labels(const std::vector<std::string>& headings, const ListRequest& request,
                   Columns& columns, ListFile& list) {
  const std::string &named = request.labels, &file = list.file;
  const auto is_taken = [&](size_t i) {
    return i == columns.path || i == columns.split || i == columns.fold || i == columns.confidence;
  };
  const size_t label = !columns.heading ? none : label_heading(headings);
  if (!named.empty()) {
    for (size_t at = 0; at <= named.size();) {
      const size_t end = std::min(named.find(',', at), named.size());
      const std::string one(trimmed(std::string_view(named).substr(at, end - at)));
      auto found = std::find(headings.begin(), headings.end(), one);
      if (!columns.heading) found = headings.begin() + place_of(one, headings.size());
      if (found == headings.end()) {
        const bool has_others =
            columns.count > 1 + size_t(columns.split != none) + size_t(columns.fold != none);
        if (request.may_lack_labels && !has_others) return columns.labels.clear();
        throw sdk::invalid("labels=", named, ": '", file, "' has no column '", one, "'",
                           columns.heading ? picture::did_you_mean(one, headings)
                                           : sdk::text("; it has no heading: the columns are 1 to ",
                                                       headings.size()));
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
    list.places.push_back(i + 1);
  }
  if (!unread.empty()) {
    list.notes.push_back(
        sdk::text("columns of '", file, "' that are not read: ", picture::list_of(unread)));
  }
}

size_t path_heading(const std::vector<std::string>& headings) {
  return find_heading(headings,
                      {"path", "file", "filename", "image", "imagepath", "filepath", "imagename",
                       "imageid", "imageindex", "imagefile", "img", "imgpath", "imgname", "fname",
                       "photo", "photoid", "picture", "idcode", "id"});
}

// The column of the image in the second row; `none` if it has another number of fields.
size_t image_below(const Rows& rows) {
  if (rows.size() < 2 || rows[1].second.size() != rows[0].second.size()) return none;
  return image_column(rows[1].second);
}

bool has_heading(const Rows& rows) {
  const std::vector<std::string>& first = rows[0].second;
  if (image_column(first) != none) return false;
  if (path_heading(first) != none || image_below(rows) != none) return true;
  // The name of a column of labels, which is no label below.
  const size_t label = label_heading(first);
  if (label != none && like_first(rows, label) == 1 && first.size() > 1) return true;
  // A word above numbers is a heading.
  for (size_t column = 0; column < first.size() && rows.size() > 2; ++column) {
    double ignored = 0;
    if (read_number(first[column], &ignored)) continue;
    if (std::all_of(rows.begin() + 1, rows.end(), [&](const auto& row) {
          return column < row.second.size() && read_number(row.second[column], &ignored);
        })) {
      return true;
    }
  }
  return false;
}

// `rows`: all lines.
Columns columns_of(const Rows& rows, const std::string& file) {
  const std::vector<std::string>& first = rows[0].second;
  Columns columns;
  columns.count = first.size();
  const bool names_image = image_column(first) != none;
  const size_t path = path_heading(first), label = label_heading(first), below = image_below(rows);
  if (has_heading(rows)) {
    columns.heading = true;
    columns.path = path == none ? label == 0 ? 1 : 0 : path;
    if (below != none && !picture::is_image(rows[1].second[columns.path])) columns.path = below;
    find_splits(rows, columns);
  } else {
    if (!names_image) refuse_doubt(rows, file);
    columns.path = names_image ? image_column(first) : 0;
    for (size_t i = 0; columns.count > 2 && i < columns.count; ++i) {
      if (i != columns.path && are_splits(rows, 0, i)) columns.split = i;
    }
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

bool lacks_split(const std::string& text) {
  return text.empty() || is_unassigned(text);
}

std::string split_of(const std::string& text, const Columns& columns, const Line& place) {
  if (columns.has_numbered_splits) return text == "0" ? "train" : text == "1" ? "val" : "test";
  if (lacks_split(text)) return "train";
  std::string split = picture::split_of_name(text);
  if (!columns.split_of_one.empty()) {
    const std::string small = lower_case(text);
    const bool one = small == "true" || small == "1" || small == "yes";
    const bool zero = small == "false" || small == "0" || small == "no";
    split = one ? columns.split_of_one : zero ? columns.split_of_zero : "";
    if (split.empty()) throw wrong(place, "'", beginning_of(text), "' is not True or False");
  }
  if (!split.empty()) return split;
  throw wrong(
      place, "the split '", beginning_of(text),
      "' is not one of train, val, test (or of 0, 1, 2, where all three are there); if the column "
      "holds no splits, give it another heading");
}

bool are_unassigned(const Rows& rows, const Columns& columns) {
  return std::all_of(rows.begin() + (columns.heading ? 1 : 0), rows.end(), [&](const auto& row) {
    return columns.split < row.second.size() && lacks_split(row.second[columns.split]);
  });
}

// What stands in a column of splits that names none.
void read_odd_splits(const Rows& rows, Columns& columns, ListFile& list) {
  list.has_splits = columns.split != none;
  if (!list.has_splits) return;
  if (are_unassigned(rows, columns)) {
    list.has_splits = false;
    const bool any_word = !rows.back().second[columns.split].empty();
    list.notes.push_back(sdk::text("'", list.file, "': no line has a split",
                                   any_word ? " (UNASSIGNED)" : "", ": validation is drawn"));
    return;
  }
  if (!columns.split_of_one.empty()) return;
  std::set<std::string> texts;
  size_t without = 0;
  for (size_t i = columns.heading ? 1 : 0; i < rows.size(); ++i) {
    if (columns.split >= rows[i].second.size()) continue;
    texts.insert(rows[i].second[columns.split]);
    without += lacks_split(rows[i].second[columns.split]) ? 1 : 0;
  }
  columns.has_numbered_splits = texts == std::set<std::string>{"0", "1", "2"};
  if (columns.has_numbered_splits) {
    list.notes.push_back(
        sdk::text("'", list.file, "': the splits 0, 1 and 2 are train, val and test"));
  }
  if (without > 0) {
    list.notes.push_back(sdk::text("'", list.file, "': ", without,
                                   without == 1 ? " line has no split and is trained on"
                                                : " lines have no split and are trained on"));
  }
}

// A title, a date or the like above the heading, which is the first row with its words.
void leave_out_titles(Rows& rows, ListFile& list) {
  constexpr size_t most = 5;
  for (size_t i = 0; i <= most && i + 1 < rows.size(); ++i) {
    const std::vector<std::string>& fields = rows[i].second;
    if (image_column(fields) != none) return;
    const bool has_image =
        rows[i + 1].second.size() == fields.size() && image_column(rows[i + 1].second) != none;
    if (path_heading(fields) == none || (label_heading(fields) == none && !has_image)) continue;
    if (i == 0) return;
    list.notes.push_back(sdk::text("'", list.file, "': ", i, i == 1 ? " line" : " lines",
                                   " above the heading ", i == 1 ? "is" : "are", " left out, as '",
                                   beginning_of(rows[0].second[0]), "'"));
    rows.erase(rows.begin(), rows.begin() + static_cast<ptrdiff_t>(i));
    return;
  }
}

// The last rows where they sum up the others: "Total,60".
void leave_out_totals(Rows& rows, size_t path, ListFile& list) {
  static constexpr std::string_view words[] = {"total",  "totals",     "sum",   "subtotal",
                                               "gesamt", "grandtotal", "count", "summe"};
  while (rows.size() > 1 && path < rows.back().second.size()) {
    const std::string word = plain(rows.back().second[path]);
    if (std::find(std::begin(words), std::end(words), word) == std::end(words)) return;
    list.notes.push_back(sdk::text("'", list.file, "': line ", rows.back().first, " ('",
                                   beginning_of(rows.back().second[path]),
                                   "') sums up the others and is left out"));
    rows.pop_back();
  }
}

// A column "Confidence" of 0 and 1 beside one of labels, as of Open Images.
size_t confidence_column(const Rows& rows) {
  const size_t column = find_heading(rows[0].second, {"confidence"});
  if (column == none || label_heading(rows[0].second) == none) return none;
  const bool is_binary = std::all_of(rows.begin() + 1, rows.end(), [&](const auto& row) {
    double value = -1;
    return column < row.second.size() && read_number(row.second[column], &value) &&
           (value == 0 || value == 1);
  });
  return is_binary ? column : none;
}

// Files that were joined have their heading each.
void leave_out_headings(Rows& rows, ListFile& list) {
  const size_t count = count_repeats_of_first(rows);
  if (count == 0) return;
  Rows once = rows;
  remove_repeats_of_first(once);
  if (!has_heading(once)) return;
  rows = std::move(once);
  list.notes.push_back(sdk::text("'", list.file, "': ", count,
                                 count == 1 ? " line repeats the heading and is left out"
                                            : " lines repeat the heading and are left out"));
}

void read_csv(Rows rows, const ListRequest& request, ListFile& list) {
  if (rows.empty()) return;
  leave_out_titles(rows, list);
  leave_out_headings(rows, list);
  refuse_pixels(rows, list.file);
  Columns columns = columns_of(rows, list.file);
  leave_out_totals(rows, columns.path, list);
  if (columns.heading) refuse_other_order(rows, list.file);
  if (columns.count < 2 && !request.may_lack_labels) {
    throw wrong({list.file, rows[0].first}, "'", beginning_of(rows[0].second[0]),
                "' must be a path, a comma and the class's name");
  }
  columns.fold = find_folds(rows[0].second, columns, request.fold_column, list.file);
  if (columns.fold == columns.split) columns.fold = none;  // of the names of splits
  if (columns.heading && request.labels.empty()) columns.confidence = confidence_column(rows);
  choose_labels(rows[0].second, request, columns, list);
  if (columns.labels.empty() && !request.may_lack_labels) {
    throw wrong({list.file, rows[0].first}, "has no column of labels");
  }
  read_odd_splits(rows, columns, list);
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
                  columns.heading
                      ? " (put what contains a comma into quotation marks)"
                      : " (put what contains a comma into quotation marks, and several labels of "
                        "an image into one field, as a|b)");
    }
    ListEntry entry;
    entry.path = fields[columns.path];
    entry.line = line;
    if (columns.fold != none) entry.fold = fields[columns.fold];
    if (entry.path.empty()) throw wrong(place, "names no file");
    if (list.has_splits) entry.split = split_of(fields[columns.split], columns, place);
    double confidence = 1;
    if (columns.confidence != none) (void)read_number(fields[columns.confidence], &confidence);
    entry.is_denied = confidence == 0;
    for (const size_t column : columns.labels) entry.labels.push_back(as_utf8(fields[column]));
    list.entries.push_back(std::move(entry));
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

namespace {

// Names of another code page become letters that nobody wrote.
void note_latin(const std::string& text, ListFile& list) {
  if (is_utf8(text)) return;
  const auto is_odd = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
  const auto at =
      static_cast<size_t>(std::find_if(text.begin(), text.end(), is_odd) - text.begin());
  const size_t begin = at == 0 ? 0 : text.find_last_of(",;\t\n", at) + 1;
  const size_t end = std::min(text.find_first_of(",;\t\n", at), text.size());
  list.notes.push_back(sdk::text("'", list.file, "': is not UTF-8 and read as Latin-1, as '",
                                 beginning_of(std::string_view(text).substr(begin, end - begin)),
                                 "': if the names are wrong, save the file as UTF-8"));
}

}  // namespace

ListFile parse_list(const std::string& text, const std::string& file, const ListRequest& request) {
  ListFile list;
  list.file = file;
  list.numbered = !is_csv(file);
  // In CSV a path keeps its blanks, as commas divide the fields.
  const std::string plain_text = list.numbered ? with_plain_blanks(text) : text;
  const ListLines lines = lines_of_list(plain_text, file, !list.numbered);
  list.notes = lines.notes;
  note_latin(text, list);
  if (list.numbered) {
    for (const auto& [name, value] :
         {std::pair("labels", request.labels), std::pair("fold_column", request.fold_column)}) {
      if (value.empty() || value == "none") continue;
      throw sdk::invalid(name, "=", value, ": only CSV has named columns");
    }
    read_caffe(lines.lines, request.may_lack_labels, list);
    return list;
  }
  CsvRows rows = csv_rows(lines, file);
  list.notes.insert(list.notes.end(), rows.notes.begin(), rows.notes.end());
  read_csv(std::move(rows.rows), request, list);
  if (rows.separator != ',') read_decimal_commas(list);
  return list;
}

ListFile read_list(const std::string& file, const ListRequest& request) {
  return parse_list(picture::text_of_file(file), file, request);
}

}  // namespace tandem::image_folder
