// From a file to pixels: 8 bits, B,G,R or gray, the right way up. Content decides how it is read,
// not its extension. Whatever is wrong with a file is a Refusal of status TANDEM_SKIP that says
// what, and one that is cut or damaged is never shown as a half grey picture. Nothing is printed. A
// reader is one thread's; its buffers grow to the largest picture and are used again.
#pragma once

#include <memory>
#include <opencv2/core.hpp>
#include <optional>
#include <string>
#include <vector>

#include "datasets/image_folder/jpeg.h"
#include "datasets/picture/picture.h"

namespace tandem::image_folder {

class Reader {
 public:
  explicit Reader(bool gray) : gray_(gray) {}

  // The file's bytes, until the next call.
  [[nodiscard]] Bytes load(const std::string& path);
  // Begins with a picture in memory, which stays there until decode() is done; its size as it is
  // shown. `known_whole`: these bytes were decoded to their end before, and need not be again.
  [[nodiscard]] picture::Size open(Bytes file, bool known_whole = false);
  [[nodiscard]] picture::Size open_file(const std::string& path) { return open(load(path)); }

  // What there is of a picture shrunk `shrink` times (JPEGs only: others come whole), at least
  // `part`. The view lives until the next call.
  [[nodiscard]] picture::View decode(int shrink, const picture::Part& part);
  [[nodiscard]] picture::View decode_all();
  // Only of a JPEG may parts, or a shrunk picture, be had.
  [[nodiscard]] bool can_shrink() const { return jpeg_ != nullptr; }

 private:
  bool gray_;
  std::vector<unsigned char> bytes_, pixels_, turned_;
  std::unique_ptr<Jpeg> jpeg_;
  int orientation_ = 1;
  picture::Size size_;
  cv::Mat other_;  // a picture that is no JPEG
};

// What the headers say, for an audit: "JPEG", and its size and channels as stored.
struct StoredForm {
  const char* format = "";
  int channels = 0;
  picture::Size size;  // as it is shown; zeros: not known
};
[[nodiscard]] StoredForm stored_form(Bytes file);

}  // namespace tandem::image_folder
