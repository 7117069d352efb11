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

// A box as device code reads it.
struct DeviceBox {
  explicit DeviceBox(const Box& whole) : box(whole) {
    for (int i = 0; i < box.count; ++i) extents[i] = box.axes[i].extent;
  }
  Box box;
  cuda::Divisor extents[5];
};

// Of the box's element number `element`.
TANDEM_HOST_DEVICE inline BoxPlaces places_of(const DeviceBox& device_box, int64_t element) {
  const Box& box = device_box.box;
  BoxPlaces result{box.source_offset, box.target_offset};
  for (int i = 0; i < box.count; ++i) {
    const int64_t outer = cuda::quotient(element, device_box.extents[i]);
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
  DeviceBox box;
  const float* source;
  float* target;
};

}  // namespace detail

// `source` nullptr: zeros.
inline void copy_box(const sdk::Call& call, const Box& box, const float* source, float* target) {
  cuda::for_each(call, box.elements(), detail::CopyOfBox{DeviceBox(box), source, target});
}

}  // namespace tandem::layers
