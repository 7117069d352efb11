// Reads one list of pictures, Caffe's or CSV, without looking up files on disk. Every mistake is a
// Refusal (TANDEM_INVALID) that begins with "file:line: ".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::image_folder {

struct ListEntry {
  std::string path;                 // as written
  std::vector<std::string> labels;  // of each label column, as written; of joined lines of one
                                    // image and column, those of each
  std::string split;                // train, val or test; "" without a column of splits
  std::string fold;                 // as written; "" without a column of folds
  int64_t line = 0;
  bool is_denied = false;  // the image does not have the label (a column "Confidence")
};

struct ListFile {
  std::string file;
  std::vector<ListEntry> entries;
  std::vector<std::string> columns;  // headings of the label columns; "" without a heading
  std::vector<size_t> places;        // of these columns in the line of CSV, from 1 on
  bool numbered = false;             // Caffe's: labels are numbers
  bool has_splits = false;
  std::string fold_column;         // its heading; "": none
  std::vector<std::string> notes;  // which columns are not read
};

struct ListRequest {
  // Headings of the label columns, with commas between them; "": those that are called so, else all
  // that are left.
  std::string labels = {};
  std::string fold_column = {};  // heading; "": one that is called so; "none": there is none
  bool may_lack_labels = false;  // a list of paths alone then has no columns
};

// A file with the extension .csv is CSV, any other one Caffe's form.
[[nodiscard]] ListFile read_list(const std::string& file, const ListRequest& request = {});
// The same for text in memory. `file` is for messages and decides the form.
[[nodiscard]] ListFile parse_list(const std::string& text, const std::string& file,
                                  const ListRequest& request = {});
// Whether the text is a number, and which. Finite.
[[nodiscard]] bool read_number(std::string_view text, double* value);

}  // namespace tandem::image_folder
