// The forms of TIFF that OpenCV and libtiff do not read, or read as other pixels than are stored:
// each is named, so that a file that is whole is never called damaged, nor read wrongly in silence.
#pragma once

#include <string>
#include <vector>

#include "datasets/picture/bytes.h"

namespace tandem::image_folder {

// What the file is and how to store it, of a form that would be decoded to other pixels; "" if it
// is of none.
[[nodiscard]] std::string misread_form(picture::Bytes tiff);
// The same of a file that OpenCV does not take.
[[nodiscard]] std::string unread_form(picture::Bytes tiff);
// The same of a file that libtiff could not decompress.
[[nodiscard]] std::string unread_codec(picture::Bytes tiff);

// Whether it says that it is gray and has three or four channels of up to 8 bits, as files of
// measured bands do: libtiff would show the first of them alone.
[[nodiscard]] bool has_gray_bands(picture::Bytes tiff);
// Such a file in `room`, marked as one of colors.
[[nodiscard]] picture::Bytes with_bands_as_colors(picture::Bytes tiff,
                                                  std::vector<unsigned char>& room);

// What the channels beside gray or the three colors are, which are dropped.
enum class Beside { nothing, alpha, other };
[[nodiscard]] Beside beside_colors(picture::Bytes tiff);

}  // namespace tandem::image_folder
