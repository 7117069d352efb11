#include "plugins/cuda/arithmetic.h"

#include <cmath>
#include <cstring>

#include "plugins/cuda/launch.h"
#include "plugins/cuda/sources.h"
#include "plugins/cuda/status.h"
#include "plugins/cuda/sum_order.h"
#include "plugins/cuda/vectors.h"

namespace tandem::cuda {

namespace {

constexpr int together = elements_at_once<float>;

__global__ void fill_kernel(float* target, float value, int64_t count) {
  for (int64_t i = first_element(); i < count; i += element_stride()) target[i] = value;
}

// A source may be the target.
template <int n>
__device__ void add_at(float* target, const Sources& sources, int64_t i) {
  Elements<float, n> sum = read<n>(target + i);
  for (uint32_t s = 0; s < sources.count; ++s) {
    const Elements<float, n> source = read<n>(sources.arrays[s] + i);
    TANDEM_UNROLL
    for (int lane = 0; lane < n; ++lane) sum.element[lane] += source[lane];
  }
  write(sum, target + i);
}
// `vectors`: that many are aligned in all arrays.
__global__ void add_kernel(float* target, Sources sources, int64_t count, int64_t vectors) {
  for (int64_t v = first_element(); v < vectors; v += element_stride()) {
    add_at<together>(target, sources, v * together);
  }
  for (int64_t i = vectors * together + first_element(); i < count; i += element_stride()) {
    add_at<1>(target, sources, i);
  }
}

__device__ bool is_finite(float value) {
  constexpr uint32_t exponent = 0x7f800000u;
  return (__float_as_uint(value) & exponent) != exponent;
}
__global__ void check_finite_kernel(const float* values, int64_t count, int32_t* found_inf,
                                    int64_t vectors) {
  bool are_finite = true;
  for (int64_t v = first_element(); v < vectors; v += element_stride()) {
    const Elements<float, together> own = read<together>(values + v * together);
    TANDEM_UNROLL
    for (int lane = 0; lane < together; ++lane) are_finite = are_finite & is_finite(own[lane]);
  }
  for (int64_t i = vectors * together + first_element(); i < count; i += element_stride()) {
    are_finite = are_finite & is_finite(values[i]);
  }
  if (!are_finite) *found_inf = 1;  // all threads that write it write the same value
}

// All threads of a block of sum_threads call it; thread 0 gets the sum.
__device__ double sum_of_block(double value) {
  __shared__ double sums[sum_threads];
  sums[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = sum_threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  return sums[0];
}

__global__ void square_kernel(const float* values, int64_t count, double* partial_sums) {
  constexpr int ahead = 8;  // values are read before the first of them is added
  const int64_t stride = element_stride();
  double sum = 0;
  for (int64_t first = first_element(); first < count; first += ahead * stride) {
    float own[ahead];
    TANDEM_UNROLL
    for (int k = 0; k < ahead; ++k) {
      const int64_t i = first + k * stride;
      own[k] = i < count ? values[i] : 0.0F;  // adding 0 changes no bit
    }
    TANDEM_UNROLL
    for (int k = 0; k < ahead; ++k) {
      const double value = own[k];
      sum += value * value;
    }
  }
  sum = sum_of_block(sum);
  if (threadIdx.x == 0) partial_sums[blockIdx.x] = sum;
}

__global__ void add_up_kernel(const double* partial_sums, int count, double* sum) {
  const auto thread = static_cast<int>(threadIdx.x);
  const double all = sum_of_block(thread < count ? partial_sums[thread] : 0);
  if (thread == 0) *sum = all;
}

__device__ uint64_t nanoseconds() {
  uint64_t time;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
  return time;
}

__global__ void pass_time_kernel(uint64_t duration) {
  const uint64_t begin = nanoseconds();
  while (nanoseconds() - begin < duration) __nanosleep(1000);
}

void require_count(const char* what, int64_t count) {
  if (count < 0) throw sdk::invalid(what, " of ", count, " values");
}

}  // namespace

void fill(const tandem_call& call, float* target, float value, int64_t count) {
  require_count("fill", count);
  if (count == 0) return;
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  if (bits == 0) {
    check(cudaMemsetAsync(target, 0, static_cast<size_t>(count) * sizeof(float), stream_of(call)),
          "cudaMemsetAsync");
    return;
  }
  fill_kernel<<<blocks_for(count), threads_per_block, 0, stream_of(call)>>>(target, value, count);
  check_launch("fill");
}

void add(const tandem_call& call, float* target, const float* const* sources, uint32_t source_count,
         int64_t count) {
  require_count("add", count);
  if (count == 0) return;
  for (uint32_t begin = 0; begin < source_count; begin += sources_at_once) {
    const Sources given = take_sources(sources, begin, source_count);
    bool aligned = are_aligned(target);
    for (uint32_t s = 0; s < given.count; ++s) aligned = aligned && are_aligned(given.arrays[s]);
    add_kernel<<<blocks_for(count, together), threads_per_block, 0, stream_of(call)>>>(
        target, given, count, aligned ? count / together : 0);
    check_launch("add");
  }
}

void check_finite(const tandem_call& call, const float* values, int64_t count, int32_t* found_inf) {
  require_count("check", count);
  if (count == 0) return;
  const int64_t vectors = are_aligned(values) ? count / together : 0;
  check_finite_kernel<<<blocks_for(count, 2 * together), threads_per_block, 0, stream_of(call)>>>(
      values, count, found_inf, vectors);
  check_launch("check_finite");
}

void sum_of_squares(const tandem_call& call, const float* values, int64_t count, double* sum) {
  require_count("sum of squares", count);
  const Workspace* workspace = WorkspaceScope::of(call);
  if (workspace == nullptr) throw sdk::failed("a sum of squares outside a submitted work");
  const int blocks = sum_blocks(count);
  square_kernel<<<static_cast<unsigned>(blocks), sum_threads, 0, stream_of(call)>>>(
      values, count, workspace->partial_sums);
  check_launch("sum_of_squares");
  add_up_kernel<<<1, sum_threads, 0, stream_of(call)>>>(workspace->partial_sums, blocks, sum);
  check_launch("sum_of_squares, second stage");
}

void pass_time(cudaStream_t stream, double seconds) {
  if (!(seconds > 0)) return;
  pass_time_kernel<<<1, 1, 0, stream>>>(static_cast<uint64_t>(seconds * 1e9));
  check_launch("delay");
}

}  // namespace tandem::cuda
