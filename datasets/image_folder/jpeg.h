// One JPEG in memory, by libjpeg-turbo: its size first, then as much of it as is wanted. A file
// that is cut or damaged anywhere is refused, whatever part of it is wanted: what the library only
// warns of counts as damage, and every row is read. Only of a file that was whole before may the
// rows behind the part be left unread.
#pragma once

#include <memory>
#include <vector>

#include "datasets/picture/bytes.h"
#include "datasets/picture/resample.h"

namespace tandem::image_folder {

using picture::Bytes;

class Jpeg {
 public:
  // `file` outlives it; `known_whole`: these bytes were once decoded to their end. Throws a Refusal
  // (TANDEM_SKIP) for what is no whole picture.
  explicit Jpeg(Bytes file, bool known_whole = false);
  ~Jpeg();
  Jpeg(const Jpeg&) = delete;
  Jpeg& operator=(const Jpeg&) = delete;

  [[nodiscard]] picture::Size size() const;  // as stored, before EXIF turns it
  [[nodiscard]] int channels() const;        // as stored: 1, 3 or 4
  // At 1/shrink (1, 2, 4, 8) of the size; `part` of that, as a whole or a little more, with the
  // same pixels as the whole has there. `buffer` grows as needed and holds them.
  [[nodiscard]] picture::View decode(bool gray, int shrink, const picture::Part& part,
                                     std::vector<unsigned char>& buffer);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem::image_folder
