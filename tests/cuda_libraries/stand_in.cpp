#include "tests/cuda_libraries/stand_in.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <algorithm>

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

cudnnStatus_t answer(const std::vector<cudnnConvolutionFwdAlgoPerf_t>& all, int room, int* found,
                     cudnnConvolutionFwdAlgoPerf_t* answers) {
  *found = std::min(room, static_cast<int>(all.size()));
  std::copy_n(all.begin(), *found, answers);
  return CUDNN_STATUS_SUCCESS;
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

const char* cudnnGetErrorString(cudnnStatus_t) {
  return "an error";
}
void cudnnGetLastErrorString(char* text, size_t) {
  text[0] = '\0';
}
size_t cudnnGetVersion() {
  return 9;
}
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* it) {
  create(it);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t it) {
  destroy(it);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* it) {
  create(it);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t it) {
  destroy(it);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* it) {
  create(it);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t it) {
  destroy(it);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t, cudnnTensorFormat_t format,
                                         cudnnDataType_t dtype, int, int, int, int) {
  libraries().tensors.push_back({format, dtype});
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t, cudnnDataType_t dtype,
                                         cudnnTensorFormat_t format, int, int, int, int) {
  libraries().filters.push_back({format, dtype});
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t, int, int, int, int, int,
                                              int, cudnnConvolutionMode_t, cudnnDataType_t) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t, int) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t, cudnnMathType_t math) {
  libraries().maths.push_back(math);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t, const cudnnTensorDescriptor_t, const void*, const cudnnFilterDescriptor_t,
    const void*, const cudnnConvolutionDescriptor_t, const cudnnTensorDescriptor_t, void*,
    const int room, int* found, cudnnConvolutionFwdAlgoPerf_t* answers, void*, size_t) {
  ++libraries().finds;
  if (libraries().find_status != CUDNN_STATUS_SUCCESS) return libraries().find_status;
  return answer(libraries().measured, room, found, answers);
}
cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t,
                                                     const cudnnFilterDescriptor_t,
                                                     const cudnnConvolutionDescriptor_t,
                                                     const cudnnTensorDescriptor_t, const int room,
                                                     int* found,
                                                     cudnnConvolutionFwdAlgoPerf_t* answers) {
  return answer(libraries().by_model, room, found, answers);
}
cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, const cudnnTensorDescriptor_t,
                                                      const cudnnFilterDescriptor_t,
                                                      const cudnnConvolutionDescriptor_t,
                                                      const cudnnTensorDescriptor_t,
                                                      cudnnConvolutionFwdAlgo_t, size_t* bytes) {
  *bytes = 0;
  return CUDNN_STATUS_SUCCESS;
}
// The backward passes, which no test measures.
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t, const cudnnFilterDescriptor_t, const void*, const cudnnTensorDescriptor_t,
    const void*, const cudnnConvolutionDescriptor_t, const cudnnTensorDescriptor_t, void*,
    const int, int*, cudnnConvolutionBwdDataAlgoPerf_t*, void*, size_t) {
  return CUDNN_STATUS_NOT_SUPPORTED;
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t, const cudnnFilterDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnConvolutionDescriptor_t, const cudnnTensorDescriptor_t, const int, int*,
    cudnnConvolutionBwdDataAlgoPerf_t*) {
  return CUDNN_STATUS_NOT_SUPPORTED;
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t,
                                                           const cudnnFilterDescriptor_t,
                                                           const cudnnTensorDescriptor_t,
                                                           const cudnnConvolutionDescriptor_t,
                                                           const cudnnTensorDescriptor_t,
                                                           cudnnConvolutionBwdDataAlgo_t, size_t*) {
  return CUDNN_STATUS_NOT_SUPPORTED;
}
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t, const cudnnTensorDescriptor_t, const void*, const cudnnTensorDescriptor_t,
    const void*, const cudnnConvolutionDescriptor_t, const cudnnFilterDescriptor_t, void*,
    const int, int*, cudnnConvolutionBwdFilterAlgoPerf_t*, void*, size_t) {
  return CUDNN_STATUS_NOT_SUPPORTED;
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnConvolutionDescriptor_t, const cudnnFilterDescriptor_t, const int, int*,
    cudnnConvolutionBwdFilterAlgoPerf_t*) {
  return CUDNN_STATUS_NOT_SUPPORTED;
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnConvolutionDescriptor_t, const cudnnFilterDescriptor_t,
    cudnnConvolutionBwdFilterAlgo_t, size_t*) {
  return CUDNN_STATUS_NOT_SUPPORTED;
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
