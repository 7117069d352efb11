#include "tests/cuda/fake/capture.h"

#include <algorithm>
#include <random>

namespace tandem::fake {

thread_local cudaError_t last_error = cudaSuccess;
thread_local int current_device = 0;

namespace {

thread_local std::weak_ptr<Capture> current_capture;

}  // namespace

bool refused_in_capture() {
  const std::shared_ptr<Capture> capture = Capture::current();
  if (capture == nullptr) return false;
  static_cast<void>(capture->invalidate(cudaErrorStreamCaptureUnsupported));
  return true;
}

cudaError_t Stream::issue(std::function<void()> body) {
  if (capture_ != nullptr) return capture_->issue(*this, std::move(body));
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(body));
  condition_.notify_all();
  return cudaSuccess;
}

size_t Graph::add(std::function<void()> body, std::vector<size_t> after) {
  nodes_.push_back({std::move(body), std::move(after)});
  return nodes_.size() - 1;
}

std::vector<bool> Graph::with_ancestors(const std::vector<size_t>& nodes) const {
  std::vector<bool> result(nodes_.size());
  for (const size_t node : nodes) result[node] = true;
  for (size_t node = nodes_.size(); node-- > 0;) {
    if (!result[node]) continue;
    for (const size_t before : nodes_[node].after) result[before] = true;
  }
  return result;
}

void Graph::run(int seed) const {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::vector<size_t> missing(nodes_.size()), ready;
  std::vector<std::vector<size_t>> dependents(nodes_.size());
  for (size_t node = 0; node < nodes_.size(); ++node) {
    missing[node] = nodes_[node].after.size();
    for (const size_t before : nodes_[node].after) dependents[before].push_back(node);
    if (missing[node] == 0) ready.push_back(node);
  }
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    const size_t node = ready.back();
    ready.pop_back();
    nodes_[node].body();
    for (const size_t next : dependents[node]) {
      if (--missing[next] == 0) ready.push_back(next);
    }
  }
}

Capture::Capture(Stream& origin) : origin_(&origin), last_{{&origin, {}}} {}

std::shared_ptr<Capture> Capture::current() {
  return current_capture.lock();
}

cudaError_t Capture::begin(Stream& origin) {
  if (origin.capture() != nullptr) return cudaErrorIllegalState;
  const std::shared_ptr<Capture> capture(new Capture(origin));
  origin.set_capture(capture);
  current_capture = capture;
  return cudaSuccess;
}

cudaError_t Capture::end(const Stream& stream) {
  if (&stream != origin_) return invalidate(cudaErrorStreamCaptureUnmatched);
  if (std::this_thread::get_id() != thread_) return cudaErrorStreamCaptureWrongThread;
  const std::vector<bool> is_joined = graph_.with_ancestors(last_[origin_]);
  const bool is_forked = std::find(is_joined.begin(), is_joined.end(), false) != is_joined.end();
  has_ended_ = true;
  current_capture.reset();
  for (const auto& [member, nodes] : last_) member->set_capture(nullptr);
  if (error_ != cudaSuccess) return cudaErrorStreamCaptureInvalidated;
  return is_forked ? cudaErrorStreamCaptureUnjoined : cudaSuccess;
}

cudaError_t Capture::issue(Stream& stream, std::function<void()> body) {
  if (error_ != cudaSuccess) return cudaErrorStreamCaptureInvalidated;
  std::vector<size_t>& last = last_.at(&stream);
  last = {graph_.add(std::move(body), last)};
  return cudaSuccess;
}

void Capture::record(Stream& stream, Record& record) {
  record.capture = shared_from_this();
  record.nodes = last_.at(&stream);
}

cudaError_t Capture::wait(Stream& stream, const Record& record) {
  if (has_ended_) return cudaErrorCapturedEvent;
  if (error_ != cudaSuccess) return cudaErrorStreamCaptureInvalidated;
  if (stream.capture() != nullptr && stream.capture().get() != this) {
    return invalidate(cudaErrorStreamCaptureMerge);
  }
  stream.set_capture(shared_from_this());
  std::vector<size_t>& last = last_[&stream];
  for (const size_t node : record.nodes) {
    if (std::find(last.begin(), last.end(), node) == last.end()) last.push_back(node);
  }
  return cudaSuccess;
}

cudaError_t Capture::invalidate(cudaError_t reason) {
  if (error_ == cudaSuccess) error_ = reason;
  return reason;
}

}  // namespace tandem::fake
