// The value that is white in a data set's pictures of over 8 bits a channel: one for all of them,
// so that each is as dark as the others were beside it. Cameras and scanners store 12 bits in 16.
#pragma once

#include <functional>
#include <string>

#include "datasets/image_folder/reader.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {

// The parameter "white" of data sets of image files.
[[nodiscard]] sdk::Parameter white_parameter(const char* block);

struct White {
  double value = 0;  // 0: no picture has over 8 bits, or all of those are black
  std::string note;  // "white=4095: ...": what the host keeps with the run
};
// By some evenly spaced ones of `count` pictures: the least of 255, 1023, 4095, 16383 and 65535
// (of floats also 1) that none of them exceeds. `load` gives the bytes of a picture, in the
// reader's memory, or none.
[[nodiscard]] White find_white(int64_t count, const std::function<Bytes(int64_t, Reader&)>& load);

// Whether a file can have over 8 bits a channel, by its first bytes. False if it cannot be read.
[[nodiscard]] bool may_have_deep_values(const std::string& path);

}  // namespace tandem::image_folder
