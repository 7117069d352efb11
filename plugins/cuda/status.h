// Checks every return code of the CUDA runtime: an error becomes a Refusal that names the call, the
// device and CUDA's message. For backend and layers; header-only.
//   check(cudaMemcpyAsync(...), "cudaMemcpyAsync");
//   relu<<<blocks, threads, 0, stream_of(call)>>>(...);
//   check_launch("relu");
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "plugins/sdk.h"

namespace tandem::cuda {

// "cuda:0", the current device of the calling thread; "cuda" if there is none.
inline std::string current_device() {
  int ordinal = 0;
  if (cudaGetDevice(&ordinal) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return "cuda";
  }
  return sdk::text("cuda:", ordinal);
}

// "cuda:0: cudaMalloc: out of memory (cudaErrorMemoryAllocation)"; `device` as current_device().
inline std::string text_of(cudaError_t error, const char* call, const std::string& device) {
  return sdk::text(device, ": ", call, ": ", cudaGetErrorString(error), " (",
                   cudaGetErrorName(error), ")");
}

inline tandem_status status_of(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? TANDEM_OUT_OF_MEMORY : TANDEM_FAILED;
}

// Throws Refusal unless `error` is cudaSuccess. `call` is the function's name.
inline void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // otherwise it would be reported for the next launch
  throw sdk::Refusal(status_of(error), text_of(error, call, current_device()));
}

// To be called after every <<< >>>: a launch itself returns nothing.
inline void check_launch(const char* kernel) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return;
  throw sdk::Refusal(status_of(error),
                     text_of(error, sdk::text("launch of ", kernel).c_str(), current_device()));
}

inline cudaStream_t stream_of(const sdk::Call& call) {
  return static_cast<cudaStream_t>(call.native_stream);
}

}  // namespace tandem::cuda
