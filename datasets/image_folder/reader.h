// From a file to pixels: 8 bits, B,G,R or gray, the right way up. The content decides how a file is
// read, not its extension. Every mistake in a file is a Refusal with the status TANDEM_SKIP and the
// reason; a truncated or damaged picture is never returned half gray. Nothing is printed. A reader
// is for one thread. Its buffers are used again. Of large files, and of large pictures that are in
// memory as a whole, however small the part that is wanted, one is read at a time in the process.
#pragma once

#include <memory>
#include <mutex>
#include <opencv2/core.hpp>
#include <optional>
#include <string>
#include <vector>

#include "datasets/image_folder/jpeg.h"
#include "datasets/image_folder/opencv_formats.h"
#include "datasets/picture/data_file.h"
#include "datasets/picture/picture.h"

namespace tandem::image_folder {

class Reader {
 public:
  explicit Reader(bool gray) : gray_(gray) {}

  void set_levels(const Levels& levels) { levels_ = levels; }

  // The file's bytes, until the next call.
  [[nodiscard]] Bytes load(const std::string& path);
  // The same of a file with many pictures.
  [[nodiscard]] Bytes load_part(const picture::DataFile& file, int64_t offset, size_t bytes);
  // Opens a picture in memory, which must stay there until decode() is done. Returns its size as it
  // is shown. `known_whole`: these bytes were decoded to their end before.
  [[nodiscard]] picture::Size open(Bytes file, bool known_whole = false);
  [[nodiscard]] picture::Size open_file(const std::string& path) { return open(load(path)); }

  // Decodes at least `part` of the picture, shrunk `shrink` times. Only JPEGs can be shrunk; others
  // are decoded whole. The view is valid until the next call.
  [[nodiscard]] picture::View decode(int shrink, const picture::Part& part);
  [[nodiscard]] picture::View decode_all();
  // Whether it is a JPEG: only JPEGs can be decoded in part or shrunk.
  [[nodiscard]] bool can_shrink() const { return jpeg_ != nullptr; }
  // What is wrong with the open file though every pixel is there, as far as it was decoded; "".
  // A line for each.
  [[nodiscard]] const char* remark() const {
    return jpeg_ == nullptr ? remark_.c_str() : jpeg_->remark();
  }
  // Of the open picture; zeros of a JPEG.
  [[nodiscard]] Values values() const { return jpeg_ == nullptr ? values_ : Values{}; }
  // Ends the use of the picture. Other threads may be waiting to open theirs.
  void close();

 private:
  void make_room(size_t bytes);
  void close_picture();
  void take_turn();
  void note_values(Bytes file);

  bool gray_;
  Levels levels_;
  Values values_;
  std::string remark_;
  std::vector<unsigned char> bytes_, pixels_, turned_;
  std::unique_ptr<Jpeg> jpeg_;
  int orientation_ = 1;
  picture::Size size_;
  cv::Mat other_;                      // a picture that is not a JPEG; a WebP as it is stored
  std::unique_lock<std::mutex> turn_;  // held while a large file or picture is open
};

// Format, size and channels as stored, from the headers.
struct StoredForm {
  const char* format = "";
  int channels = 0;
  picture::Size size;  // as it is shown; zeros: not known
  int bits = 8;        // of a channel
};
[[nodiscard]] StoredForm stored_form(Bytes file);

}  // namespace tandem::image_folder
