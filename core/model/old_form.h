// Caffe's old net files: `layers { type: CONVOLUTION blobs_lr: 1 weight_decay: 1 }`. A layer in
// that form becomes one in the current form, with every place kept, so that nothing else knows it
// existed.
#pragma once

#include "core/model/text_format.h"

namespace tandem {

// `layers` is the field of the net. Error for the still older form (`layers { layer { ... } }`) and
// for an unknown type.
[[nodiscard]] Message current_form(const Field& layers);

}  // namespace tandem
