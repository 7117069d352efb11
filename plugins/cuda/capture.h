// A capture that a thread has begun: what it issues on the streams that take part becomes a graph.
// What fails meanwhile is the capture's failure and not the machine's, so that the caller may go on
// without a graph. One thread has one capture at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <set>

#include "plugins/first_failure.h"

namespace tandem::cuda {

class Capture {
 public:
  // Of the calling thread; NULL: it captures nothing.
  [[nodiscard]] static Capture* current();
  // The same, if the stream takes part.
  [[nodiscard]] static Capture* of(cudaStream_t stream);

  // Throws Refusal if the thread captures already, or if CUDA refuses. `stream` is of the current
  // GPU.
  static void begin(cudaStream_t stream);
  // Whatever comes of it, the thread captures nothing any more. Throws Refusal with what failed
  // first; INVALID if the thread has begun no capture on this stream.
  [[nodiscard]] static cudaGraph_t end(cudaStream_t stream);

  // Tells its events from those of other captures; never 0.
  [[nodiscard]] uint64_t number() const { return number_; }
  // From now on the stream takes part: it has waited for an event of the capture.
  void join(cudaStream_t stream) { streams_.insert(stream); }
  [[nodiscard]] sdk::FirstFailure& failure() { return failure_; }

 private:
  explicit Capture(cudaStream_t origin);

  uint64_t number_;
  cudaStream_t origin_;
  std::set<cudaStream_t> streams_;
  sdk::FirstFailure failure_;
};

// A graph that can be launched, on the GPU that was current when it was made. CUDA's functions for
// graphs are those of the current GPU.
class Graph {
 public:
  // Takes `captured` over. Throws Refusal. What the first launch would have to set up is done now,
  // behind what is on the stream.
  Graph(cudaGraph_t captured, cudaStream_t stream);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  [[nodiscard]] cudaGraphExec_t get() const { return executable_; }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace tandem::cuda
