// Copies boxes on a GPU, element by element or, where the lines of the box allow it, by vectors.
#pragma once

#include <cstdint>
#include <type_traits>

#include "layers/common/box.h"
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
  // Whether the elements that follow each multiple of n lie side by side in both tensors, at
  // multiples of n. (The first axis has the elements of a line.)
  [[nodiscard]] bool has_vectors(int n) const {
    bool result = box.source_offset % n == 0 && box.target_offset % n == 0 && box.count > 0 &&
                  box.axes[0].extent % n == 0 && box.axes[0].source == 1 && box.axes[0].target == 1;
    for (int i = 1; i < box.count; ++i) {
      result = result && box.axes[i].source % n == 0 && box.axes[i].target % n == 0;
    }
    return result;
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
  static constexpr int at_once =
      cuda::elements_at_once<std::conditional_t<sizeof(From) < sizeof(To), From, To>>;
  [[nodiscard]] bool can_vectorize() const {
    return cuda::are_aligned(source) && cuda::are_aligned(target) && box.has_vectors(at_once);
  }
  template <int n>
  struct Read {
    cuda::Elements<From, n> elements;
    int64_t target;
  };
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE Read<n> read(int64_t i) const {
    const BoxOffsets at = offsets_of(box, i);
    if (source == nullptr) return {{}, at.target};
    return {cuda::read<n>(source + at.source), at.target};
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t, const Read<n>& v) const {
    if constexpr (std::is_same_v<From, To>) {
      cuda::write(v.elements, target + v.target);
    } else {
      const auto value = [&](int lane) { return v.elements[lane]; };
      cuda::write(cuda::each_lane<n>(value), target + v.target);
    }
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
