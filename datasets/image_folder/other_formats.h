// Forms of pictures, and files that are taken for pictures, that are not read here: each by its
// name, with the tool that makes a picture of it.
#pragma once

#include <string>
#include <string_view>

#include "datasets/picture/bytes.h"

namespace tandem::image_folder {

// "JPEG XL; convert it: djxl FILE FILE.png"; "" for a file that is none of them.
[[nodiscard]] std::string other_format(picture::Bytes file);
// The same by an extension, as ".jxl".
[[nodiscard]] std::string other_format_of_extension(std::string_view extension);

}  // namespace tandem::image_folder
