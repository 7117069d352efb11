#include "core/schedule/strategies/fc_parallel/fc_slices.h"

#include <fmt/format.h>

#include <utility>

namespace tandem {

FcSlices::FcSlices(PlanBuilder& builder, const FcChain& chain)
    : builder_(builder), net_(builder.net()), chain_(chain) {
  for (int device = 0; device < devices(); ++device) {
    places_.push_back(builder_.add_shard(device, {0, net_.batch}, "batch"));
  }
}

int FcSlices::root_of(int tensor) const {
  const int root = net_.tensors[size_t(tensor)].alias_of;
  return root >= 0 ? root : tensor;
}

const std::string& FcSlices::name_of(int tensor) const {
  return at(net_.tensors[size_t(root_of(tensor))].producer).name;
}

Interval FcSlices::slice(int tensor, int device) const {
  return share(net_.tensors[size_t(tensor)].shape.c, devices(), device);
}

Interval FcSlices::neurons(int layer, int device) const {
  return slice(at(layer).outputs[0], device);
}

Region FcSlices::buffer(int device, int tensor, int owner, const std::string& what) {
  const int64_t bytes = net_.batch * slice(tensor, owner).count() * 4;
  return {builder_.buffer({fmt::format("{} {}", name_of(tensor), what),
                           device,
                           BufferKind::transient,
                           bytes,
                           1,
                           {}}),
          0, bytes};
}

Region FcSlices::rows_of(const Region& all, Interval rows) const {
  const int64_t row = all.bytes / net_.batch;
  return {all.buffer, all.offset + rows.begin * row, rows.count() * row};
}

Region FcSlices::output(int device, int tensor, int owner) {
  return buffer(device, tensor, owner, fmt::format("slice {}", owner));
}
Region FcSlices::gradient(int device, int tensor) {
  return buffer(device, tensor, device, "slice gradient");
}

Region FcSlices::errors(int device, int tensor, int owner, const std::string& what,
                        const Round& round) {
  if (!chain_.eager) return rows_of(buffer(device, tensor, owner, what), round.rows);
  const int64_t bytes = round.rows.count() * slice(tensor, owner).count() * 4;
  const std::string name = fmt::format("{} {}, {}", name_of(tensor), what, round.name());
  return {builder_.buffer({name, device, BufferKind::transient, bytes, 1, {}}), 0, bytes};
}
Region FcSlices::error(int device, int tensor, int sender, const Round& round) {
  return errors(device, tensor, device, fmt::format("slice errors of @{}", sender), round);
}
// What stays on the device lies at once where the others' arrive.
Region FcSlices::outgoing(int device, int tensor, int target, const Round& round) {
  if (device == target) return error(device, tensor, device, round);
  return errors(device, tensor, target, fmt::format("slice errors for @{}", target), round);
}

std::string FcSlices::label(LayerPass pass, int layer, int device,
                            const std::string& suffix) const {
  return fmt::format("{} {} @{}{}{}", to_string(pass), at(layer).name, device,
                     suffix.empty() ? "" : " ", suffix);
}

// The device's neurons of the layer; inputs, outputs and gradients are the caller's to say.
PlanBinding FcSlices::whole_use(int device, int layer) {
  PlanBinding use = builder_.describe(places_[size_t(device)], layer);
  builder_.slice_outputs(use, neurons(layer, device));
  use.whole_outputs = false;
  use.outputs[0] = output(device, at(layer).outputs[0], device);
  use.step = builder_.step(device);
  return use;
}

PlanBinding FcSlices::use_of_piece(int device, int layer, int owner) {
  PlanBinding use = whole_use(device, layer);
  const int input = at(layer).inputs[0];
  const Interval piece = slice(input, owner);
  use.inputs[0] = output(device, input, owner);
  use.input_slice = piece;
  use.adds_to_output = owner != device;  // a device's own piece comes first, with the bias
  return use;
}

bool FcSlices::begins_at_data() const {
  return net_.tensors[size_t(root_of(at(chain_.layers.front()).inputs[0]))].producer < 0;
}

void FcSlices::emit_inputs() {
  if (!begins_at_data()) return;
  for (const int place : places_) builder_.emit_input(place);
}

void FcSlices::emit_forward(int layer) {
  if (!is_fully_connected(at(layer))) {
    emit_neurons_forward(layer);
  } else if (layer == chain_.layers.front()) {
    emit_first_forward(layer);
  } else {
    emit_next_forward(layer);
  }
}

// Pieces of the first layer's input are the devices' rows.
void FcSlices::emit_first_forward(int layer) {
  const int input = at(layer).inputs[0];
  const std::string& name = net_.tensors[size_t(input)].name;
  const auto pass = [&](int device, Interval rows, const std::string& suffix) {
    PlanBinding use = whole_use(device, layer);
    use.rows = rows;
    use.inputs[0] = builder_.tensor(places_[size_t(device)], input, rows);
    use.outputs[0] = rows_of(use.outputs[0], rows);
    builder_.emit_pass(label(LayerPass::forward, layer, device, suffix), Stage::forward,
                       {builder_.add_binding(std::move(use)), LayerPass::forward, false});
  };
  if (begins_at_data()) {
    for (int device = 0; device < devices(); ++device) pass(device, {0, net_.batch}, "");
    return;
  }
  for (int k = 0; k < devices(); ++k) {
    for (int device = 0; device < devices(); ++device) {
      const int from = (device + k) % devices();
      const Interval rows = builder_.rows(from);
      const CopySegment segment{builder_.tensor(from, input),
                                builder_.tensor(places_[size_t(device)], input, rows)};
      if (k == 0) {
        builder_.emit_copy(fmt::format("keep {} @{}", name, device), Stage::send_activations, layer,
                           {{device, StreamKind::copy}}, {segment});
      } else {
        builder_.emit_transfer("send " + name, Stage::send_activations, layer, from, device,
                               {segment}, When::every_micro_batch, full_duplex);
      }
      pass(device, rows, fmt::format("of @{}", from));
    }
  }
}

// Later ones are slices of neurons; each adds to what those before it gave.
void FcSlices::emit_next_forward(int layer) {
  const int input = at(layer).inputs[0];
  for (int k = 0; k < devices(); ++k) {
    for (int device = 0; device < devices(); ++device) {
      const int from = (device + k) % devices();
      if (k > 0) {
        builder_.emit_transfer("send " + name_of(input), Stage::send_activations, layer, from,
                               device, {{output(from, input, from), output(device, input, from)}},
                               When::every_micro_batch, full_duplex);
      }
      builder_.emit_pass(
          label(LayerPass::forward, layer, device, fmt::format("of @{}", from)), Stage::forward,
          {builder_.add_binding(use_of_piece(device, layer, from)), LayerPass::forward, false});
    }
  }
}

std::vector<Interval> FcSlices::row_ranges() const {
  if (!chain_.eager) return {{0, net_.batch}};
  std::vector<Interval> ranges;
  const int last = chain_.layers.back();
  for (int i = 0; i < chain_.rounds(net_, last, devices()); ++i) {
    ranges.push_back(rows_of_round(last, i));
  }
  return ranges;
}

// What forward keeps for backward is kept for the rows that go backward together.
PlanBinding FcSlices::neurons_use(int device, int layer, Interval rows) {
  PlanBinding use = whole_use(device, layer);
  use.inputs[0] = output(device, at(layer).inputs[0], device);
  if (!chain_.eager) return use;
  use.rows = rows;
  use.inputs[0] = rows_of(use.inputs[0], rows);
  use.outputs[0] = rows_of(use.outputs[0], rows);
  use.saved = builder_.buffer({fmt::format("{} saved (rows {})", at(layer).name, rows.begin),
                               device,
                               BufferKind::transient,
                               0,
                               1,
                               {}});
  return use;
}

void FcSlices::emit_neurons_forward(int layer) {
  for (const Interval& rows : row_ranges()) {
    const std::string suffix = chain_.eager ? fmt::format("rows {}", rows.begin) : "";
    for (int device = 0; device < devices(); ++device) {
      builder_.emit_pass(
          label(LayerPass::forward, layer, device, suffix), Stage::forward,
          {builder_.add_binding(neurons_use(device, layer, rows)), LayerPass::forward, false});
    }
  }
}

namespace {

// Columns [columns) of `rows` rows of a matrix of `width` floats, and the same rows of a matrix
// that has those columns alone.
std::vector<CopySegment> column_segments(const Region& wide, const Region& narrow, int64_t rows,
                                         int64_t width, Interval columns, bool to_wide) {
  std::vector<CopySegment> segments;
  const int64_t bytes = columns.count() * 4;
  for (int64_t row = 0; row < rows; ++row) {
    const Region in_wide{wide.buffer, wide.offset + (row * width + columns.begin) * 4, bytes};
    const Region in_narrow{narrow.buffer, narrow.offset + row * bytes, bytes};
    segments.push_back(to_wide ? CopySegment{in_narrow, in_wide} : CopySegment{in_wide, in_narrow});
  }
  return segments;
}

}  // namespace

void FcSlices::emit_gather() {
  const int tensor = at(chain_.layers.back()).outputs[0], layer = chain_.layers.back();
  const int64_t width = net_.tensors[size_t(tensor)].shape.c;
  for (int k = 1; k < devices(); ++k) {
    for (int device = 0; device < devices(); ++device) {
      const int from = (device + k) % devices();
      const Interval rows = builder_.rows(device);
      builder_.emit_transfer("send " + name_of(tensor), Stage::send_activations, layer, from,
                             device,
                             {{rows_of(output(from, tensor, from), rows),
                               rows_of(output(device, tensor, from), rows)}},
                             When::every_micro_batch, full_duplex);
    }
  }
  for (int device = 0; device < devices(); ++device) {
    const Interval rows = builder_.rows(device);
    const Region whole = builder_.tensor(device, tensor);
    std::vector<CopySegment> segments;
    std::vector<Region> reads;
    for (int from = 0; from < devices(); ++from) {
      reads.push_back(rows_of(output(device, tensor, from), rows));
      for (const CopySegment& segment :
           column_segments(whole, reads.back(), rows.count(), width, slice(tensor, from), true)) {
        segments.push_back(segment);
      }
    }
    builder_.emit_rearrangement(fmt::format("gather {} @{}", name_of(tensor), device),
                                Stage::send_activations, layer, device, std::move(segments),
                                std::move(reads), {whole});
  }
}

void FcSlices::emit_scatter() {
  const int tensor = at(chain_.layers.back()).outputs[0], layer = chain_.layers.back();
  const int64_t width = net_.tensors[size_t(tensor)].shape.c;
  const auto piece = [&](int device, int target) {
    const Region whole = device == target ? gradient(device, tensor)
                                          : buffer(device, tensor, target,
                                                   fmt::format("slice errors for @{}", target));
    return rows_of(whole, builder_.rows(device));
  };
  for (int device = 0; device < devices(); ++device) {
    const Region errors = builder_.tensor_gradient(device, tensor);
    std::vector<CopySegment> segments;
    std::vector<Region> writes;
    for (int target = 0; target < devices(); ++target) {
      writes.push_back(piece(device, target));
      for (const CopySegment& segment :
           column_segments(errors, writes.back(), builder_.rows(device).count(), width,
                           slice(tensor, target), false)) {
        segments.push_back(segment);
      }
    }
    builder_.emit_rearrangement(fmt::format("scatter {} errors @{}", name_of(tensor), device),
                                Stage::send_activation_gradients, layer, device,
                                std::move(segments), {errors}, std::move(writes));
  }
  for (int from = 0; from < devices(); ++from) {
    for (int device = 0; device < devices(); ++device) {
      if (from == device) continue;
      builder_.emit_transfer(
          fmt::format("send {} errors", name_of(tensor)), Stage::send_activation_gradients, layer,
          from, device,
          {{piece(from, device), rows_of(gradient(device, tensor), builder_.rows(from))}},
          When::every_micro_batch, full_duplex);
    }
  }
}

}  // namespace tandem
