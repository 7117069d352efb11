// The small device memory that a stream has for the backend's arithmetic. It is found through the
// thread that runs a work on the stream.
#pragma once

#include <cuda_runtime_api.h>

#include "plugins/abi.h"

namespace tandem::cuda {

// The sums of the first stage, which the second stage adds.
constexpr int max_partial_sums = 256;

struct Workspace {
  cudaStream_t stream = nullptr;
  double* partial_sums = nullptr;  // max_partial_sums of them
};

// Sets the workspace for the works that this thread runs, while it exists.
class WorkspaceScope {
 public:
  explicit WorkspaceScope(const Workspace& workspace) : before_(current_) { current_ = &workspace; }
  ~WorkspaceScope() { current_ = before_; }
  WorkspaceScope(const WorkspaceScope&) = delete;
  WorkspaceScope& operator=(const WorkspaceScope&) = delete;

  // NULL outside a work, and for a call of another stream.
  [[nodiscard]] static const Workspace* of(const tandem_call& call) {
    return current_ != nullptr && current_->stream == call.native_stream ? current_ : nullptr;
  }

 private:
  inline static thread_local const Workspace* current_ = nullptr;
  const Workspace* before_;
};

}  // namespace tandem::cuda
