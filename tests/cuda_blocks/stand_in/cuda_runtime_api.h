// The few functions and types of CUDA's run-time library that the translated sources use. "Device
// memory" is that of the host, and everything is done when a call returns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation };
enum cudaMemcpyKind { cudaMemcpyDeviceToDevice };
using cudaStream_t = void*;

struct uchar4 {
  unsigned char x, y, z, w;
};
struct float4 {
  float x, y, z, w;
};

inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
inline cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
inline const char* cudaGetErrorString(cudaError_t) {
  return "";
}
inline const char* cudaGetErrorName(cudaError_t) {
  return "";
}
inline cudaError_t cudaMemsetAsync(void* target, int value, size_t bytes, cudaStream_t) {
  std::memset(target, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind,
                                   cudaStream_t) {
  std::memcpy(target, source, bytes);
  return cudaSuccess;
}
