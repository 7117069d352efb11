// The columns of a list in CSV: which of them has the paths, the labels, the splits and the folds,
// by their headings or by what stands below. Every mistake is a Refusal (TANDEM_INVALID).
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/image_folder/list_file.h"
#include "datasets/image_folder/list_lines.h"

namespace tandem::image_folder {

constexpr size_t no_column = std::string::npos;

struct CsvColumns {
  size_t path = 0, split = no_column, fold = no_column;
  size_t confidence = no_column;  // of 0 and 1: whether the image has the label of the line
  // Of a column of 1 and 0, as fastai's is_valid: the splits of these. "": it holds names.
  std::string split_of_one, split_of_zero;
  bool has_numbered_splits = false;  // 0, 1 and 2, as of CelebA and WILDS
  bool heading = false;
  size_t count = 2;
  std::vector<size_t> labels;
};

// The letters and digits of a heading, in lower case: "Image Index" is "imageindex".
[[nodiscard]] std::string plain_heading(const std::string& heading);
// The column with the first of these plain names that there is.
[[nodiscard]] size_t find_heading(const std::vector<std::string>& headings,
                                  std::initializer_list<std::string_view> names);
[[nodiscard]] size_t path_heading(const std::vector<std::string>& headings);
[[nodiscard]] size_t label_heading(const std::vector<std::string>& headings);
// The first field that is the name of an image.
[[nodiscard]] size_t image_column(const std::vector<std::string>& fields);
[[nodiscard]] bool has_heading(const Rows& rows);

// The columns of the paths and the splits. `rows`: all lines. Refusal where the first one may be a
// heading or an image.
[[nodiscard]] CsvColumns columns_of(const Rows& rows, const std::string& file);
// The column of folds: the one that the request names, or one that is called so.
[[nodiscard]] size_t find_folds(const std::vector<std::string>& headings, const CsvColumns& columns,
                                const std::string& named, const std::string& file);
// A column "Confidence" of 0 and 1 beside one of labels, as of Open Images.
[[nodiscard]] size_t confidence_column(const Rows& rows);
// The label columns that are named, those called so, or all that are left; notes the others.
void choose_labels(const std::vector<std::string>& headings, const ListRequest& request,
                   CsvColumns& columns, ListFile& list);

}  // namespace tandem::image_folder
