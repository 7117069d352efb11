#include "core/device/graph.h"

#include <fmt/format.h>

#include <utility>

#include "core/plugin/host.h"

namespace tandem {

namespace {

void require_graphs(const Machine& machine) {
  if (captures_graphs(machine)) return;
  throw error("backend '{}' has no graphs of captured work", machine.kind());
}

}  // namespace

bool captures_graphs(const Machine& machine) {
  const tandem_backend& backend = machine.backend();
  return backend.begin_capture != nullptr && backend.end_capture != nullptr &&
         backend.launch != nullptr && backend.destroy_graph != nullptr;
}

Graph::~Graph() {
  if (graph_ != nullptr) machine_->backend().destroy_graph(graph_);
}

Graph::Graph(Graph&& other) noexcept
    : machine_(other.machine_), graph_(std::exchange(other.graph_, nullptr)) {}

void Stream::begin_capture() const {
  require_graphs(*machine_);
  check(machine_->backend().begin_capture(stream_), "beginning a capture");
}

Graph Stream::end_capture() const {
  require_graphs(*machine_);
  tandem_graph* graph = nullptr;
  check(machine_->backend().end_capture(stream_, &graph), "a capture");
  return {*machine_, graph};
}

void Stream::launch(const char* label, const Graph& graph) const {
  require_graphs(*machine_);
  check(machine_->backend().launch(stream_, label, graph.handle()),
        fmt::format("graph '{}'", label == nullptr ? "" : label));
}

}  // namespace tandem
