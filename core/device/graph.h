// Works and copies that were captured from streams, issued again as one by Stream::launch. Freed
// with it; it goes before its machine, and after its last launch is done.
#pragma once

#include "core/device/machine.h"

namespace tandem {

class Graph {
 public:
  ~Graph();
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&&) = delete;

  [[nodiscard]] tandem_graph* handle() const { return graph_; }

 private:
  friend class Stream;
  Graph(const Machine& machine, tandem_graph* graph) : machine_(&machine), graph_(graph) {}

  const Machine* machine_ = nullptr;
  tandem_graph* graph_ = nullptr;
};

// Whether the machine's backend can capture at all.
[[nodiscard]] bool captures_graphs(const Machine& machine);

}  // namespace tandem
