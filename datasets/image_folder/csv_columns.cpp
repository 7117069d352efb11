#include "datasets/image_folder/csv_columns.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "datasets/image_folder/csv_splits.h"
#include "datasets/picture/names.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

using picture::as_utf8;
using picture::beginning_of;

// How many rows have the first one's text in a column.
size_t like_first(const Rows& rows, size_t column) {
  return static_cast<size_t>(std::count_if(rows.begin(), rows.end(), [&](const auto& row) {
    return column < row.second.size() && row.second[column] == rows[0].second[column];
  }));
}

// The column that a text names by its place, from 1 on; `count`: no_column.
ptrdiff_t place_of(const std::string& text, size_t count) {
  size_t place = 0;
  const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), place);
  const bool is_place = status == std::errc{} && stop == text.data() + text.size() && place > 0;
  return static_cast<ptrdiff_t>(is_place && place <= count ? place - 1 : count);
}

// The column of the image in the second row; `no_column` if it has another number of fields.
size_t image_below(const Rows& rows) {
  if (rows.size() < 2 || rows[1].second.size() != rows[0].second.size()) return no_column;
  return image_column(rows[1].second);
}

// A heading without a known name, above names without extensions, looks as an image does.
void refuse_doubt(const Rows& rows, const std::string& file) {
  const size_t last = rows[0].second.size() - 1;
  if (rows[0].second[0].find_first_of("/\\.0123456789") != std::string::npos) return;
  std::set<std::string> labels;
  for (const auto& [line, fields] : rows) {
    if (image_column(fields) != no_column) return;
    if (last < fields.size()) labels.insert(fields[last]);
  }
  const bool some_repeat = labels.size() < rows.size();
  if (last == 0 || !some_repeat || like_first(rows, last) > 1) return;
  throw wrong({file, rows[0].first}, "'", beginning_of(rows[0].second[0]), ",",
              beginning_of(rows[0].second[last]),
              "' is a heading or an image: if it is a heading, call the columns path and label; "
              "else write a line path,label before it");
}

}  // namespace

std::string plain_heading(const std::string& heading) {
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
      if (plain_heading(headings[i]) == name) return i;
    }
  }
  return std::string::npos;
}

size_t image_column(const std::vector<std::string>& fields) {
  const auto found = std::find_if(fields.begin(), fields.end(), [](const std::string& field) {
    return picture::is_image(field);
  });
  return found == fields.end() ? no_column : static_cast<size_t>(found - fields.begin());
}

size_t label_heading(const std::vector<std::string>& headings) {
  return find_heading(headings, {"label", "labels", "class", "classname", "classes", "category",
                                 "categories", "tags", "tag", "findinglabels", "target", "classid",
                                 "labelid", "classlabel", "labelname", "dx"});
}

size_t path_heading(const std::vector<std::string>& headings) {
  return find_heading(headings,
                      {"path", "file", "filename", "image", "imagepath", "filepath", "imagename",
                       "imageid", "imageindex", "imagefile", "img", "imgpath", "imgname", "fname",
                       "photo", "photoid", "picture", "idcode", "id"});
}

bool has_heading(const Rows& rows) {
  const std::vector<std::string>& first = rows[0].second;
  if (image_column(first) != no_column) return false;
  if (path_heading(first) != no_column || image_below(rows) != no_column) return true;
  // The name of a column of labels, which is no label below.
  const size_t label = label_heading(first);
  if (label != no_column && like_first(rows, label) == 1 && first.size() > 1) return true;
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

CsvColumns columns_of(const Rows& rows, const std::string& file) {
  const std::vector<std::string>& first = rows[0].second;
  CsvColumns columns;
  columns.count = first.size();
  const bool names_image = image_column(first) != no_column;
  const size_t path = path_heading(first), label = label_heading(first), below = image_below(rows);
  if (has_heading(rows)) {
    columns.heading = true;
    columns.path = path == no_column ? label == 0 ? 1 : 0 : path;
    if (below != no_column && !picture::is_image(rows[1].second[columns.path]))
      columns.path = below;
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

size_t find_folds(const std::vector<std::string>& headings, const CsvColumns& columns,
                  const std::string& named, const std::string& file) {
  if (named == "none") return no_column;
  if (named.empty()) {
    return !columns.heading ? no_column
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

size_t confidence_column(const Rows& rows) {
  const size_t column = find_heading(rows[0].second, {"confidence"});
  if (column == no_column || label_heading(rows[0].second) == no_column) return no_column;
  const bool is_binary = std::all_of(rows.begin() + 1, rows.end(), [&](const auto& row) {
    double value = -1;
    return column < row.second.size() && read_number(row.second[column], &value) &&
           (value == 0 || value == 1);
  });
  return is_binary ? column : no_column;
}

void choose_labels(const std::vector<std::string>& headings, const ListRequest& request,
                   CsvColumns& columns, ListFile& list) {
  const std::string &named = request.labels, &file = list.file;
  const auto is_taken = [&](size_t i) {
    return i == columns.path || i == columns.split || i == columns.fold || i == columns.confidence;
  };
  const size_t label = !columns.heading ? no_column : label_heading(headings);
  if (!named.empty()) {
    for (size_t at = 0; at <= named.size();) {
      const size_t end = std::min(named.find(',', at), named.size());
      const std::string one(trimmed(std::string_view(named).substr(at, end - at)));
      auto found = std::find(headings.begin(), headings.end(), one);
      if (!columns.heading) found = headings.begin() + place_of(one, headings.size());
      if (found == headings.end()) {
        const bool has_others = columns.count > 1 + size_t(columns.split != no_column) +
                                                    size_t(columns.fold != no_column);
        if (request.may_lack_labels && !has_others) return columns.labels.clear();
        throw sdk::invalid("labels=", named, ": '", file, "' has no column '", one, "'",
                           columns.heading ? picture::did_you_mean(one, headings)
                                           : sdk::text("; it has no heading: the columns are 1 to ",
                                                       headings.size()));
      }
      columns.labels.push_back(static_cast<size_t>(found - headings.begin()));
      at = end + 1;
    }
  } else if (label != no_column) {
    columns.labels = {label};
  } else {
    size_t id = no_column;
    for (size_t i = 0; i < columns.count; ++i) {
      const std::string name = columns.heading ? plain_heading(headings[i]) : "label";
      const bool is_index = name.empty() || name == "unnamed0" || name == "index" || name == "id";
      if (!is_taken(i) && !is_index) columns.labels.push_back(i);
      if (!is_taken(i) && name == "id") id = i;
    }
    // As of the whales of a competition: Image,Id.
    if (columns.labels.empty() && id != no_column) columns.labels = {id};
  }
  std::vector<std::string> unread;
  for (size_t i = 0; i < columns.count && columns.heading; ++i) {
    const bool is_read =
        std::find(columns.labels.begin(), columns.labels.end(), i) != columns.labels.end();
    const bool is_numbering =
        plain_heading(headings[i]).empty() || plain_heading(headings[i]) == "unnamed0";
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

}  // namespace tandem::image_folder
