// The values that are black and white in a data set's pictures of over 8 bits a channel: the same
// for all of them, so that each is as dark as the others were beside it. Cameras and scanners store
// 12 bits in 16, tomographs values below 0.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "datasets/image_folder/reader.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {

// The parameters "white" and "black" of data sets of image files, without defaults, and their
// values. Refusal if white is not above black.
void add_level_parameters(const char* block, std::vector<sdk::Parameter>& parameters);
[[nodiscard]] Levels levels_of(const sdk::Attributes& attributes);

// Of some evenly spaced ones of `count` pictures. White is the least of 255, 1023, 4095, 16383 and
// 65535 (of floats also 1) that none of them exceeds; it stays 0 if none has over 8 bits, or all of
// those are black. `load` gives the bytes of a picture, in the reader's memory, or none. `note`
// becomes "white=4095: ...", which the host keeps with the run. Refusal of pictures with
// values below 0 if `levels` has no black: only their user knows which values mean something.
[[nodiscard]] Levels find_white(const Levels& levels, int64_t count,
                                const std::function<Bytes(int64_t, Reader&)>& load,
                                std::string& note);

// Whether a file can have over 8 bits a channel, by its first bytes. False if it cannot be read.
[[nodiscard]] bool may_have_deep_values(const std::string& path);

}  // namespace tandem::image_folder
