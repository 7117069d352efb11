// The copies of the stand-in, and the host's pinned memory. A copy from or to other host memory is
// done when the call returns. TANDEM_FAKE_FAILS: the call that fails from now on.
#include <atomic>
#include <cstring>
#include <map>
#include <string>

#include "tests/cuda/fake/stream.h"

namespace {

using tandem::fake::gpu_count;
using tandem::fake::recorded;
using tandem::fake::refused_in_capture;
using tandem::fake::Stream;

std::mutex pinned_mutex;
std::map<const char*, size_t> pinned;
bool is_pinned(const void* address, size_t bytes) {
  const auto* begin = static_cast<const char*>(address);
  const std::lock_guard lock(pinned_mutex);
  auto found = pinned.upper_bound(begin);
  if (found == pinned.begin()) return false;
  --found;
  return begin + bytes <= found->first + found->second;
}

std::atomic<int> copies{0};

bool fails(const char* call) {
  const char* failing = std::getenv("TANDEM_FAKE_FAILS");
  return failing != nullptr && std::string(failing) == call;
}

// Rows of equal length. `*_bytes` is the distance from the first to the last byte of each side.
struct Rows {
  char* target;
  size_t target_pitch;
  const char* source;
  size_t source_pitch, bytes, count;

  [[nodiscard]] size_t target_bytes() const { return (count - 1) * target_pitch + bytes; }
  [[nodiscard]] size_t source_bytes() const { return (count - 1) * source_pitch + bytes; }
  void copy() const {
    for (size_t row = 0; row < count; ++row) {
      std::memcpy(target + row * target_pitch, source + row * source_pitch, bytes);
    }
  }
};

cudaError_t issue_rows(const char* call, const Rows& rows, cudaStream_t stream) {
  if (fails(call)) return recorded(cudaErrorUnknown);
  constexpr size_t max_pitch = 2147483647;
  for (const size_t pitch : {rows.target_pitch, rows.source_pitch}) {
    const bool is_one_row = rows.count <= 1;
    if (!is_one_row && (pitch < rows.bytes || pitch > max_pitch)) {
      return recorded(cudaErrorInvalidPitchValue);
    }
  }
  ++copies;
  if (rows.count == 0 || rows.bytes == 0) return cudaSuccess;
  return recorded(Stream::of(stream).issue([rows] { rows.copy(); }));
}

cudaError_t issue(const char* call, const Rows& rows, cudaMemcpyKind kind, cudaStream_t stream) {
  const bool is_over_at_once =
      (kind == cudaMemcpyHostToDevice && !is_pinned(rows.source, rows.source_bytes())) ||
      (kind == cudaMemcpyDeviceToHost && !is_pinned(rows.target, rows.target_bytes())) ||
      kind == cudaMemcpyHostToHost;
  if (is_over_at_once && refused_in_capture()) return recorded(cudaErrorStreamCaptureUnsupported);
  const cudaError_t error = issue_rows(call, rows, stream);
  if (is_over_at_once) Stream::of(stream).synchronize();
  return error;
}

Rows one_row(void* target, const void* source, size_t bytes) {
  return {static_cast<char*>(target), bytes, static_cast<const char*>(source), bytes, bytes, 1};
}

}  // namespace

extern "C" {

cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned) {
  if (refused_in_capture()) return recorded(cudaErrorStreamCaptureUnsupported);
  constexpr size_t page = 4096;
  *address = std::aligned_alloc(page, (bytes + page - 1) / page * page);
  const std::lock_guard lock(pinned_mutex);
  pinned[static_cast<const char*>(*address)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* address) {
  if (refused_in_capture()) return recorded(cudaErrorStreamCaptureUnsupported);
  {
    const std::lock_guard lock(pinned_mutex);
    pinned.erase(static_cast<const char*>(address));
  }
  std::free(address);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return issue("cudaMemcpyAsync", one_row(target, source, bytes), kind, stream);
}
cudaError_t cudaMemcpyPeerAsync(void* target, int, const void* source, int, size_t bytes,
                                cudaStream_t stream) {
  return issue_rows("cudaMemcpyPeerAsync", one_row(target, source, bytes), stream);
}
cudaError_t cudaMemcpy2DAsync(void* target, size_t target_pitch, const void* source,
                              size_t source_pitch, size_t bytes, size_t count, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return issue("cudaMemcpy2DAsync",
               {static_cast<char*>(target), target_pitch, static_cast<const char*>(source),
                source_pitch, bytes, count},
               kind, stream);
}
cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* all, cudaStream_t stream) {
  const bool is_there = all->srcDevice < gpu_count() && all->dstDevice < gpu_count();
  if (!is_there) return recorded(cudaErrorInvalidDevice);
  if (all->extent.depth != 1) return recorded(cudaErrorInvalidValue);
  return issue_rows("cudaMemcpy3DPeerAsync",
                    {static_cast<char*>(all->dstPtr.ptr), all->dstPtr.pitch,
                     static_cast<const char*>(all->srcPtr.ptr), all->srcPtr.pitch,
                     all->extent.width, all->extent.height},
                    stream);
}
// For tests, which find it by name: the number of copying calls.
int tandem_fake_copies() {
  return copies;
}

}  // extern "C"
