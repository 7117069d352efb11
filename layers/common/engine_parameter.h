// Caffe's parameter `engine`, which is accepted and ignored: the kind of device decides.
#pragma once

#include "plugins/sdk.h"

namespace tandem::layers {

inline sdk::Parameter engine_parameter(const char* block) {
  return sdk::word(block, "engine")
      .by_default("DEFAULT")
      .one_of("DEFAULT|CAFFE|CUDNN")
      .help("ignored: the device decides");
}

}  // namespace tandem::layers
