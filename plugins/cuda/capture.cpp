#include "plugins/cuda/capture.h"

#include <atomic>
#include <utility>

#include "plugins/cuda/status.h"

namespace tandem::cuda {

namespace {

thread_local std::unique_ptr<Capture> current_capture;

uint64_t next_number() {
  static std::atomic<uint64_t> count{0};
  return ++count;
}

}  // namespace

Capture::Capture(cudaStream_t origin) : number_(next_number()), origin_(origin), streams_{origin} {}

Capture* Capture::current() {
  return current_capture.get();
}

Capture* Capture::of(cudaStream_t stream) {
  Capture* const capture = current();
  return capture != nullptr && capture->streams_.contains(stream) ? capture : nullptr;
}

void Capture::begin(cudaStream_t stream) {
  if (current() != nullptr) throw sdk::invalid("this thread is already capturing");
  // Thread-local: other threads may still allocate and query events.
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  current_capture.reset(new Capture(stream));
}

cudaGraph_t Capture::end(cudaStream_t stream) {
  if (current() == nullptr || current()->origin_ != stream) {
    throw sdk::invalid("this thread has not begun a capture on this stream");
  }
  const std::unique_ptr<Capture> capture = std::move(current_capture);
  cudaGraph_t graph = nullptr;
  const cudaError_t error = cudaStreamEndCapture(stream, &graph);
  const tandem_status status = capture->failure().report();
  if (status == TANDEM_OK && error == cudaSuccess) return graph;
  static_cast<void>(cudaGetLastError());
  if (graph != nullptr) cudaGraphDestroy(graph);
  // After the first failed call of a capture, CUDA only reports that the capture is invalid.
  if (status != TANDEM_OK) throw sdk::Refusal(status, sdk::explained());
  throw sdk::Refusal(status_of(error), text_of(error, "cudaStreamEndCapture", current_device()));
}

Graph::Graph(cudaGraph_t captured, cudaStream_t stream) {
  const cudaError_t error = cudaGraphInstantiate(&executable_, captured, 0);
  cudaGraphDestroy(captured);
  check(error, "cudaGraphInstantiate");
  try {
    check(cudaGraphUpload(executable_, stream), "cudaGraphUpload");
  } catch (const sdk::Refusal&) {
    cudaGraphExecDestroy(executable_);
    throw;
  }
}

Graph::~Graph() {
  cudaGraphExecDestroy(executable_);
  static_cast<void>(cudaGetLastError());
}

}  // namespace tandem::cuda
