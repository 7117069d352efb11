// The backward half of FcSlices.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/schedule/strategies/fc_slices.h"

namespace tandem {

// Behind the last layer the pieces are the devices' rows, so that a round is some rows; before it
// every piece is for all rows, and a round is their sum, in the order in which they are sent.
FcSlices::Round FcSlices::round_of(int layer, int device, int number) {
  const int first = number * chain_.quota, last = std::min(devices(), first + chain_.quota);
  Round round;
  round.number = number;
  if (layer == chain_.layers.back()) {
    round.rows = {builder_.rows(first).begin, builder_.rows(last - 1).end};
    return round;
  }
  round.rows = {0, net_.batch};
  for (int k = first; k < last; ++k) round.pieces.push_back((device + k) % devices());
  return round;
}

void FcSlices::emit_backward(int layer) {
  if (!at(layer).has_backward()) return;
  const int rounds = (devices() + chain_.quota - 1) / chain_.quota;
  for (int number = 0; number < rounds; ++number) {
    for (int device = 0; device < devices(); ++device) {
      emit_round(layer, device, round_of(layer, device, number));
    }
  }
  if (!at(layer).wants_backward_data) return;
  if (layer == chain_.layers.front()) {
    send_rows_of_errors(layer);
  } else {
    send_errors(layer);
  }
}

void FcSlices::emit_round(int layer, int device, const Round& round) {
  Region error;
  if (round.pieces.empty()) {
    error = rows_of(gradient(device, at(layer).outputs[0]), round.rows);
  } else {
    error = emit_neurons_backward(layer, device, round);
  }
  if (layer == chain_.layers.front()) {
    emit_first_backward(layer, device, round, error);
  } else {
    emit_next_backward(layer, device, round, error);
  }
}

// Adds the round's pieces up and takes them through the layers behind this one, down to its output.
Region FcSlices::emit_neurons_backward(int layer, int device, const Round& round) {
  const size_t index = size_t(chain_.index_of(layer));
  size_t top = index;
  while (!is_fully_connected(at(chain_.layers[top + 1]))) ++top;
  const int tensor = at(chain_.layers[top]).outputs[0];
  const Region sum = error(device, tensor, round.pieces.front());
  const std::string suffix = fmt::format("round {}", round.number);
  std::vector<Region> others;
  for (size_t i = 1; i < round.pieces.size(); ++i) {
    others.push_back(error(device, tensor, round.pieces[i]));
  }
  if (!others.empty()) {
    builder_.emit_add(fmt::format("add {} errors @{} {}", name_of(tensor), device, suffix),
                      Stage::backward_fc, {device, StreamKind::compute}, sum, others);
  }
  std::map<int, Region> gradients{{root_of(tensor), sum}};
  const auto gradient_of = [&](int t) {
    const auto found = gradients.find(root_of(t));
    return found != gradients.end() ? found->second : gradient(device, t);
  };
  for (size_t i = top; i > index; --i) {
    const int above = chain_.layers[i];
    PlanBinding use = whole_use(device, above);
    use.inputs[0] = output(device, at(above).inputs[0], device);
    use.output_gradients[0] = gradient_of(at(above).outputs[0]);
    use.input_gradients[0] = gradient_of(at(above).inputs[0]);
    builder_.emit_pass(label(LayerPass::backward_data, above, device, suffix), Stage::backward_fc,
                       {builder_.add_binding(std::move(use)), LayerPass::backward_data, false});
  }
  return gradient_of(at(layer).outputs[0]);
}

// What rounds before have given is added to: all is linear.
void FcSlices::emit_data_pass(int layer, int device, const Round& round, PlanBinding use,
                              const std::string& suffix) {
  const Region total = use.input_gradients[0];
  const bool adds = round.number > 0 && !round.pieces.empty();
  if (adds) {
    const int input = at(layer).inputs[0];
    const int64_t all = element_count(net_.tensors[size_t(input)].shape) * 4;
    const int64_t largest =
        layer == chain_.layers.front() ? all : net_.batch * slice(input, 0).count() * 4;
    const std::string name = fmt::format("{} errors of a round", at(layer).name);
    use.input_gradients[0] = {
        builder_.buffer({name, device, BufferKind::transient, largest, 1, {}}), 0,
        builder_.plan().bytes(total)};
  }
  const Region given = use.input_gradients[0];
  builder_.emit_pass(label(LayerPass::backward_data, layer, device, suffix), Stage::backward_fc,
                     {builder_.add_binding(std::move(use)), LayerPass::backward_data, false});
  if (!adds) return;
  builder_.emit_add(fmt::format("add {} errors below @{} {}", at(layer).name, device, suffix),
                    Stage::backward_fc, {device, StreamKind::compute}, total, {given});
}

void FcSlices::emit_weights_pass(int layer, int device, const Round& round, const PlanBinding& use,
                                 const std::string& suffix) {
  if (!at(layer).wants_backward_weights) return;
  builder_.emit_pass(label(LayerPass::backward_weights, layer, device, suffix), Stage::backward_fc,
                     {builder_.add_binding(use), LayerPass::backward_weights, round.number > 0});
}

void FcSlices::emit_first_backward(int layer, int device, const Round& round, const Region& error) {
  const int input = at(layer).inputs[0], place = places_[size_t(device)];
  const std::string suffix = fmt::format("round {}", round.number);
  PlanBinding use = whole_use(device, layer);
  use.row_begin = round.rows.begin;
  use.row_end = round.rows.end;
  use.inputs[0] = builder_.tensor(place, input, round.rows);
  use.outputs[0] = rows_of(use.outputs[0], round.rows);
  use.output_gradients[0] = error;
  if (at(layer).wants_backward_data) {
    use.input_gradients[0] = builder_.tensor_gradient(place, input, round.rows);
    emit_data_pass(layer, device, round, use, suffix);
  }
  emit_weights_pass(layer, device, round, use, suffix);
}

// The errors first: others wait for them, and for the gradients nobody.
void FcSlices::emit_next_backward(int layer, int device, const Round& round, const Region& error) {
  const int input = at(layer).inputs[0];
  std::vector<std::pair<PlanBinding, std::string>> pieces;
  for (int k = 0; k < devices(); ++k) {
    const int owner = (device + k) % devices();
    PlanBinding use = use_of_piece(device, layer, owner);
    use.row_begin = round.rows.begin;
    use.row_end = round.rows.end;
    use.inputs[0] = rows_of(use.inputs[0], round.rows);
    use.outputs[0] = rows_of(use.outputs[0], round.rows);
    use.output_gradients[0] = error;
    if (at(layer).wants_backward_data) {
      use.input_gradients[0] = rows_of(outgoing(device, input, owner), round.rows);
    }
    pieces.emplace_back(std::move(use), fmt::format("of @{} round {}", owner, round.number));
  }
  for (const auto& [use, suffix] : pieces) {
    if (at(layer).wants_backward_data) emit_data_pass(layer, device, round, use, suffix);
  }
  for (const auto& [use, suffix] : pieces) emit_weights_pass(layer, device, round, use, suffix);
}

// In the order in which they are taken.
void FcSlices::send_errors(int layer) {
  const int input = at(layer).inputs[0];
  for (int k = 1; k < devices(); ++k) {
    for (int device = 0; device < devices(); ++device) {
      const int from = (device + k) % devices();
      builder_.emit_transfer(
          fmt::format("send {} errors", name_of(input)), Stage::send_errors, layer, from, device,
          {{outgoing(from, input, device), error(device, input, from)}}, When::every_batch);
    }
  }
}

// To the devices' own rows, where the layers before the chain go backward.
void FcSlices::send_rows_of_errors(int layer) {
  const int input = at(layer).inputs[0];
  const std::string& name = net_.tensors[size_t(input)].name;
  std::vector<std::vector<Region>> received(static_cast<size_t>(devices()));
  for (int k = 0; k < devices(); ++k) {
    for (int device = 0; device < devices(); ++device) {
      const int from = (device + k) % devices();
      const Region source =
          builder_.tensor_gradient(places_[size_t(from)], input, builder_.rows(device));
      if (k == 0) {
        builder_.emit_copy(fmt::format("keep {} errors @{}", name, device), Stage::send_errors,
                           layer, {{device, StreamKind::communication}},
                           {{source, builder_.tensor_gradient(device, input)}});
        continue;
      }
      const int buffer = builder_.buffer({fmt::format("{} errors of @{}", name, from),
                                          device,
                                          BufferKind::transient,
                                          source.bytes,
                                          1,
                                          {}});
      received[size_t(device)].push_back({buffer, 0, source.bytes});
      builder_.emit_transfer(fmt::format("send {} errors", name), Stage::send_errors, layer, from,
                             device, {{source, received[size_t(device)].back()}},
                             When::every_batch);
    }
  }
  for (int device = 0; device < devices(); ++device) {
    builder_.emit_add(fmt::format("add {} errors @{}", name, device), Stage::send_errors,
                      {device, StreamKind::communication}, builder_.tensor_gradient(device, input),
                      received[size_t(device)]);
  }
}

}  // namespace tandem
