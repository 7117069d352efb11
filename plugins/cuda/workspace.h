// A stream's own few bytes of device memory for the backend's arithmetic, found through the thread
// that runs a work on the stream.
#pragma once

#include <cuda_runtime_api.h>

#include "plugins/abi.h"

namespace tandem::cuda {

// Sums of a first stage, added by a second one.
constexpr int most_partial_sums = 256;

struct Workspace {
  cudaStream_t stream = nullptr;
  double* partial_sums = nullptr;  // most_partial_sums of them
};

// Names the workspace of the stream whose work this thread runs, while it exists.
class WorkspaceScope {
 public:
  explicit WorkspaceScope(const Workspace& workspace) : before_(current_) { current_ = &workspace; }
  ~WorkspaceScope() { current_ = before_; }
  WorkspaceScope(const WorkspaceScope&) = delete;
  WorkspaceScope& operator=(const WorkspaceScope&) = delete;

  // NULL outside a work, and in a call that is of another stream.
  [[nodiscard]] static const Workspace* of(const tandem_call& call) {
    return current_ != nullptr && current_->stream == call.native_stream ? current_ : nullptr;
  }

 private:
  inline static thread_local const Workspace* current_ = nullptr;
  const Workspace* before_;
};

}  // namespace tandem::cuda
