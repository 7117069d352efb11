// Measuring cuDNN's algorithms for the passes of one convolution, in memory of its own that is gone
// afterwards. Each is run several times; what it says of them is given on as it is, for fastest()
// to choose from.
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

// Tensors, weights and scratch memory of a convolution, all zeros: what cuDNN computes with does
// not change how long it takes.
class MeasuringMemory {
 public:
  // Throws Refusal where there is no room for them.
  MeasuringMemory(const sdk::Call& call, int64_t x, int64_t weight, int64_t y,
                  int64_t most_scratch) {
    const std::array<int64_t, 3> sizes{rounded(x), rounded(weight), rounded(y)};
    const int64_t tensors = sizes[0] + sizes[1] + sizes[2];
    // Less of it leaves out algorithms; so few bytes do for the plain ones.
    constexpr int64_t least_scratch = int64_t{16} << 20;
    cudaError_t error = cudaErrorMemoryAllocation;
    for (int64_t scratch = most_scratch; scratch >= least_scratch; scratch /= 4) {
      error = cudaMalloc(&memory_, static_cast<size_t>(tensors + scratch));
      scratch_bytes_ = static_cast<size_t>(scratch);
      if (error != cudaErrorMemoryAllocation) break;
      static_cast<void>(cudaGetLastError());
    }
    if (error == cudaErrorMemoryAllocation) {
      throw sdk::Refusal(
          TANDEM_OUT_OF_MEMORY,
          sdk::text(current_device(), ": measuring a convolution's algorithms needs ",
                    (tensors + least_scratch) >> 20,
                    " MiB beside what is there already: leave out --tune, or use a smaller "
                    "--batch"));
    }
    check(error, "cudaMalloc");
    char* at = static_cast<char*>(memory_);
    for (size_t i = 0; i < parts_.size(); ++i) {
      parts_[i] = at;
      at += i < sizes.size() ? sizes[i] : 0;
    }
    const auto stream = static_cast<cudaStream_t>(call.native_stream);
    check(cudaMemsetAsync(memory_, 0, static_cast<size_t>(tensors), stream), "cudaMemsetAsync");
  }
  ~MeasuringMemory() { static_cast<void>(cudaFree(memory_)); }
  MeasuringMemory(const MeasuringMemory&) = delete;
  MeasuringMemory& operator=(const MeasuringMemory&) = delete;

  [[nodiscard]] void* x() const { return parts_[0]; }
  [[nodiscard]] void* weight() const { return parts_[1]; }
  [[nodiscard]] void* y() const { return parts_[2]; }
  [[nodiscard]] void* scratch() const { return parts_[3]; }
  [[nodiscard]] size_t scratch_bytes() const { return scratch_bytes_; }

 private:
  static int64_t rounded(int64_t bytes) { return (bytes + 255) / 256 * 256; }

  void* memory_ = nullptr;
  std::array<char*, 4> parts_{};
  size_t scratch_bytes_ = 0;
};

// find(answers, how many there may be, &how many there are) is one of cuDNN's cudnnFind...Ex;
// may_use(math) whether an answer's arithmetic may be. `full`: whatever it says, no bit is lost.
template <class Answer, size_t count, class Find, class MayUse>
std::vector<MeasuredAlgorithm> measure_algorithms(const char* query, bool full, const Find& find,
                                                  const MayUse& may_use) {
  constexpr int repeats = 3;
  std::vector<MeasuredAlgorithm> measured;
  for (int i = 0; i < repeats; ++i) {
    std::array<Answer, count> answers{};
    int found = 0;
    const cudnnStatus_t status = find(answers.data(), static_cast<int>(count), &found);
    if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) return measured;
    check(status, query);
    for (size_t a = 0; a < std::min(static_cast<size_t>(found), count); ++a) {
      const Answer& answer = answers[a];
      measured.push_back(
          {{static_cast<int>(answer.algo), full ? ConvolutionMath::full : math_of(answer.mathType)},
           answer.status == CUDNN_STATUS_SUCCESS && may_use(answer.mathType),
           answer.determinism == CUDNN_DETERMINISTIC,
           static_cast<double>(answer.time),
           static_cast<int64_t>(answer.memory)});
    }
  }
  return measured;
}

}  // namespace tandem::cuda::detail
