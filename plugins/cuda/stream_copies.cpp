// A stream's copies. CUDA chooses the path between two GPUs: directly if they can access each
// other's memory, else through its own pinned memory.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <limits>

#include "plugins/cuda/stream.h"

namespace tandem::cuda {

namespace {

cudaMemcpyKind kind_of(int32_t target_device, int32_t source_device) {
  const bool to_host = target_device == TANDEM_HOST, from_host = source_device == TANDEM_HOST;
  if (to_host) return from_host ? cudaMemcpyHostToHost : cudaMemcpyDeviceToHost;
  return from_host ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice;
}

}  // namespace

void Stream::require_places(int32_t target_device, const void* target, int32_t source_device,
                            const void* source, int64_t bytes) const {
  if (target_device != TANDEM_HOST) static_cast<void>(machine_.ordinal(target_device));
  if (source_device != TANDEM_HOST) static_cast<void>(machine_.ordinal(source_device));
  if (bytes < 0) throw sdk::invalid("a copy of ", bytes, " bytes");
  if (bytes > 0 && (target == nullptr || source == nullptr)) {
    throw sdk::invalid("a copy of ", bytes, " bytes ", target == nullptr ? "to" : "from", " NULL");
  }
}

void Stream::copy(const char* label, int32_t target_device, void* target, int32_t source_device,
                  const void* source, int64_t bytes) {
  require_places(target_device, target, source_device, source, bytes);
  in_order([=, this] {
    if (machine_.failing().happened()) return;
    machine_.make_current(device_);
    delay();
    if (bytes == 0) return;
    report(issue_copy(target_device, target, source_device, source, bytes), label);
  });
}

void Stream::copy_rows(const char* label, const tandem_rows& rows) {
  if (rows.row_count < 0) throw sdk::invalid("a copy of ", rows.row_count, " rows");
  require_places(rows.target_device, rows.target, rows.source_device, rows.source, rows.row_bytes);
  if (std::min(rows.target_stride, rows.source_stride) < rows.row_bytes) {
    throw sdk::invalid("a copy of rows of ", rows.row_bytes, " bytes that begin ",
                       std::min(rows.target_stride, rows.source_stride),
                       " bytes apart: they would overlap");
  }
  in_order([this, label, rows] {
    if (machine_.failing().happened()) return;
    machine_.make_current(device_);
    delay();
    if (rows.row_count == 0 || rows.row_bytes == 0) return;
    report(issue_rows(rows), label);
  });
}

void Stream::report(const Issued& issued, const char* label) {
  if (issued.error == cudaSuccess) return;
  machine_.fail(issued.error, issued.call, label == nullptr ? "" : label, ordinal_);
}

Stream::Issued Stream::issue_copy(int32_t target_device, void* target, int32_t source_device,
                                  const void* source, int64_t count) const {
  const auto bytes = static_cast<size_t>(count);
  const cudaMemcpyKind kind = kind_of(target_device, source_device);
  if (kind == cudaMemcpyDeviceToDevice) {
    const int32_t to = machine_.ordinal(target_device), from = machine_.ordinal(source_device);
    if (to != from) {
      return {"cudaMemcpyPeerAsync", cudaMemcpyPeerAsync(target, to, source, from, bytes, stream_)};
    }
  }
  return {"cudaMemcpyAsync", cudaMemcpyAsync(target, source, bytes, kind, stream_)};
}

Stream::Issued Stream::issue_rows(const tandem_rows& rows) const {
  // The largest distance of rows that CUDA accepts (memPitch in every GPU's properties).
  constexpr int64_t max_pitch = std::numeric_limits<int32_t>::max();
  if (std::max(rows.target_stride, rows.source_stride) > max_pitch) return issue_each(rows);
  const auto bytes = static_cast<size_t>(rows.row_bytes),
             count = static_cast<size_t>(rows.row_count),
             to_pitch = static_cast<size_t>(rows.target_stride),
             from_pitch = static_cast<size_t>(rows.source_stride);
  const cudaMemcpyKind kind = kind_of(rows.target_device, rows.source_device);
  if (kind == cudaMemcpyDeviceToDevice &&
      machine_.ordinal(rows.target_device) != machine_.ordinal(rows.source_device)) {
    cudaMemcpy3DPeerParms all{};
    all.dstDevice = machine_.ordinal(rows.target_device);
    all.srcDevice = machine_.ordinal(rows.source_device);
    all.dstPtr = {rows.target, to_pitch, bytes, count};
    all.srcPtr = {const_cast<void*>(rows.source), from_pitch, bytes, count};
    all.extent = {bytes, count, 1};
    return {"cudaMemcpy3DPeerAsync", cudaMemcpy3DPeerAsync(&all, stream_)};
  }
  return {"cudaMemcpy2DAsync", cudaMemcpy2DAsync(rows.target, to_pitch, rows.source, from_pitch,
                                                 bytes, count, kind, stream_)};
}

Stream::Issued Stream::issue_each(const tandem_rows& rows) const {
  Issued issued{"", cudaSuccess};
  for (int64_t row = 0; row < rows.row_count && issued.error == cudaSuccess; ++row) {
    issued = issue_copy(
        rows.target_device, static_cast<char*>(rows.target) + row * rows.target_stride,
        rows.source_device, static_cast<const char*>(rows.source) + row * rows.source_stride,
        rows.row_bytes);
  }
  return issued;
}

}  // namespace tandem::cuda
