// Errors of libtiff, with which OpenCV reads TIFFs: OpenCV leaves pixels that cannot be
// decompressed black, or as they come, and calls the picture read.
#pragma once

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

}  // namespace tandem::image_folder
