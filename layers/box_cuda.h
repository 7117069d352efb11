// Copies boxes on a gpu: one thread an element of the box.
#pragma once

#include <cstdint>

#include "layers/box.h"
#include "plugins/cuda/places.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

struct BoxPlaces {
  int64_t source, target;
};

// Of the box's element number `element`.
TANDEM_HOST_DEVICE inline BoxPlaces places_of(const Box& box, int64_t element) {
  BoxPlaces result{box.source_offset, box.target_offset};
  for (int i = 0; i < box.count; ++i) {
    const int64_t outer = cuda::quotient(element, box.axes[i].extent);
    const int64_t at = element - outer * box.axes[i].extent;
    result.source += at * box.axes[i].source;
    result.target += at * box.axes[i].target;
    element = outer;
  }
  return result;
}

namespace detail {

struct CopyOfBox {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const BoxPlaces at = places_of(box, i);
    target[at.target] = source == nullptr ? 0.0F : source[at.source];
  }
  Box box;
  const float* source;
  float* target;
};

}  // namespace detail

// `source` nullptr: zeros.
inline void copy_box(const sdk::Call& call, const Box& box, const float* source, float* target) {
  cuda::for_each(call, box.elements(), detail::CopyOfBox{box, source, target});
}

}  // namespace tandem::layers
