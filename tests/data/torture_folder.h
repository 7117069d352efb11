// A folder with everything that real folders contain: pictures in every form, files damaged in
// every way, and what is no file at all. Each has its verdict.
#pragma once

#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace tandem::test {

struct TortureCase {
  std::string name;    // of the file
  std::string reason;  // part of why it is left out; "": it is a picture
  // The picture as another decoder has it (a PPM of tests/reference/images); "": not compared.
  std::string expected;
  double tolerance = 0;  // of a pixel's value, on average
};

// Fills FOLDER/CLASS with all of them and returns the verdicts of those that count as images by
// their names.
[[nodiscard]] std::vector<TortureCase> make_torture(const TempFolder& folder,
                                                    const std::string& class_name);

// The files that are there, with their bytes (or where a link points): to be compared afterwards.
[[nodiscard]] std::vector<std::string> contents_of(const std::filesystem::path& folder);

}  // namespace tandem::test
