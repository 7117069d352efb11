// The backward half of FcSlices.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/schedule/strategies/fc_parallel/fc_slices.h"

namespace tandem {

Interval FcSlices::rows_of_round(int layer, int number) const {
  const int above = chain_.above(net_, layer);
  const int each = (devices() + chain_.quota - 1) / chain_.quota;
  if (above >= 0)
    return chain_.eager ? rows_of_round(above, number / each) : Interval{0, net_.batch};
  const int first = number * chain_.quota, last = std::min(devices(), first + chain_.quota);
  return {builder_.rows(first).begin, builder_.rows(last - 1).end};
}

// Behind the last layer the pieces are the devices' rows, so that a round is some rows; before it
// every piece is for all rows that one round behind it has sent, and a round is their sum, in the
// order in which they are sent.
FcSlices::Round FcSlices::round_of(int layer, int device, int number) const {
  const int each = (devices() + chain_.quota - 1) / chain_.quota;
  Round round;
  round.number = number;
  round.rows = rows_of_round(layer, number);
  if (layer == chain_.layers.back()) return round;
  round.sent_in = number / each;
  const int first = number % each * chain_.quota;
  for (int k = first; k < std::min(devices(), first + chain_.quota); ++k) {
    round.pieces.push_back((device + k) % devices());
  }
  return round;
}

void FcSlices::emit_backward(int layer) {
  if (!at(layer).has_backward()) return;
  const auto rounds = static_cast<int>(chain_.rounds(net_, layer, devices()));
  for (int number = 0; number < rounds; ++number) {
    for (int device = 0; device < devices(); ++device) {
      emit_round(layer, device, round_of(layer, device, number));
    }
    const bool is_last = number == rounds - 1;
    if (!at(layer).wants_backward_data || (!chain_.eager && !is_last)) continue;
    Round sent = round_of(layer, 0, number);
    if (!chain_.eager) sent.rows = {0, net_.batch};
    if (layer == chain_.layers.front()) {
      send_rows_of_errors(layer, sent);
    } else {
      send_activation_gradients(layer, sent);
    }
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
  Round sent;
  sent.number = round.sent_in;
  sent.rows = round.rows;
  const Region sum = error(device, tensor, round.pieces.front(), sent);
  const std::string suffix = round.name();
  std::vector<Region> others;
  for (size_t i = 1; i < round.pieces.size(); ++i) {
    others.push_back(error(device, tensor, round.pieces[i], sent));
  }
  if (!others.empty()) {
    builder_.emit_add(fmt::format("add {} errors @{} {}", name_of(tensor), device, suffix),
                      Stage::backward_fc, {device, StreamKind::compute}, sum, others);
  }
  std::map<int, Region> gradients{{root_of(tensor), sum}};
  const auto gradient_of = [&](int t) {
    const auto found = gradients.find(root_of(t));
    return found != gradients.end() ? found->second : rows_of(gradient(device, t), round.rows);
  };
  for (size_t i = top; i > index; --i) {
    const int above = chain_.layers[i];
    PlanBinding use = neurons_use(device, above, round.rows);
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
  const bool adds = !chain_.eager && round.number > 0 && !round.pieces.empty();
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
  const std::string suffix = round.name();
  PlanBinding use = whole_use(device, layer);
  use.rows = round.rows;
  use.inputs[0] = builder_.tensor(place, input, round.rows);
  use.outputs[0] = rows_of(use.outputs[0], round.rows);
  use.output_gradients[0] = error;
  if (at(layer).wants_backward_data) {
    use.input_gradients[0] = gradients_below(device, round);
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
    use.rows = round.rows;
    use.inputs[0] = rows_of(use.inputs[0], round.rows);
    use.outputs[0] = rows_of(use.outputs[0], round.rows);
    use.output_gradients[0] = error;
    if (at(layer).wants_backward_data) {
      use.input_gradients[0] = outgoing(device, input, owner, round);
    }
    pieces.emplace_back(std::move(use), fmt::format("of @{} {}", owner, round.name()));
  }
  for (const auto& [use, suffix] : pieces) {
    if (at(layer).wants_backward_data) emit_data_pass(layer, device, round, use, suffix);
  }
  for (const auto& [use, suffix] : pieces) emit_weights_pass(layer, device, round, use, suffix);
}

namespace {

// What a message is called beside its ends.
std::string sent_as(const std::string& name, bool eager, const std::string& round) {
  return fmt::format("send {} errors{}{}", name, eager ? " " : "", eager ? round : "");
}

}  // namespace

// In the order in which they are taken.
void FcSlices::send_activation_gradients(int layer, const Round& round) {
  const int input = at(layer).inputs[0];
  for (int k = 1; k < devices(); ++k) {
    for (int device = 0; device < devices(); ++device) {
      const int from = (device + k) % devices();
      builder_.emit_transfer(
          sent_as(name_of(input), chain_.eager, round.name()), Stage::send_activation_gradients,
          layer, from, device,
          {{outgoing(from, input, device, round), error(device, input, from, round)}},
          When::every_micro_batch, full_duplex);
    }
  }
}

// Of the chain's input: where a round's errors lie until they are sent. Every second round takes
// the same place.
Region FcSlices::gradients_below(int device, const Round& round) {
  const int input = at(chain_.layers.front()).inputs[0];
  if (!chain_.eager) {
    return builder_.tensor_gradient(places_[size_t(device)], input, round.rows);
  }
  int64_t most = 0;
  for (const Interval& rows : row_ranges()) most = std::max(most, rows.count());
  const int64_t row = element_count(net_.tensors[size_t(input)].shape) / net_.batch * 4;
  const std::string name = fmt::format("errors below the chain {}", round.number % 2);
  return {builder_.buffer({name, device, BufferKind::transient, most * row, 1, {}}), 0,
          round.rows.count() * row};
}

// To the devices' own rows, where the layers before the chain go backward.
void FcSlices::send_rows_of_errors(int layer, const Round& round) {
  for (int device = 0; device < devices(); ++device) {
    const Interval mine = builder_.rows(device);
    if (round.rows.begin <= mine.begin && mine.end <= round.rows.end) {
      send_rows_to(layer, device, round);
    }
  }
}

void FcSlices::send_rows_to(int layer, int device, const Round& round) {
  const int input = at(layer).inputs[0];
  const std::string& name = net_.tensors[size_t(input)].name;
  const std::string suffix = chain_.eager ? " " + round.name() : "";
  const Interval mine = builder_.rows(device);
  const auto rows_here = [&](int from) {
    const Region all = gradients_below(from, round);
    const int64_t row = all.bytes / round.rows.count();
    return Region{all.buffer, all.offset + (mine.begin - round.rows.begin) * row,
                  mine.count() * row};
  };
  bool is_first = true;  // of the rounds that give errors of these rows
  for (int number = 0; number < round.number && chain_.eager; ++number) {
    is_first &= rows_of_round(layer, number).begin != round.rows.begin;
  }
  std::vector<Region> received;
  if (is_first) {
    builder_.emit_copy(fmt::format("keep {} errors @{}", name, device),
                       Stage::send_activation_gradients, layer, {{device, StreamKind::copy}},
                       {{rows_here(device), builder_.tensor_gradient(device, input)}});
  } else {
    received.push_back(rows_here(device));
  }
  for (int k = 1; k < devices(); ++k) {
    const int from = (device + k) % devices();
    const Region source = rows_here(from);
    const int turn = chain_.eager ? round.number % 2 : 0;
    const int buffer = builder_.buffer({fmt::format("{} errors of @{} {}", name, from, turn),
                                        device,
                                        BufferKind::transient,
                                        source.bytes,
                                        1,
                                        {}});
    received.push_back({buffer, 0, source.bytes});
    builder_.emit_transfer(sent_as(name, chain_.eager, round.name()),
                           Stage::send_activation_gradients, layer, from, device,
                           {{source, received.back()}}, When::every_micro_batch, full_duplex);
  }
  // The next round must not wait for this one's errors.
  const StreamKind stream = chain_.eager ? StreamKind::update : StreamKind::compute;
  builder_.emit_add(fmt::format("add {} errors @{}{}", name, device, suffix),
                    Stage::send_activation_gradients, {device, stream},
                    builder_.tensor_gradient(device, input), received);
}

}  // namespace tandem
