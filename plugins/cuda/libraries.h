// cuBLAS and cuDNN in kernels: the handles of the stream, and the check of every return code, as
// status.h does for CUDA's. The handles are bound to the call's stream and belong to the backend.
#pragma once

#include <cublas_v2.h>
#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "plugins/cuda/status.h"

namespace tandem::cuda {

// Throws Refusal unless `status` is CUBLAS_STATUS_SUCCESS; also for cuBLASLt.
inline void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw sdk::Refusal(
      status == CUBLAS_STATUS_ALLOC_FAILED ? TANDEM_OUT_OF_MEMORY : TANDEM_FAILED,
      sdk::text(current_device(), ": ", call, ": cuBLAS says: ", cublasGetStatusString(status),
                " (", cublasGetStatusName(status), ")"));
}

// Throws Refusal unless `status` is CUDNN_STATUS_SUCCESS, with cuDNN's last error message.
inline void check(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char last[512] = "";
  cudnnGetLastErrorString(last, sizeof last);
  const std::string more = last[0] == '\0' ? "" : sdk::text("; ", last);
  throw sdk::Refusal(
      CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED ? TANDEM_UNSUPPORTED
                                                                  : TANDEM_FAILED,
      sdk::text(current_device(), ": ", call, ": cuDNN says: ", cudnnGetErrorString(status), more));
}

// Of the current GPU: 8 for compute capability 8.6.
inline int compute_capability_major() {
  int gpu = 0, major = 0;
  check(cudaGetDevice(&gpu), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, gpu),
        "cudaDeviceGetAttribute");
  return major;
}

// Of the current GPU, whether it is free or not.
inline int64_t total_memory_bytes() {
  size_t available = 0, total = 0;
  check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
  return static_cast<int64_t>(total);
}

// Throws Refusal if the current GPU has no arithmetic for this dtype, or for TF32.
inline void require_computable(int32_t dtype, bool tf32) {
  if (dtype != TANDEM_BFLOAT16 && !tf32) return;
  const int major = compute_capability_major();
  if (major >= 8) return;
  throw sdk::unsupported(current_device(), " has compute capability ", major, ".x, but ",
                         tf32 ? "TF32" : "bfloat16",
                         " needs 8.0 (Ampere) or newer: use --precision float16 or float32");
}

// The math mode of the backend's cuBLAS handles.
inline constexpr auto float32_sums = static_cast<cublasMath_t>(
    CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);

// These throw Refusal on a stream without handles. A stream has them if a kernel was prepared on
// it.
inline cublasHandle_t blas_of(const sdk::Call& call) {
  if (call.native_blas == nullptr) throw sdk::failed("this stream has no cuBLAS handle");
  return static_cast<cublasHandle_t>(call.native_blas);
}
inline cudnnHandle_t dnn_of(const sdk::Call& call) {
  if (call.native_dnn == nullptr) throw sdk::failed("this stream has no cuDNN handle");
  return static_cast<cudnnHandle_t>(call.native_dnn);
}

}  // namespace tandem::cuda
