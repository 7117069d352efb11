#include "tests/cuda_libraries/stand_in.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

namespace tandem::cuda::stand_in {

Libraries& libraries() {
  static Libraries all;
  return all;
}

namespace {

template <class Object>
void create(Object* object) {
  ++libraries().objects;
  *object = reinterpret_cast<Object>(new char);
}
template <class Object>
void destroy(Object object) {
  if (object == nullptr) return;
  --libraries().objects;
  delete reinterpret_cast<char*>(object);
}

}  // namespace
}  // namespace tandem::cuda::stand_in

using namespace tandem::cuda::stand_in;

extern "C" {

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) {
  return "an error";
}
const char* cudaGetErrorName(cudaError_t) {
  return "cudaErrorOfAStandIn";
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 9;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
  *available = libraries().memory_bytes;
  *total = libraries().total_bytes;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** address, size_t bytes) {
  if (bytes > libraries().memory_bytes) return cudaErrorMemoryAllocation;
  create(address);
  return cudaSuccess;
}
cudaError_t cudaFree(void* address) {
  destroy(address);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void*, int, size_t, cudaStream_t) {
  return libraries().memset_fails ? cudaErrorUnknown : cudaSuccess;
}

// An event keeps how long all runs before it took.
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  ++libraries().objects;
  *event = reinterpret_cast<cudaEvent_t>(new float{0});
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  --libraries().objects;
  delete reinterpret_cast<float*>(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  float& total = *reinterpret_cast<float*>(event);
  total = 0;
  for (const Libraries::Run& run : libraries().runs) total += run.milliseconds;
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = *reinterpret_cast<float*>(end) - *reinterpret_cast<float*>(begin);
  return cudaSuccess;
}

const char* cublasGetStatusString(cublasStatus_t) {
  return "an error";
}
const char* cublasGetStatusName(cublasStatus_t) {
  return "CUBLAS_STATUS_OF_A_STAND_IN";
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* it, cublasComputeType_t,
                                        cudaDataType_t) {
  create(it);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t it) {
  destroy(it);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t,
                                              const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* it, cudaDataType, uint64_t,
                                          uint64_t, int64_t) {
  create(it);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t it) {
  destroy(it);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* it) {
  create(it);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t it) {
  destroy(it);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int,
                                              cublasLtMatmulHeuristicResult_t*, int* found) {
  *found = 0;
  return libraries().blas_fails ? CUBLAS_STATUS_INTERNAL_ERROR : CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
