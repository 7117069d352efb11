// The parameters of the HEVC pictures of a HEIC file. libde265 writes to the standard error when
// they contradict each other; they are checked here first, so that the file is refused in silence
// and with a reason.
#pragma once

#include "datasets/picture/bytes.h"

namespace tandem::image_folder {

// Whether no sequence parameter set (ITU-T H.265, 7.3.2.2) in the header of the file breaks the
// rules of block sizes and bit depths of 7.4.3.2. What ends early or is not found is left to the
// decoder.
[[nodiscard]] bool has_sound_hevc_header(picture::Bytes heic);

}  // namespace tandem::image_folder
