// One JPEG in memory, decoded by libjpeg-turbo: first its size, then the part of it that is needed.
// A file of which pixels are missing or damaged is refused: every row is read, and warnings of the
// library count as damage, unless every pixel is there. Only for a file that is known to be whole
// the rows after the part are not read.
#pragma once

#include <memory>
#include <vector>

#include "datasets/picture/bytes.h"
#include "datasets/picture/resample.h"

namespace tandem::image_folder {

using picture::Bytes;

class Jpeg {
 public:
  // `file` must outlive it. `known_whole`: these bytes were decoded to their end before. Refusal
  // (TANDEM_SKIP) for a file that is not a whole picture.
  explicit Jpeg(Bytes file, bool known_whole = false);
  ~Jpeg();
  Jpeg(const Jpeg&) = delete;
  Jpeg& operator=(const Jpeg&) = delete;

  [[nodiscard]] picture::Size size() const;  // as stored, before EXIF turns it
  [[nodiscard]] int channels() const;        // as stored: 1, 3 or 4
  // What is wrong with the file though every pixel is there, as far as it was decoded; "".
  [[nodiscard]] const char* remark() const;
  // Memory for the coefficients of the whole picture, as a progressive JPEG takes it; 0: only some
  // rows are in memory.
  [[nodiscard]] double buffered_bytes() const;
  // Decodes `part`, or a little more, of the picture at 1/shrink (1, 2, 4, 8) of its size, with the
  // same pixels as in the whole. They are in `buffer`, which grows as needed.
  [[nodiscard]] picture::View decode(bool gray, int shrink, const picture::Part& part,
                                     std::vector<unsigned char>& buffer);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem::image_folder
