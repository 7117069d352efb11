// OpenCV 4.6 writes on std::cerr what it thinks of some files, besides throwing or failing. While a
// Quiet lives, what its thread writes there is dropped; what other threads write passes.
#pragma once

namespace tandem::image_folder {

class Quiet {
 public:
  Quiet();
  ~Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
};

}  // namespace tandem::image_folder
