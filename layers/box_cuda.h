// Copies boxes on a GPU: one thread per element of the box.
#pragma once

#include <cstdint>

#include "layers/box.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

struct BoxOffsets {
  int64_t source, target;
};

// A box for device code, with fast divisions.
struct DeviceBox {
  explicit DeviceBox(const Box& whole) : box(whole) {
    for (int i = 0; i < box.count; ++i) extents[i] = box.axes[i].extent;
  }
  Box box;
  cuda::Divisor extents[5];
};

// The offsets of the box's element number `element` in both tensors.
TANDEM_HOST_DEVICE inline BoxOffsets offsets_of(const DeviceBox& device_box, int64_t element) {
  const Box& box = device_box.box;
  BoxOffsets result{box.source_offset, box.target_offset};
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

template <class From, class To>
struct CopyOfBox {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const BoxOffsets at = offsets_of(box, i);
    cuda::store(source == nullptr ? 0.0F : cuda::load(source[at.source]), target[at.target]);
  }
  DeviceBox box;
  const From* source;
  To* target;
};

}  // namespace detail

// With `source` nullptr it writes zeros. If the dtypes differ, values are rounded.
template <class From, class To>
void copy_box(const sdk::Call& call, const Box& box, const From* source, To* target) {
  cuda::for_each(call, box.elements(), detail::CopyOfBox<From, To>{DeviceBox(box), source, target});
}

}  // namespace tandem::layers
