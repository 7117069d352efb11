// Measures cuDNN's algorithms for the passes of one convolution, in memory that is freed
// afterwards. Each is run several times; fastest() chooses from the unchanged results.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plugins/cuda/descriptors.h"
#include "plugins/cuda/dnn_algorithms.h"

namespace tandem::cuda::detail {

inline cudnnMathType_t dnn_math(ConvolutionMath math) {
  return math == ConvolutionMath::tensor       ? CUDNN_TENSOR_OP_MATH
         : math == ConvolutionMath::by_default ? CUDNN_DEFAULT_MATH
                                               : CUDNN_FMA_MATH;
}
inline ConvolutionMath math_of(cudnnMathType_t math) {
  return math == CUDNN_TENSOR_OP_MATH ? ConvolutionMath::tensor
         : math == CUDNN_DEFAULT_MATH ? ConvolutionMath::by_default
                                      : ConvolutionMath::full;
}

class DeviceMemory {
 public:
  DeviceMemory() = default;
  ~DeviceMemory() { static_cast<void>(cudaFree(address_)); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // False: there is not enough memory.
  bool allocate(int64_t bytes) {
    const cudaError_t error = cudaMalloc(&address_, static_cast<size_t>(bytes));
    if (error != cudaErrorMemoryAllocation) check(error, "cudaMalloc");
    static_cast<void>(cudaGetLastError());
    return error == cudaSuccess;
  }
  [[nodiscard]] void* address() const { return address_; }

 private:
  void* address_ = nullptr;
};

// Tensors, weights and scratch memory of a convolution, all zeros: the values do not change the
// time that cuDNN takes.
class MeasuringMemory {
 public:
  MeasuringMemory(const sdk::Call& call, int64_t x, int64_t weight, int64_t y,
                  int64_t most_scratch) {
    const std::array<int64_t, 3> sizes{rounded(x), rounded(weight), rounded(y)};
    const int64_t tensors = sizes[0] + sizes[1] + sizes[2];
    // With less scratch memory, fewer algorithms are measured; this is enough for the simplest
    // ones.
    constexpr int64_t least_scratch = int64_t{16} << 20;
    for (int64_t scratch = most_scratch; scratch >= least_scratch && !has_room_; scratch /= 4) {
      has_room_ = memory_.allocate(tensors + scratch);
      scratch_bytes_ = static_cast<size_t>(scratch);
    }
    if (!has_room_) return;
    char* at = static_cast<char*>(memory_.address());
    for (size_t i = 0; i < parts_.size(); ++i) {
      parts_[i] = at;
      at += i < sizes.size() ? sizes[i] : 0;
    }
    const auto stream = static_cast<cudaStream_t>(call.native_stream);
    check(cudaMemsetAsync(memory_.address(), 0, static_cast<size_t>(tensors), stream),
          "cudaMemsetAsync");
  }

  // False: nothing can be measured.
  [[nodiscard]] bool has_room() const { return has_room_; }
  [[nodiscard]] void* x() const { return parts_[0]; }
  [[nodiscard]] void* weight() const { return parts_[1]; }
  [[nodiscard]] void* y() const { return parts_[2]; }
  [[nodiscard]] void* scratch() const { return parts_[3]; }
  [[nodiscard]] size_t scratch_bytes() const { return scratch_bytes_; }

 private:
  static int64_t rounded(int64_t bytes) { return (bytes + 255) / 256 * 256; }

  DeviceMemory memory_;
  bool has_room_ = false;
  std::array<char*, 4> parts_{};
  size_t scratch_bytes_ = 0;
};

inline bool is_without_memory(cudnnStatus_t status) {
  return status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
         status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
}

// find(results, capacity, &count) is one of cuDNN's cudnnFind...Ex functions; may_use(math) says
// whether the arithmetic of a result is allowed.
template <class Answer, size_t count, class Find, class MayUse>
std::vector<MeasuredAlgorithm> measure_algorithms(const char* query, const Find& find,
                                                  const MayUse& may_use) {
  constexpr int repeats = 3;
  std::vector<MeasuredAlgorithm> measured;
  for (int i = 0; i < repeats; ++i) {
    std::array<Answer, count> answers{};
    int found = 0;
    const cudnnStatus_t status = find(answers.data(), static_cast<int>(count), &found);
    if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED || is_without_memory(status)) {
      return measured;
    }
    check(status, query);
    for (size_t a = 0; a < std::min(static_cast<size_t>(found), count); ++a) {
      const Answer& answer = answers[a];
      measured.push_back({{static_cast<int>(answer.algo), math_of(answer.mathType)},
                          answer.status == CUDNN_STATUS_SUCCESS && may_use(answer.mathType),
                          answer.determinism == CUDNN_DETERMINISTIC,
                          static_cast<double>(answer.time),
                          static_cast<int64_t>(answer.memory)});
    }
  }
  return measured;
}

}  // namespace tandem::cuda::detail
