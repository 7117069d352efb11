// Streams, events and captured graphs of the stand-in.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "tests/cuda/fake/capture.h"

namespace {

using tandem::fake::Capture;
using tandem::fake::current_device;
using tandem::fake::Event;
using tandem::fake::Graph;
using tandem::fake::Record;
using tandem::fake::recorded;
using tandem::fake::refused_in_capture;
using tandem::fake::Stream;

std::atomic<int> launches{0};

double milliseconds() {
  using Clock = std::chrono::steady_clock;
  static const Clock::time_point begin = Clock::now();
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int priority) {
  if (priority > 0 || priority < -5) return recorded(cudaErrorInvalidValue);
  *stream = reinterpret_cast<cudaStream_t>(new Stream(current_device));
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete &Stream::of(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (refused_in_capture()) return recorded(cudaErrorStreamCaptureUnsupported);
  Stream::of(stream).synchronize();
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (refused_in_capture()) return recorded(cudaErrorStreamCaptureUnsupported);
  return recorded(Stream::of(stream).is_idle() ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  Stream& stream = Stream::of(handle);
  const auto record = Event::of(event).latest();
  if (record == nullptr) return cudaSuccess;
  if (record->capture != nullptr) return recorded(record->capture->wait(stream, *record));
  if (stream.capture() != nullptr) {
    return recorded(stream.capture()->invalidate(cudaErrorStreamCaptureIsolation));
  }
  return recorded(stream.issue([record] { record->wait(); }));
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = reinterpret_cast<cudaEvent_t>(new Event(current_device));
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &Event::of(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream) {
  Event& event = Event::of(handle);
  if (event.device != Stream::of(stream).device()) return recorded(cudaErrorInvalidResourceHandle);
  auto record = std::make_shared<Record>();
  if (const auto& capture = Stream::of(stream).capture()) {
    if (capture->error() != cudaSuccess) return recorded(cudaErrorStreamCaptureInvalidated);
    capture->record(Stream::of(stream), *record);
  }
  {
    const std::lock_guard lock(event.mutex);
    event.record = record;
  }
  if (record->capture != nullptr) return cudaSuccess;
  return recorded(Stream::of(stream).issue([record] {
    const std::lock_guard lock(record->mutex);
    record->is_reached = true;
    record->milliseconds = milliseconds();
    record->condition.notify_all();
  }));
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const auto record = Event::of(event).latest();
  if (record != nullptr && record->capture != nullptr) return recorded(cudaErrorCapturedEvent);
  if (refused_in_capture()) return recorded(cudaErrorStreamCaptureUnsupported);
  if (record == nullptr) return cudaSuccess;
  const std::lock_guard lock(record->mutex);
  return recorded(record->is_reached ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t cudaEventElapsedTime(float* elapsed, cudaEvent_t begin, cudaEvent_t end) {
  if (Event::of(begin).device != Event::of(end).device)
    return recorded(cudaErrorInvalidResourceHandle);
  if (cudaEventQuery(begin) != cudaSuccess || cudaEventQuery(end) != cudaSuccess) {
    return recorded(cudaErrorNotReady);
  }
  const auto first = Event::of(begin).latest(), last = Event::of(end).latest();
  if (first == nullptr || last == nullptr) return recorded(cudaErrorInvalidResourceHandle);
  *elapsed = static_cast<float>(last->milliseconds - first->milliseconds);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (mode != cudaStreamCaptureModeThreadLocal) tandem::fake::give_up("captures are thread-local");
  return recorded(Capture::begin(Stream::of(stream)));
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = Stream::of(stream).capture();
  if (capture == nullptr) return recorded(cudaErrorIllegalState);
  const cudaError_t error = capture->end(Stream::of(stream));
  if (error != cudaSuccess) return recorded(error);
  *graph = reinterpret_cast<cudaGraph_t>(new Graph(capture->graph()));
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = Stream::of(stream).capture() == nullptr ? cudaStreamCaptureStatusNone
                                                    : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable = reinterpret_cast<cudaGraphExec_t>(new Graph(*reinterpret_cast<Graph*>(graph)));
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t stream) {
  return recorded(Stream::of(stream).issue([] {}));
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const Graph& graph = *reinterpret_cast<Graph*>(executable);
  const int number = launches++;
  return recorded(Stream::of(stream).issue([&graph, number] { graph.run(number); }));
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<Graph*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete reinterpret_cast<Graph*>(executable);
  return cudaSuccess;
}
// For tests, which find it by name.
int tandem_fake_graph_launches() {
  return launches;
}

}  // extern "C"
