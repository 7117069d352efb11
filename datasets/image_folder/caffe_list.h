// Caffe's lists: a path and behind it one number or several, and the list of CelebA.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "datasets/image_folder/list_file.h"

namespace tandem::image_folder {

// Reads the lines, by number, into the entries and columns of `list`. Lines of paths alone have no
// columns if they may lack labels.
void read_caffe(const std::vector<std::pair<int64_t, std::string_view>>& lines,
                bool may_lack_labels, ListFile& list);

}  // namespace tandem::image_folder
