// Stand-ins for what of CUDA, cuDNN and cuBLASLt chooses algorithms: tests say what they answer,
// and see what of theirs is left.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <vector>

namespace tandem::cuda::stand_in {

struct Libraries {
  size_t memory_bytes = size_t{1} << 30;  // more cannot be had
  bool memset_fails = false, blas_fails = false;
  cudnnStatus_t find_status = CUDNN_STATUS_SUCCESS;
  // What measuring a forward pass finds, and what cuDNN's model says of it.
  std::vector<cudnnConvolutionFwdAlgoPerf_t> measured, by_model;

  int finds = 0;  // times that it was measured
  // Of tensors and weights as cuDNN was told of them; what arithmetic it was asked for.
  struct Described {
    cudnnTensorFormat_t format;
    cudnnDataType_t dtype;
    bool operator==(const Described&) const = default;
  };
  std::vector<Described> tensors, filters;
  std::vector<cudnnMathType_t> maths;
  int objects = 0;  // descriptors and arrays that are not destroyed
};

// Of the test that runs.
[[nodiscard]] Libraries& libraries();

}  // namespace tandem::cuda::stand_in
