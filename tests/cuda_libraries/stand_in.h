// Stand-ins for the functions of CUDA, cuDNN and cuBLASLt that choose algorithms: tests set their
// answers and see what they were asked, and which of their objects still exist.
#pragma once

#include <cudnn.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace tandem::cuda::stand_in {

// One of cuDNN's engines, with knobs.
struct Engine {
  int64_t number = 0;
  float milliseconds = 1;
  std::vector<cudnnBackendNumericalNote_t> notes{};
  std::map<int64_t, int64_t> knobs{};  // values by type
  int64_t scratch_bytes = 0;
  bool can_be_prepared = true, runs = true;
  bool is_compiled = false;               // when it is prepared
  std::chrono::milliseconds preparing{};  // takes that long
};

struct Libraries {
  size_t memory_bytes = size_t{1} << 30;  // more cannot be allocated
  size_t total_bytes = size_t{1} << 34;   // of the GPU
  bool memset_fails = false, blas_fails = false;
  // What cuDNN's model and its list of fallbacks propose for every graph. By number and knobs,
  // cuDNN knows all of these.
  std::vector<Engine> by_model, fallbacks;
  bool model_knows_graphs = true, model_knows_fused_graphs = true;
  // The first run of a measured plan takes that much longer.
  float milliseconds_of_loading = 0;

  // The tensors and windows as described to cuDNN, in this order.
  struct Tensor {
    int64_t name;
    cudnnDataType_t dtype;
    std::array<int64_t, 4> extents, strides;
    bool operator==(const Tensor&) const = default;
  };
  struct Window {
    std::array<int64_t, 2> pad, stride, dilation;
    cudnnDataType_t sums;
    bool operator==(const Window&) const = default;
  };
  std::vector<Tensor> tensors;
  std::vector<Window> windows;
  // What the last graph does to the elements of the result.
  std::vector<cudnnPointwiseMode_t> elementwise;
  // The plans that were prepared and those that ran, with the addresses of x, the weights, y and
  // the bias, if the graph has one.
  struct Run {
    int64_t engine;
    cudnnBackendDescriptorType_t operation;
    std::array<void*, 4> operands;
    void* scratch;
    float milliseconds;
  };
  std::vector<int64_t> prepared;
  std::vector<Run> runs;
  int objects = 0;  // descriptors, events and arrays that are not destroyed
};

// Those of the running test.
[[nodiscard]] Libraries& libraries();

}  // namespace tandem::cuda::stand_in
