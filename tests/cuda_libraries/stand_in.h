// Stand-ins for the functions of CUDA, cuDNN and cuBLASLt that choose algorithms: tests set their
// answers and see which of their objects still exist.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <vector>

namespace tandem::cuda::stand_in {

struct Libraries {
  size_t memory_bytes = size_t{1} << 30;  // more cannot be allocated
  bool memset_fails = false, blas_fails = false;
  cudnnStatus_t find_status = CUDNN_STATUS_SUCCESS;
  // The results of measuring a forward pass, and those of cuDNN's model.
  std::vector<cudnnConvolutionFwdAlgoPerf_t> measured, by_model;

  int finds = 0;  // number of measurements
  // The tensors and weights as described to cuDNN, and the requested arithmetic.
  struct Described {
    cudnnTensorFormat_t format;
    cudnnDataType_t dtype;
    bool operator==(const Described&) const = default;
  };
  std::vector<Described> tensors, filters;
  std::vector<cudnnMathType_t> maths;
  int objects = 0;  // descriptors and arrays that are not destroyed
};

// Those of the running test.
[[nodiscard]] Libraries& libraries();

}  // namespace tandem::cuda::stand_in
