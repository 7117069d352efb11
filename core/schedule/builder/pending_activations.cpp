#include "core/schedule/builder/pending_activations.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/overloaded.h"

namespace tandem {
namespace {

Error wrong(const Plan& plan, const Task& task, const std::string& what) {
  return error("strategy '{}': '{}' {}", plan.strategy, task.label, what);
}

bool is_some(const Region& region) {
  return region.buffer >= 0;
}

}  // namespace

std::vector<PendingActivations::Pending> PendingActivations::pending_in(
    const Plan& plan, const Region& region) const {
  std::vector<Pending> result;
  const auto found = pending_.find(region.buffer);
  if (found == pending_.end()) return result;
  const Interval wanted{region.offset, region.offset + plan.bytes(region)};
  for (const Pending& pending : found->second) {
    const Interval both = intersection(pending.bytes, wanted);
    if (!both.is_empty()) result.push_back({both, pending.layer});
  }
  return result;
}

bool PendingActivations::has(const Plan& plan, const Region& region) const {
  return !pending_in(plan, region).empty();
}

// No two intervals of a buffer overlap.
bool PendingActivations::lacks_all(const Plan& plan, const Region& region, int layer) const {
  int64_t bytes = 0;
  for (const Pending& pending : pending_in(plan, region)) {
    if (pending.layer == layer) bytes += pending.bytes.count();
  }
  return bytes == plan.bytes(region);
}

void PendingActivations::clear(const Plan& plan, const Region& region) {
  const auto found = pending_.find(region.buffer);
  if (found == pending_.end()) return;
  const int64_t begin = region.offset, end = begin + plan.bytes(region);
  std::vector<Pending> left;
  for (const Pending& pending : found->second) {
    const Interval before{pending.bytes.begin, std::min(pending.bytes.end, begin)};
    const Interval after{std::max(pending.bytes.begin, end), pending.bytes.end};
    for (const Interval& bytes : {before, after}) {
      if (!bytes.is_empty()) left.push_back({bytes, pending.layer});
    }
  }
  found->second = std::move(left);
  if (found->second.empty()) pending_.erase(found);
}

void PendingActivations::add(const Plan& plan, const Region& region, int layer) {
  clear(plan, region);
  pending_[region.buffer].push_back({{region.offset, region.offset + plan.bytes(region)}, layer});
}

void PendingActivations::require_done(const Net& net, const Plan& plan, const Task& task,
                                      const Region& region) const {
  const std::vector<Pending> pending = pending_in(plan, region);
  if (pending.empty()) return;
  const Layer& missing = net.layer(pending.front().layer);
  throw wrong(plan, task,
              fmt::format("reads memory to which {} was not applied: it is not fused into {} here, "
                          "and no task applies it",
                          missing.title(), net.layer(missing.fused_into).title()));
}

void PendingActivations::follow_forward(const Net& net, const Plan& plan, const Task& task,
                                        const LayerWork& work) {
  const PlanBinding& use = plan.binding(work.binding);
  const Layer& layer = net.layer(use.layer);
  if (layer.fused_into >= 0) {
    if (!lacks_all(plan, use.inputs[0], use.layer)) {
      throw wrong(plan, task,
                  fmt::format("would apply {} a second time: it was fused into {}", layer.title(),
                              net.layer(layer.fused_into).title()));
    }
    return clear(plan, use.outputs[0]);
  }
  for (const Region& input : use.inputs) {
    if (is_some(input)) require_done(net, plan, task, input);
  }
  if (is_some(use.addend)) require_done(net, plan, task, use.addend);
  if (layer.addend >= 0 && !is_some(use.addend)) {
    throw wrong(plan, task, fmt::format("leaves out the sum that is fused into {}", layer.title()));
  }
  const int follower = net.fused_layer(use.layer);
  if (use.activation != TANDEM_ACTIVATION_NONE && use.adds_to_output) {
    throw wrong(plan, task, "adds to its output and would apply a fused activation to each part");
  }
  if (use.adds_to_output && follower >= 0 && !lacks_all(plan, use.outputs[0], follower)) {
    throw wrong(plan, task,
                fmt::format("adds to memory to which {} was applied", net.layer(follower).title()));
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
    const std::vector<Pending> moved = pending_in(plan, segment.source);
    if (!moved.empty() && plan.buffer(segment.target.buffer).device < 0) {
      require_done(net, plan, task, segment.source);
    }
    clear(plan, segment.target);
    for (const Pending& pending : moved) {
      const int64_t begin = segment.target.offset + pending.bytes.begin - segment.source.offset;
      add(plan, {segment.target.buffer, begin, pending.bytes.count()}, pending.layer);
    }
  }
}

void PendingActivations::follow(const Net& net, const Plan& plan, const Task& task) {
  const auto only_reads = [&] {
    if (pending_.empty()) return;
    for (const Region& region : task.reads) require_done(net, plan, task, region);
  };
  std::visit(overloaded{
                 [&](const LayerWork& work) {
                   work.pass == LayerPass::forward ? follow_forward(net, plan, task, work)
                                                   : only_reads();
                 },
                 [&](const CopyWork& work) {
                   if (!pending_.empty()) follow_copy(net, plan, task, work);
                 },
                 [&](const OneOf<AddWork, MergeWork, NormWork, UpdateWork, CheckWork, ConvertWork,
                                 SendWork, ReceiveWork> auto&) { only_reads(); },
             },
             task.work);
}

}  // namespace tandem
