// Caffe's nets write a normalisation with factors and biases as a BatchNorm and a Scale. One kernel
// computes both, so the net that runs has one layer, a BatchNormScale. The weights keep their names
// and places, so that files of weights are the same.
#pragma once

#include <string>

#include "core/model/net/draft.h"

namespace tandem {

// Joins each BatchNorm with the Scale that comes next and alone reads its output, if the Scale has
// a factor and a bias for each channel, no other layer shares their weights, the BatchNorm's output
// is no part of the loss, a gradient passes between the two, and the kind of device has a kernel.
// The layer keeps the BatchNorm's name and has the Scale's in Layer::joined_scale.
void join_scales(const NetDefinition& definition, Draft& draft, const std::string& device_kind);

}  // namespace tandem
