// The data that a net's own data layers name, as Caffe reads them, for a run without --data: the
// lists of ImageData. Databases are not read, which the refusal says.
#pragma once

#include <string>

#include "include/tandem/train.h"

namespace tandem {

// Gives options without data the lists of their net, and where paths of the lists begin. Returns
// what says so. Error where the net names no list that is there.
std::string take_lists_of_net(TrainOptions& options);

}  // namespace tandem
