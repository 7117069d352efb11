// Reads one list of pictures, Caffe's or CSV, without looking up files on disk. Every mistake is a
// Refusal (TANDEM_INVALID) that begins with "file:line: ".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::image_folder {

constexpr size_t longest_class_name = 1000;  // bytes; messages contain it

struct ListEntry {
  std::string path;   // as written
  std::string label;  // a class's name; in Caffe's lists its number
  std::string split;  // train, val or test; "" without a column of splits
  int64_t line = 0;
};

struct ListFile {
  std::vector<ListEntry> entries;
  bool numbered = false;  // labels are numbers of classes (Caffe)
  bool has_splits = false;
};

// A file with the extension .csv is CSV, any other one Caffe's form.
[[nodiscard]] ListFile read_list(const std::string& file);
// The same for text in memory. `file` is for messages and decides the form.
[[nodiscard]] ListFile parse_list(const std::string& text, const std::string& file);

}  // namespace tandem::image_folder
