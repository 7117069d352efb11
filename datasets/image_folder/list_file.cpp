#include "datasets/image_folder/list_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <utility>

#include "datasets/image_folder/caffe_list.h"
#include "datasets/image_folder/csv_columns.h"
#include "datasets/image_folder/csv_headings.h"
#include "datasets/image_folder/csv_splits.h"
#include "datasets/image_folder/decimal_commas.h"
#include "datasets/image_folder/list_lines.h"
#include "datasets/picture/data_file.h"
#include "datasets/picture/names.h"
#include "plugins/plain_text.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

using picture::as_utf8;
using picture::beginning_of;
using picture::extension_of;

// A title, a date or the like above the heading, which is the first row with its words.
void leave_out_titles(Rows& rows, ListFile& list) {
  constexpr size_t most = 5;
  for (size_t i = 0; i <= most && i + 1 < rows.size(); ++i) {
    const std::vector<std::string>& fields = rows[i].second;
    if (image_column(fields) != no_column) return;
    const bool has_image =
        rows[i + 1].second.size() == fields.size() && image_column(rows[i + 1].second) != no_column;
    if (path_heading(fields) == no_column || (label_heading(fields) == no_column && !has_image))
      continue;
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
    const std::string word = plain_heading(rows.back().second[path]);
    if (std::find(std::begin(words), std::end(words), word) == std::end(words)) return;
    list.notes.push_back(sdk::text("'", list.file, "': line ", rows.back().first, " ('",
                                   beginning_of(rows.back().second[path]),
                                   "') sums up the others and is left out"));
    rows.pop_back();
  }
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
  CsvColumns columns = columns_of(rows, list.file);
  leave_out_totals(rows, columns.path, list);
  if (columns.heading) refuse_other_order(rows, list.file);
  if (columns.count < 2 && !request.may_lack_labels) {
    throw wrong({list.file, rows[0].first}, "'", beginning_of(rows[0].second[0]),
                "' must be a path, a comma and the class's name");
  }
  columns.fold = find_folds(rows[0].second, columns, request.fold_column, list.file);
  if (columns.fold == columns.split) columns.fold = no_column;  // of the names of splits
  if (columns.heading && request.labels.empty()) columns.confidence = confidence_column(rows);
  choose_labels(rows[0].second, request, columns, list);
  if (columns.labels.empty() && !request.may_lack_labels) {
    throw wrong({list.file, rows[0].first}, "has no column of labels");
  }
  read_odd_splits(rows, columns, list);
  if (columns.fold != no_column) list.fold_column = as_utf8(rows[0].second[columns.fold]);
  if (columns.heading) {
    const auto heading = [&](size_t i) { return as_utf8(rows[0].second[i]); };
    const std::string split =
        list.has_splits ? sdk::text(", the split from '", heading(columns.split), "'") : "";
    const bool is_plain = plain_heading(rows[0].second[columns.path]) == "path";
    if (!is_plain || (list.has_splits && plain_heading(rows[0].second[columns.split]) != "split")) {
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
    if (columns.fold != no_column) entry.fold = fields[columns.fold];
    if (entry.path.empty()) throw wrong(place, "names no file");
    if (list.has_splits) entry.split = split_of(fields[columns.split], columns, place);
    double confidence = 1;
    if (columns.confidence != no_column) (void)read_number(fields[columns.confidence], &confidence);
    entry.is_denied = confidence == 0;
    for (const size_t column : columns.labels) entry.labels.push_back(as_utf8(fields[column]));
    list.entries.push_back(std::move(entry));
  }
}

bool is_csv(const std::string& file) {
  const std::string extension = extension_of(std::filesystem::path(file).filename().string());
  return extension == ".csv" || extension == ".tsv";
}

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
