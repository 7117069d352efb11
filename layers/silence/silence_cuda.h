// Silence on NVIDIA GPUs: nothing to do.
#pragma once

#include "layers/silence/silence.h"
#include "plugins/cuda/indexing.h"

namespace tandem::layers {

struct SilenceCuda {
  SilenceCuda(const sdk::Binding&, const sdk::Call&) {}
  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }
  void forward(const sdk::Call&, const sdk::DevicePass&) const {}
};

}  // namespace tandem::layers
