// Errors of libtiff, with which OpenCV reads TIFFs: OpenCV leaves pixels that cannot be
// decompressed black, or as they come, and calls the picture read.
#pragma once

#include <cstdint>
#include <optional>

namespace tandem::image_folder {

// While it lives it notes errors on this thread. Where OpenCV brings a libtiff of its own, which
// cannot be asked, there are none.
class TiffErrors {
 public:
  TiffErrors();
  TiffErrors(const TiffErrors&) = delete;
  TiffErrors& operator=(const TiffErrors&) = delete;
  [[nodiscard]] bool any() const;
};

// Whether this libtiff has the compression of that number; nullopt: it cannot be asked.
[[nodiscard]] std::optional<bool> decompresses_tiff(uint64_t compression);

}  // namespace tandem::image_folder
