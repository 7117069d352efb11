#include "core/schedule/strategies/master.h"

#include <fmt/format.h>

#include "core/schedule/buffers.h"

namespace tandem::master {

void emit_inputs(PlanBuilder& builder) {
  for (int device = 0; device < builder.devices(); ++device) builder.emit_input(device);
}

namespace {

void emit_statistics(PlanBuilder& builder, int layer, Stage stage, LayerPass pass,
                     StreamKind stream) {
  if (builder.statistics(0, layer, pass).buffer < 0) return;
  const int devices = builder.devices();
  for (int device = 0; device < devices; ++device) {
    builder.emit_statistics(device, layer, stage, pass);
  }
  if (devices == 1) return;
  const std::string what =
      fmt::format("{} {}", to_string(pass), builder.net().layers[size_t(layer)].name);
  for (int device = 1; device < devices; ++device) {
    builder.emit_transfer("send " + what, stage, layer, device, 0,
                          {{builder.statistics(device, layer, pass),
                            builder.received_statistics(device, layer, pass)}},
                          When::every_batch, {stream, stream});
  }
  builder.emit_merge(stage, layer, pass, stream);
  for (int device = 1; device < devices; ++device) {
    builder.emit_transfer(
        "return " + what, stage, layer, 0, device,
        {{builder.statistics(0, layer, pass), builder.statistics(device, layer, pass)}},
        When::every_batch, {stream, stream});
  }
}

}  // namespace

void emit_forward(PlanBuilder& builder, StreamKind stream) {
  const int layers = static_cast<int>(builder.net().layers.size());
  for (int layer = 0; layer < layers; ++layer) emit_forward(builder, layer, stream);
}

void emit_forward(PlanBuilder& builder, int layer, StreamKind stream) {
  emit_statistics(builder, layer, Stage::forward, LayerPass::forward_statistics, stream);
  for (int device = 0; device < builder.devices(); ++device) builder.emit_forward(device, layer);
}

void emit_report(PlanBuilder& builder, bool checked, StreamKind kind) {
  const Net& net = builder.net();
  if (net.scalars.empty()) return;
  const StreamId stream{0, kind};
  std::vector<Region> received;
  for (int device = 1; device < builder.devices(); ++device) {
    received.push_back(builder.received_metrics(device));
    builder.emit_transfer("send metrics", Stage::report, -1, device, 0,
                          {{builder.metrics(device), received.back()}}, When::every_batch,
                          {kind, kind});
  }
  if (!received.empty()) {
    builder.emit_add("add metrics @0", Stage::report, stream, builder.metrics(0), received);
  }
  const int results = builder.buffer(
      {buffers::results, TANDEM_HOST, BufferKind::persistent, buffers::results_bytes(net), 2, {}});
  std::vector<CopySegment> segments{{builder.metrics(0), {results, 0, builder.metrics(0).bytes}}};
  for (size_t i = 0; checked && i < net.scalars.size(); ++i) {
    if (net.scalars[i].loss_weight == 0) continue;
    builder.emit_check(fmt::format("check {} @0", net.scalars[i].name), stream,
                       static_cast<int>(i));
  }
  if (checked) {
    const Region skip = builder.skip(0);
    segments.push_back({skip, {results, builder.metrics(0).bytes, skip.bytes}});
  }
  builder.emit_copy("report @0", Stage::report, -1, {stream}, std::move(segments));
}

void emit_backward(PlanBuilder& builder, int first, int last, Stage stage, StreamKind stream) {
  for (int layer = last; layer-- > first;) {
    if (builder.net().layers[size_t(layer)].has_backward()) {
      emit_statistics(builder, layer, stage, LayerPass::backward_statistics, stream);
    }
    for (int device = 0; device < builder.devices(); ++device) {
      builder.emit_backward(device, layer, stage);
    }
  }
}

void emit_reduction(PlanBuilder& builder, const std::string& what,
                    const std::vector<WeightRange>& ranges, Stage sending, Stage adding) {
  if (builder.devices() == 1 || ranges.empty()) return;
  for (int device = 1; device < builder.devices(); ++device) {
    std::vector<CopySegment> segments;
    for (const WeightRange& range : ranges) {
      segments.push_back(
          {builder.gradients(device, range), builder.received_gradients(device, range)});
    }
    builder.emit_transfer("send " + what, sending, -1, device, 0, std::move(segments),
                          When::last_batch);
  }
  for (size_t i = 0; i < ranges.size(); ++i) {
    std::vector<Region> sources;
    for (int device = 1; device < builder.devices(); ++device) {
      sources.push_back(builder.received_gradients(device, ranges[i]));
    }
    const std::string part = ranges.size() > 1 ? fmt::format(", range {}", i) : "";
    builder.emit_add(fmt::format("add {}{} @0", what, part), adding, {0, StreamKind::communication},
                     builder.gradients(0, ranges[i]), std::move(sources), When::last_batch);
  }
}

void emit_broadcast(PlanBuilder& builder, const std::string& what, int layer,
                    const std::vector<WeightRange>& ranges, When when) {
  for (int device = 1; device < builder.devices(); ++device) {
    std::vector<CopySegment> segments;
    for (const WeightRange& range : ranges) {
      segments.push_back({builder.weights(0, range), builder.weights(device, range)});
    }
    builder.emit_transfer("broadcast " + what, Stage::broadcast, layer, 0, device,
                          std::move(segments), when);
  }
}

}  // namespace tandem::master
