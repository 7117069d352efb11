// A capture that a thread has begun: what it issues on the participating streams becomes a graph. A
// failure during the capture is the capture's and not the machine's, so that the caller may
// continue without a graph. A thread has one capture at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <set>

#include "plugins/first_failure.h"

namespace tandem::cuda {

class Capture {
 public:
  // The capture of the calling thread; NULL: there is none.
  [[nodiscard]] static Capture* current();
  // The same, if the stream participates.
  [[nodiscard]] static Capture* of(cudaStream_t stream);

  // Throws Refusal if the thread is already capturing, or if CUDA refuses. `stream` belongs to the
  // current GPU.
  static void begin(cudaStream_t stream);
  // Ends the thread's capture in any case. Throws Refusal with the first failure; INVALID if the
  // thread has not begun a capture on this stream.
  [[nodiscard]] static cudaGraph_t end(cudaStream_t stream);

  // Distinguishes its events from those of other captures; never 0.
  [[nodiscard]] uint64_t number() const { return number_; }
  // The stream participates from now on: it has waited for an event of the capture.
  void join(cudaStream_t stream) { streams_.insert(stream); }
  [[nodiscard]] sdk::FirstFailure& failure() { return failure_; }

 private:
  explicit Capture(cudaStream_t origin);

  uint64_t number_;
  cudaStream_t origin_;
  std::set<cudaStream_t> streams_;
  sdk::FirstFailure failure_;
};

// A graph that can be launched, on the GPU that was current when it was created. CUDA's functions
// for graphs refer to the current GPU.
class Graph {
 public:
  // Takes ownership of `captured`. Throws Refusal. The set-up that the first launch would need is
  // done now, after what was issued on the stream.
  Graph(cudaGraph_t captured, cudaStream_t stream);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  [[nodiscard]] cudaGraphExec_t get() const { return executable_; }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace tandem::cuda
