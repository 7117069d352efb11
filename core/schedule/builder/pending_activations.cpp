#include "core/schedule/builder/pending_activations.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace tandem {

namespace {

Error wrong(const Plan& plan, const Task& task, const std::string& what) {
  return error("strategy '{}': '{}' {}", plan.strategy, task.label, what);
}

bool is_some(const Region& region) {
  return region.buffer >= 0;
}

}  // namespace

PendingActivations::Pieces PendingActivations::pieces_in(const Plan& plan,
                                                         const Region& region) const {
  Pieces result;
  const auto found = pieces_.find(region.buffer);
  if (found == pieces_.end()) return result;
  const int64_t end = region.offset + plan.bytes(region);
  for (const Piece& piece : found->second) {
    const Piece both{std::max(piece.begin, region.offset), std::min(piece.end, end), piece.layer};
    if (both.begin < both.end) result.push_back(both);
  }
  return result;
}

bool PendingActivations::has(const Plan& plan, const Region& region) const {
  return !pieces_in(plan, region).empty();
}

// No two pieces overlap.
bool PendingActivations::lacks_all(const Plan& plan, const Region& region, int layer) const {
  int64_t bytes = 0;
  for (const Piece& piece : pieces_in(plan, region)) {
    if (piece.layer == layer) bytes += piece.end - piece.begin;
  }
  return bytes == plan.bytes(region);
}

void PendingActivations::clear(const Plan& plan, const Region& region) {
  const auto found = pieces_.find(region.buffer);
  if (found == pieces_.end()) return;
  const int64_t begin = region.offset, end = begin + plan.bytes(region);
  Pieces left;
  for (const Piece& piece : found->second) {
    const Piece before{piece.begin, std::min(piece.end, begin), piece.layer};
    const Piece behind{std::max(piece.begin, end), piece.end, piece.layer};
    for (const Piece& part : {before, behind}) {
      if (part.begin < part.end) left.push_back(part);
    }
  }
  found->second = std::move(left);
  if (found->second.empty()) pieces_.erase(found);
}

void PendingActivations::add(const Plan& plan, const Region& region, int layer) {
  clear(plan, region);
  pieces_[region.buffer].push_back({region.offset, region.offset + plan.bytes(region), layer});
}

void PendingActivations::require_done(const Net& net, const Plan& plan, const Task& task,
                                      const Region& region) const {
  const Pieces pieces = pieces_in(plan, region);
  if (pieces.empty()) return;
  const Layer& missing = net.layers[size_t(pieces.front().layer)];
  throw wrong(plan, task,
              fmt::format("reads what {} has not been done to: {} did not do it along here, and no "
                          "task does it",
                          missing.title(), net.layers[size_t(missing.fused_into)].title()));
}

void PendingActivations::follow_forward(const Net& net, const Plan& plan, const Task& task,
                                        const LayerWork& work) {
  const PlanBinding& use = plan.bindings[size_t(work.binding)];
  const Layer& layer = net.layers[size_t(use.layer)];
  if (layer.fused_into >= 0) {
    if (!lacks_all(plan, use.inputs[0], use.layer)) {
      throw wrong(plan, task,
                  fmt::format("would do {} a second time: {} has done it along", layer.title(),
                              net.layers[size_t(layer.fused_into)].title()));
    }
    return clear(plan, use.outputs[0]);
  }
  for (const Region& input : use.inputs) {
    if (is_some(input)) require_done(net, plan, task, input);
  }
  const int follower = net.fused_layer(use.layer);
  if (use.activation != TANDEM_ACTIVATION_NONE && use.adds_to_output) {
    throw wrong(plan, task, "adds to its output and would do an activation along with each part");
  }
  if (use.adds_to_output && follower >= 0 && !lacks_all(plan, use.outputs[0], follower)) {
    throw wrong(
        plan, task,
        fmt::format("adds to what {} has been done to", net.layers[size_t(follower)].title()));
  }
  for (const Region& output : use.outputs) {
    if (is_some(output)) clear(plan, output);
  }
  if (follower >= 0 && use.activation == TANDEM_ACTIVATION_NONE) {
    add(plan, use.outputs[0], follower);
  }
}

void PendingActivations::follow_copy(const Net& net, const Plan& plan, const Task& task,
                                     const CopyWork& copy) {
  for (const CopySegment& segment : copy.segments) {
    const Pieces pieces = pieces_in(plan, segment.source);
    if (!pieces.empty() && plan.buffers[size_t(segment.target.buffer)].device < 0) {
      require_done(net, plan, task, segment.source);
    }
    clear(plan, segment.target);
    for (const Piece& piece : pieces) {
      const int64_t begin = segment.target.offset + piece.begin - segment.source.offset;
      add(plan, {segment.target.buffer, begin, piece.end - piece.begin}, piece.layer);
    }
  }
}

void PendingActivations::follow(const Net& net, const Plan& plan, const Task& task) {
  const auto* work = std::get_if<LayerWork>(&task.work);
  if (work != nullptr && work->pass == LayerPass::forward) {
    return follow_forward(net, plan, task, *work);
  }
  if (pieces_.empty()) return;
  if (const auto* copy = std::get_if<CopyWork>(&task.work)) {
    return follow_copy(net, plan, task, *copy);
  }
  for (const Region& region : task.reads) require_done(net, plan, task, region);
}

}  // namespace tandem
