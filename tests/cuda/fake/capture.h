// A capture of the stand-in. What is issued during it becomes nodes, each with its dependencies. A
// launch runs them in a random order that the dependencies allow, so that a missing dependency is
// detected.
#pragma once

#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "tests/cuda/fake/stream.h"

namespace tandem::fake {

class Graph {
 public:
  // Returns the new node.
  size_t add(std::function<void()> body, std::vector<size_t> after);
  // The nodes and all their ancestors.
  [[nodiscard]] std::vector<bool> with_ancestors(const std::vector<size_t>& nodes) const;
  // The order is a function of the seed.
  void run(int seed) const;

 private:
  struct Node {
    std::function<void()> body;
    std::vector<size_t> after;
  };
  std::vector<Node> nodes_;
};

class Capture : public std::enable_shared_from_this<Capture> {
 public:
  // All of these return CUDA's errors as its documentation describes them.
  static cudaError_t begin(Stream& origin);
  cudaError_t end(const Stream& stream);
  cudaError_t issue(Stream& stream, std::function<void()> body);
  // The stream waits for an event of this capture and participates from then on.
  cudaError_t wait(Stream& stream, const Record& record);
  cudaError_t invalidate(cudaError_t reason);
  [[nodiscard]] cudaError_t error() const { return error_; }

  void record(Stream& stream, Record& record);
  [[nodiscard]] const Graph& graph() const { return graph_; }
  // The capture of the calling thread; null: none.
  [[nodiscard]] static std::shared_ptr<Capture> current();

 private:
  explicit Capture(Stream& origin);

  Stream* const origin_;
  const std::thread::id thread_ = std::this_thread::get_id();
  Graph graph_;
  std::map<Stream*, std::vector<size_t>> last_;  // the last nodes of each participating stream
  bool has_ended_ = false;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace tandem::fake
