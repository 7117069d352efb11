#include "core/schedule/strategies/common/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/schedule/plan/buffers.h"

namespace tandem::stages {

void emit_inputs(PlanBuilder& builder) {
  for (int device = 0; device < builder.devices(); ++device) builder.emit_input(device);
}

namespace {

void emit_statistics(PlanBuilder& builder, const std::vector<int>& members, int layer, Stage stage,
                     LayerPass pass, StreamKind stream) {
  const int root = members.front();
  if (builder.statistics(root, layer, pass).buffer < 0) return;
  for (const int member : members) builder.emit_statistics(member, layer, stage, pass);
  if (members.size() == 1) return;
  const std::string what = fmt::format("{} {}", to_string(pass), builder.net().layer(layer).name);
  for (const int member : members) {
    if (member == root) continue;
    builder.emit_transfer("send " + what, stage, layer, member, root,
                          {{builder.statistics(member, layer, pass),
                            builder.received_statistics(member, layer, pass, root)}},
                          When::every_micro_batch, {stream, stream});
  }
  builder.emit_merge(stage, layer, pass, members, stream);
  for (const int member : members) {
    if (member == root) continue;
    builder.emit_transfer(
        "broadcast " + what, stage, layer, root, member,
        {{builder.statistics(root, layer, pass), builder.statistics(member, layer, pass)}},
        When::every_micro_batch, {stream, stream});
  }
}

}  // namespace

void emit_forward(PlanBuilder& builder, StreamKind stream) {
  const int layers = static_cast<int>(builder.net().layers.size());
  for (int layer = 0; layer < layers; ++layer) emit_forward(builder, layer, stream);
}

void emit_forward(PlanBuilder& builder, int layer, StreamKind stream) {
  emit_forward(builder, builder.inputs().all_devices(), layer, stream);
}

void emit_forward(PlanBuilder& builder, const std::vector<int>& members, int layer,
                  StreamKind stream) {
  emit_statistics(builder, members, layer, Stage::forward, LayerPass::forward_statistics, stream);
  for (const int member : members) builder.emit_forward(member, layer);
}

void emit_report(PlanBuilder& builder, bool checked, StreamKind kind) {
  std::vector<int> scalars(builder.net().scalars.size());
  std::iota(scalars.begin(), scalars.end(), 0);
  emit_report(builder, {{builder.inputs().all_devices(), scalars}}, checked, kind);
}

namespace {

// The sums of these scalars over the devices that compute them, to the root: of all in one copy
// from each device, else of each by itself.
void emit_sums(PlanBuilder& builder, const Reporters& of, int root, StreamKind kind) {
  const Net& net = builder.net();
  const bool whole = of.scalars.size() == net.scalars.size();
  const auto sum = [&](const std::string& what, const auto& on, const auto& arrived) {
    const bool is_member =
        std::find(of.devices.begin(), of.devices.end(), root) != of.devices.end();
    std::vector<Region> received;
    for (const int member : of.devices) {
      if (member == root) continue;
      const bool begins = !is_member && member == of.devices.front();
      const Region target = begins ? on(root) : arrived(member);
      builder.emit_transfer("send " + what, Stage::report, -1, member, root, {{on(member), target}},
                            When::every_micro_batch, {kind, kind});
      if (!begins) received.push_back(target);
    }
    if (received.empty()) return;
    builder.emit_add(fmt::format("add {} @{}", what, root), Stage::report, {root, kind}, on(root),
                     received);
  };
  if (whole) {
    return sum(
        "metrics", [&](int device) { return builder.metrics(device); },
        [&](int member) { return builder.received_metrics(member, root); });
  }
  for (const int scalar : of.scalars) {
    sum(
        net.scalars[size_t(scalar)].name,
        [&](int device) { return builder.metric(device, scalar); },
        [&](int member) {
          Region all = builder.received_metrics(member, root);
          const Region mine = builder.metric(member, scalar);
          return Region{all.buffer, mine.offset, mine.bytes};
        });
  }
}

}  // namespace

void emit_report(PlanBuilder& builder, const std::vector<Reporters>& reporters, bool checked,
                 StreamKind kind) {
  const Net& net = builder.net();
  if (net.scalars.empty()) return;
  const int root = reporters.front().devices.front();
  const StreamId stream{root, kind};
  for (const Reporters& some : reporters) emit_sums(builder, some, root, kind);
  const int results = builder.buffer(
      {buffers::results, TANDEM_HOST, BufferKind::persistent, buffers::results_bytes(net), 2, {}});
  const Region sums = builder.metrics(root);
  std::vector<CopySegment> segments{{sums, {results, 0, sums.bytes}}};
  for (size_t i = 0; checked && i < net.scalars.size(); ++i) {
    if (net.scalars[i].loss_weight == 0) continue;
    builder.emit_check(fmt::format("check {} @{}", net.scalars[i].name, root), stream,
                       static_cast<int>(i));
  }
  if (checked) {
    const Region found_inf = builder.found_inf(root);
    segments.push_back({found_inf, {results, sums.bytes, found_inf.bytes}});
  }
  builder.emit_copy(fmt::format("report @{}", root), Stage::report, -1, {stream},
                    std::move(segments));
}

void emit_backward(PlanBuilder& builder, int first, int last, Stage stage, StreamKind stream) {
  for (int layer = last; layer-- > first;) {
    emit_backward(builder, builder.inputs().all_devices(), layer, stage, stream);
  }
}

void emit_backward(PlanBuilder& builder, const std::vector<int>& members, int layer, Stage stage,
                   StreamKind stream) {
  if (builder.net().layer(layer).has_backward()) {
    emit_statistics(builder, members, layer, stage, LayerPass::backward_statistics, stream);
  }
  for (const int member : members) builder.emit_backward(member, layer, stage);
}

void emit_reduction(PlanBuilder& builder, const std::string& what,
                    const std::vector<Interval>& ranges, Stage sending, Stage adding) {
  if (builder.devices() == 1 || ranges.empty()) return;
  for (int device = 1; device < builder.devices(); ++device) {
    std::vector<CopySegment> segments;
    for (const Interval& range : ranges) {
      segments.push_back(
          {builder.gradients(device, range), builder.received_gradients(device, range)});
    }
    builder.emit_transfer("send " + what, sending, -1, device, 0, std::move(segments),
                          When::last_micro_batch);
  }
  for (size_t i = 0; i < ranges.size(); ++i) {
    std::vector<Region> sources;
    for (int device = 1; device < builder.devices(); ++device) {
      sources.push_back(builder.received_gradients(device, ranges[i]));
    }
    const std::string part = ranges.size() > 1 ? fmt::format(", range {}", i) : "";
    builder.emit_add(fmt::format("add {}{} @0", what, part), adding, {0, StreamKind::communication},
                     builder.gradients(0, ranges[i]), std::move(sources), When::last_micro_batch);
  }
}

void emit_broadcast(PlanBuilder& builder, const std::string& what, int layer,
                    const std::vector<Interval>& ranges, When when) {
  for (int device = 1; device < builder.devices(); ++device) {
    builder.emit_transfer("broadcast " + what, stages::broadcast, layer, 0, device,
                          builder.copies(&PlanRegions::weights, 0, device, ranges), when);
  }
}

}  // namespace tandem::stages
