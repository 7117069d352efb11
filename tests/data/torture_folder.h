// A folder with everything that real folders contain: pictures in every form, files damaged in
// every way, and entries that are not files. Each has its verdict.
#pragma once

#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace tandem::test {

struct TortureCase {
  std::string name;    // of the file
  std::string reason;  // part of why it is left out; "": it is a picture
  // The picture by another decoder (a PPM of tests/reference/images); "": not compared.
  std::string expected;
  double tolerance = 0;  // of a pixel's value, on average
};

// Fills FOLDER/CLASS with all of them and returns the verdicts of those that count as images by
// their names.
[[nodiscard]] std::vector<TortureCase> make_torture(const TempFolder& folder,
                                                    const std::string& class_name);

// All files with their bytes (or the target of a link), for comparison afterwards.
[[nodiscard]] std::vector<std::string> contents_of(const std::filesystem::path& folder);

}  // namespace tandem::test
