#include "core/schedule/strategies/composed/slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/schedule/plan/buffers.h"
#include "core/schedule/strategies/common/stages.h"

namespace tandem {

Slices::Slices(PlanBuilder& builder, const BackwardRounds& rounds, const ArrivalOrder& group)
    : builder_(builder),
      net_(builder.net()),
      rounds_(rounds),
      group_(group),
      batch_{builder.rows(group.members().front()).begin,
             builder.rows(group.members().back()).end} {
  const std::string name = group.size() == builder.devices()
                               ? "batch"
                               : fmt::format("batch of {} devices", group.size());
  for (const int device : members()) shards_.push_back(builder_.add_shard(device, batch(), name));
}

Interval Slices::neurons(int tensor, int device) const {
  return share(net_.tensor(tensor).shape.c, group_.size(), group_.place_of(device));
}

const std::string& Slices::producer(int tensor) const {
  return net_.layer(net_.tensor(net_.in_place_root(tensor)).producer).name;
}

Region Slices::slice(int device, int tensor, int owner, const std::string& what, Interval all_rows,
                     Interval rows) {
  const int64_t elements = all_rows.count() * neurons(tensor, owner).count();
  const int64_t bytes = elements * dtype_bytes(net_.tensor(tensor).dtype);
  return part_of(builder_.transient(device, producer(tensor) + " " + what, bytes), all_rows, rows);
}

Region Slices::activation(int device, int tensor, int owner, Interval rows) {
  return slice(device, tensor, owner, fmt::format("slice {}", owner), batch(), rows);
}

Region Slices::gradient(int device, int tensor, Interval rows) {
  return slice(device, tensor, device, "slice gradient", batch(), rows);
}

Region Slices::partial_gradient(int device, int tensor, int source, int owner,
                                const ReduceScatter& scatter, Interval rows) {
  std::string what = device == owner ? fmt::format("partial gradient of @{}", source)
                                     : fmt::format("partial gradient for @{}", owner);
  if (!scatter.name.empty()) what += ", " + scatter.name;
  return slice(device, tensor, owner, what, scatter.rows, rows);
}

// Blocks take turns in two buffers: one is sent while the next one is computed.
Region Slices::input_gradient(int device, int tensor, const ReduceScatter& scatter, Interval rows) {
  if (!has_row_blocks()) return builder_.tensor_gradient(whole_batch(device), tensor, rows);
  int64_t most = 0;
  for (const Interval& block : rounds_.row_blocks()) most = std::max(most, block.count());
  const int64_t row = buffers::row_bytes(net_, tensor);
  Region region = builder_.transient(
      device, fmt::format("{} gradient, block {}", producer(tensor), scatter.number % 2),
      most * row);
  region.bytes = scatter.rows.count() * row;
  return part_of(region, scatter.rows, rows);
}

Region Slices::received_input_gradient(int device, int tensor, int source,
                                       const ReduceScatter& scatter) {
  const std::string name =
      fmt::format("{} gradient of @{} {}", net_.tensor(tensor).name, source, scatter.number % 2);
  return builder_.transient(device, name,
                            input_gradient(source, tensor, scatter, builder_.rows(device)).bytes);
}

Region Slices::round_gradient(int device, int layer, int64_t largest, int64_t bytes) {
  const Layer& l = net_.layer(layer);
  Region region = builder_.transient(device, l.name + " input gradient of a round",
                                     largest * dtype_bytes(net_.tensor(l.inputs[0]).dtype));
  region.bytes = bytes;
  return region;
}

PlanBinding Slices::describe(int device, int layer, Interval rows) {
  const int output = net_.layer(layer).outputs[0];
  PlanBinding use = builder_.describe(whole_batch(device), layer);
  builder_.slice_outputs(use, neurons(output, device));
  use.whole_outputs = false;
  use.rows = rows;
  use.outputs[0] = activation(device, output, device, rows);
  use.step = builder_.step(device);
  return use;
}

PlanBinding Slices::describe_elementwise(int device, int layer, Interval rows) {
  PlanBinding use = describe(device, layer, rows);
  const Layer& l = net_.layer(layer);
  use.inputs[0] = activation(device, l.inputs[0], device, rows);
  if (has_row_blocks()) {
    use.saved =
        builder_.transient(device, fmt::format("{} saved (rows {})", l.name, rows.begin), 0).buffer;
  }
  return use;
}

void Slices::emit_elementwise_forward(int layer) {
  for (const Interval& rows : rounds_.row_blocks()) {
    const std::string suffix = has_row_blocks() ? fmt::format("rows {}", rows.begin) : "";
    for (const int device : members()) {
      emit_pass(LayerPass::forward, describe_elementwise(device, layer, rows), suffix);
    }
  }
}

void Slices::emit_pass(LayerPass pass, PlanBinding use, const std::string& suffix,
                       bool accumulate) {
  const std::string label =
      fmt::format("{} {} @{}{}{}", to_string(pass), net_.layer(use.layer).name, use.device,
                  suffix.empty() ? "" : " ", suffix);
  builder_.emit_pass(label, pass == LayerPass::forward ? Stage::forward : stages::backward_fc,
                     {builder_.add_binding(std::move(use)), pass, accumulate});
}

}  // namespace tandem
