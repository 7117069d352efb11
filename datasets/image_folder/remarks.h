// What a picture's headers say that its pixels, as they are read here, do not show, or that changes
// them. The rules are the same for every file; an audit counts the files that they meet.
#pragma once

#include <string>

#include "datasets/picture/bytes.h"

namespace tandem::image_folder {

// One on each line, as "alpha is dropped"; "" for none.
[[nodiscard]] std::string remarks_of(picture::Bytes file);

}  // namespace tandem::image_folder
