// Reading one list of pictures, Caffe's or CSV, as it is written: nothing is looked up on disk.
// Whatever is wrong with it is a Refusal (TANDEM_INVALID) that begins with "file:line: ".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::image_folder {

struct ListEntry {
  std::string path;   // as written
  std::string label;  // a class's name; in Caffe's lists its number
  std::string split;  // "" where the list does not say; else train, val or test
  int64_t line = 0;
};

struct ListFile {
  std::vector<ListEntry> entries;
  bool numbered = false;  // labels are numbers of classes (Caffe)
  bool has_splits = false;
};

// Called .csv: CSV; else Caffe's form.
[[nodiscard]] ListFile read_list(const std::string& file);
// The same of text in memory; `file` is for messages and decides the form.
[[nodiscard]] ListFile parse_list(const std::string& text, const std::string& file);

}  // namespace tandem::image_folder
