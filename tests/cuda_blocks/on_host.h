// CUDA's words for kernels, for the host's compiler: the threads of a block are threads of the
// host, __shared__ is static memory, and __syncthreads() is a std::barrier, so that ThreadSanitizer
// sees what a kernel's threads may do at the same time. The blocks of a launch run one after
// another. Included before everything else in the sources that launches.sed has translated.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <tuple>

#define __CUDACC__ 1
#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)
#define __syncthreads() tandem::on_host::wait_for_block(__FILE__, __LINE__)
// The name of a kernel, which may be that of a template.
#define TANDEM_KERNEL(name) [=](const auto&... arguments) { name(arguments...); }

struct BlockIndex {
  unsigned x = 0;
};
inline thread_local BlockIndex threadIdx, blockIdx, blockDim, gridDim;

namespace tandem::on_host {

// Runs `thread` in every thread of every block.
void run_grid(unsigned blocks, unsigned threads, const std::function<void()>& thread);

// Returns when all threads of the block have called it. The barrier of which the environment
// variable TANDEM_WITHOUT_BARRIER names the place, as teams.h:42, is left out.
void wait_for_block(const char* file, int line);

uint64_t nanoseconds();

template <class... Arguments>
struct Launch {
  unsigned blocks, threads;
  std::tuple<Arguments...> arguments;
};

struct Grid {
  unsigned blocks, threads, shared_bytes;
  const void* stream;

  template <class... Arguments>
  Launch<Arguments...> operator()(Arguments... arguments) const {
    return {blocks, threads, {arguments...}};
  }
};

template <class Kernel, class... Arguments>
void operator->*(const Kernel& kernel, const Launch<Arguments...>& launch) {
  run_grid(launch.blocks, launch.threads, [&] { std::apply(kernel, launch.arguments); });
}

}  // namespace tandem::on_host

inline uint32_t __float_as_uint(float value) {
  return std::bit_cast<uint32_t>(value);
}
inline void __nanosleep(unsigned) {}
