// Neighboring elements that one thread reads and writes together, so that enough bytes are on
// their way from memory at any time: 16 bytes are one access on a GPU. The arithmetic of an element
// is the same alone and among others, and so are its bits.
//
// A body of for_each (teams.h) in this form has, in place of operator()(int64_t i) const,
//   static constexpr int at_once = cuda::elements_at_once<T>;
//   bool can_vectorize() const;                           on the host: are_aligned(x, y)
//   template <int n> auto read(int64_t i) const;          elements i to i + n - 1; writes nothing
//   template <int n, class Read> void write(int64_t i, const Read& read) const;
// n is at_once or 1. With at_once, i is a multiple of it.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "plugins/cuda/elements.h"

// Before a loop whose arrays must be in registers.
#ifdef __CUDA_ARCH__
#define TANDEM_UNROLL _Pragma("unroll")
#else
#define TANDEM_UNROLL
#endif

namespace tandem::cuda {

template <class T>
inline constexpr int elements_at_once = 16 / static_cast<int>(sizeof(T));

// Float32 values of neighboring elements.
template <int n>
struct Values {
  [[nodiscard]] TANDEM_HOST_DEVICE float operator[](int lane) const { return value[lane]; }
  float value[n];
};

// Neighboring elements as they lie in memory.
template <class T, int n>
struct Elements {
  [[nodiscard]] TANDEM_HOST_DEVICE auto operator[](int lane) const {
    if constexpr (std::is_same_v<T, uint8_t>) {
      return element[lane];
    } else {
      return load(element[lane]);
    }
  }
  T element[n];
};

namespace detail {

// What one access transfers.
template <int bytes>
struct alignas(bytes) Word {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16);
  uint32_t part[bytes / 4];
};

template <int bytes>
TANDEM_HOST_DEVICE inline void copy_word(const void* source, void* target) {
#ifdef __CUDA_ARCH__
  *static_cast<Word<bytes>*>(target) = *static_cast<const Word<bytes>*>(source);
#else
  std::memcpy(__builtin_assume_aligned(target, bytes), __builtin_assume_aligned(source, bytes),
              bytes);
#endif
}

// The same to memory of the device. The compiler may divide a copy of a Word, but not this.
template <int bytes>
TANDEM_HOST_DEVICE inline void store_word(const void* source, void* target) {
#ifdef __CUDA_ARCH__
  const Word<bytes> word = *static_cast<const Word<bytes>*>(source);
  const uint32_t* part = word.part;
  const size_t address = __cvta_generic_to_global(target);
  if constexpr (bytes == 16) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(part[0]),
                 "r"(part[1]), "r"(part[2]), "r"(part[3])
                 : "memory");
  } else if constexpr (bytes == 8) {
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(address), "r"(part[0]), "r"(part[1])
                 : "memory");
  } else {
    *static_cast<uint32_t*>(target) = part[0];
  }
#else
  copy_word<bytes>(source, target);
#endif
}

}  // namespace detail

// The elements from `source` on. With `aligned` false, element by element.
template <int n, bool aligned = true, class T>
TANDEM_HOST_DEVICE inline Elements<T, n> read(const T* source) {
  constexpr int bytes = n * static_cast<int>(sizeof(T));
  if constexpr (!aligned || bytes < 4) {
    Elements<T, n> result;
    TANDEM_UNROLL
    for (int lane = 0; lane < n; ++lane) result.element[lane] = source[lane];
    return result;
  } else {
    constexpr int word = bytes < 16 ? bytes : 16;
    static_assert(bytes % word == 0);
    struct alignas(word) Registers {
      Elements<T, n> elements;
    } result;
    TANDEM_UNROLL
    for (int i = 0; i < n; i += word / static_cast<int>(sizeof(T))) {
      detail::copy_word<word>(source + i, result.elements.element + i);
    }
    return result.elements;
  }
}

// The same elements of two tensors.
template <class T, int n>
struct TwoElements {
  Elements<T, n> first, second;
};
template <int n, bool aligned = true, class T>
TANDEM_HOST_DEVICE inline TwoElements<T, n> read_two(const T* first, const T* second) {
  return {read<n, aligned>(first), read<n, aligned>(second)};
}

template <class T, int n>
TANDEM_HOST_DEVICE inline void write(const Elements<T, n>& elements, T* target) {
  constexpr int bytes = n * static_cast<int>(sizeof(T));
  if constexpr (bytes < 4) {
    TANDEM_UNROLL
    for (int lane = 0; lane < n; ++lane) target[lane] = elements.element[lane];
  } else {
    constexpr int word = bytes < 16 ? bytes : 16;
    struct alignas(word) Registers {
      Elements<T, n> elements;
    } registers{elements};
    TANDEM_UNROLL
    for (int i = 0; i < n; i += word / static_cast<int>(sizeof(T))) {
      detail::store_word<word>(registers.elements.element + i, target + i);
    }
  }
}

// Rounds the values and stores them.
template <class T, int n>
TANDEM_HOST_DEVICE inline void write(const Values<n>& values, T* target) {
  Elements<T, n> elements;
  TANDEM_UNROLL
  for (int lane = 0; lane < n; ++lane) store(values[lane], elements.element[lane]);
  write(elements, target);
}

// The same for addresses that need not be aligned.
template <bool aligned, class T, int n>
TANDEM_HOST_DEVICE inline void write_to(T* target, const Values<n>& values) {
  if constexpr (aligned) {
    write(values, target);
  } else {
    TANDEM_UNROLL
    for (int lane = 0; lane < n; ++lane) store(values[lane], target[lane]);
  }
}

// The values function(lane).
template <int n, class Function>
TANDEM_HOST_DEVICE inline Values<n> each_lane(const Function& function) {
  Values<n> result;
  TANDEM_UNROLL
  for (int lane = 0; lane < n; ++lane) result.value[lane] = function(lane);
  return result;
}

// Whether all addresses are such that vectors begin there; NULL is.
template <class... T>
[[nodiscard]] bool are_aligned(const T*... addresses) {
  return ((reinterpret_cast<uintptr_t>(addresses) % 16 == 0) && ...);
}

template <class Body>
concept VectorBody = requires(const Body& body) {
  { Body::at_once } -> std::convertible_to<int>;
  { body.can_vectorize() } -> std::same_as<bool>;
};

}  // namespace tandem::cuda
