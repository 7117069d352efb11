// The picture of `tandem predict --explain`: a photo, beside it what speaks for its class, and
// below them the class, its probability and what the colors mean.
#pragma once

#include <string>

#include "core/report/class_map.h"
#include "core/report/display.h"
#include "plugins/center_crop.h"

namespace tandem {

// The net's input in a photo, in shares of the photo's width and height. It is a part of the photo,
// or more than it where there are bars around it.
struct SeenPart {
  double left = 0, top = 0, width = 1, height = 1;
};
// Of a photo of width x height pixels in an input of across x down pixels.
[[nodiscard]] SeenPart seen_part(const center_crop::Middle& middle, int64_t width, int64_t height,
                                 int64_t across, int64_t down);

// A small photo is enlarged in whole steps. What the net did not see is dark in the right half.
// `caption`: what was predicted.
[[nodiscard]] DrawnPicture explained_picture(const DrawnPicture& photo, const ClassMap& map,
                                             const SeenPart& seen, const std::string& caption);

}  // namespace tandem
