// The addresses of arrays to be added, as an argument of a kernel: a limited number per launch.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tandem::cuda {

constexpr uint32_t sources_at_once = 16;

struct Sources {
  const float* arrays[sources_at_once];
  uint32_t count;
};

// As many of `all` as fit, from `begin` on.
inline Sources take_sources(const float* const* all, uint32_t begin, uint32_t end) {
  Sources sources{};
  sources.count = std::min(end - begin, sources_at_once);
  std::copy_n(all + begin, sources.count, sources.arrays);
  return sources;
}

}  // namespace tandem::cuda
