#include "core/schedule/strategies/composed/column_parallel_linear.h"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "core/schedule/strategies/common/stages.h"
#include "core/schedule/strategies/composed/all_to_all.h"

namespace tandem {

ColumnParallelLinear::ColumnParallelLinear(Slices& slices, const FcChain& chain, int layer)
    : slices_(slices),
      builder_(slices.builder()),
      net_(builder_.net()),
      chain_(chain),
      index_(layer),
      layer_(net_.layer(layer)),
      input_(layer_.inputs[0]),
      output_(layer_.outputs[0]),
      input_is_rows_(layer == chain.linear.front()),
      input_name_(input_is_rows_ ? net_.tensor(input_).name : slices.producer(input_)) {}

bool ColumnParallelLinear::reads_data() const {
  return net_.tensor(net_.in_place_root(input_)).producer < 0;
}

// The device's neurons times the part of the input that `owner` has: all inputs of some rows, or
// its slice of the inputs. The device's own slice comes first and with the bias.
PlanBinding ColumnParallelLinear::product(int device, int owner, Interval rows) {
  PlanBinding use = slices_.describe(device, index_, rows);
  if (input_is_rows_) {
    use.inputs[0] = builder_.tensor(slices_.whole_batch(device), input_, rows);
  } else {
    use.inputs[0] = slices_.activation(device, input_, owner, rows);
    use.input_slice = slices_.neurons(input_, owner);
    use.adds_to_output = owner != device;
  }
  return use;
}

// The rows of `source`, in its own shard and in the whole batch of `target`.
CopySegment ColumnParallelLinear::input_rows(int source, int target) {
  return {builder_.tensor(source, input_),
          builder_.tensor(slices_.whole_batch(target), input_, builder_.rows(source))};
}

void ColumnParallelLinear::emit_forward() {
  if (reads_data()) {
    for (const int device : members()) {
      slices_.emit_pass(LayerPass::forward, product(device, device, slices_.batch()), "");
    }
    return;
  }
  AllToAll all_gather{"send " + input_name_, stages::send_activations, index_};
  all_gather.part = [this](int source, int target) {
    return input_is_rows_
               ? input_rows(source, target)
               : CopySegment{slices_.activation(source, input_, source, slices_.batch()),
                             slices_.activation(target, input_, source, slices_.batch())};
  };
  all_gather.use = [this](int source, int target) {
    if (input_is_rows_ && source == target) {
      builder_.emit_copy(fmt::format("keep {} @{}", input_name_, target), stages::send_activations,
                         index_, {{target, StreamKind::copy}}, {input_rows(source, target)});
    }
    const Interval rows = input_is_rows_ ? builder_.rows(source) : slices_.batch();
    slices_.emit_pass(LayerPass::forward, product(target, source, rows),
                      fmt::format("of @{}", source));
  };
  emit_all_to_all(builder_, group(), all_gather);
}

void ColumnParallelLinear::emit_backward() {
  for (const Round& round : slices_.rounds().of(index_)) {
    for (const int device : members()) emit_round(device, round);
    if (layer_.wants_backward_data && round.completes_sent) emit_reduce_scatter(round.sent);
  }
}

void ColumnParallelLinear::emit_round(int device, const Round& round) {
  const Region gradient = output_gradient(device, round);
  const auto product_of = [&](int owner) {
    PlanBinding use = product(device, owner, round.rows);
    use.output_gradients[0] = gradient;
    if (layer_.wants_backward_data) {
      use.input_gradients[0] =
          input_is_rows_
              ? slices_.input_gradient(device, input_, round.sent, round.rows)
              : slices_.partial_gradient(device, input_, device, owner, round.sent, round.rows);
    }
    return use;
  };
  const auto suffix = [&](int owner) {
    return input_is_rows_ ? round.name : fmt::format("of @{} {}", owner, round.name);
  };
  // Other devices wait for the gradients of the input, and none for those of the weights.
  const std::vector<int> whole{device};
  if (layer_.wants_backward_data) {
    for (const int owner : input_is_rows_ ? whole : group().targets(device)) {
      emit_input_gradient(round, product_of(owner), suffix(owner));
    }
  }
  if (!layer_.wants_backward_weights) return;
  for (const int owner : input_is_rows_ ? whole : group().sources(device)) {
    slices_.emit_pass(LayerPass::backward_weights, product_of(owner), suffix(owner),
                      round.number > 0);
  }
}

// The gradient of the device's neurons, from the parts that the round takes.
Region ColumnParallelLinear::output_gradient(int device, const Round& round) {
  if (index_ == chain_.linear.back()) return slices_.gradient(device, output_, round.rows);
  const std::vector<int> elementwise = chain_.elementwise_after(index_);
  const int received = elementwise.empty() ? output_ : net_.layer(elementwise.back()).outputs[0];
  std::vector<Region> parts;
  for (int64_t part = round.parts.begin; part < round.parts.end; ++part) {
    const int source = group().sources(device)[size_t(part)];
    parts.push_back(
        slices_.partial_gradient(device, received, source, device, round.received, round.rows));
  }
  const Region sum = parts.front();
  parts.erase(parts.begin());
  if (!parts.empty()) {
    builder_.emit_add(fmt::format("add {} activation gradients @{} {}", slices_.producer(received),
                                  device, round.name),
                      stages::backward_fc, {device, StreamKind::compute}, sum, std::move(parts));
  }
  const auto gradient_of = [&](int tensor) {
    return net_.in_place_root(tensor) == net_.in_place_root(received)
               ? sum
               : slices_.gradient(device, tensor, round.rows);
  };
  for (auto layer = elementwise.rbegin(); layer != elementwise.rend(); ++layer) {
    PlanBinding use = slices_.describe_elementwise(device, *layer, round.rows);
    use.output_gradients[0] = gradient_of(net_.layer(*layer).outputs[0]);
    use.input_gradients[0] = gradient_of(net_.layer(*layer).inputs[0]);
    slices_.emit_pass(LayerPass::backward_data, std::move(use), round.name);
  }
  return gradient_of(output_);
}

void ColumnParallelLinear::emit_input_gradient(const Round& round, PlanBinding use,
                                               const std::string& suffix) {
  const int device = use.device;
  const Region sum = use.input_gradients[0];
  if (round.adds_to_sent) {
    const int64_t largest = input_is_rows_ ? element_count(net_.tensor(input_).shape)
                                           : net_.batch * slices_.neurons(input_, 0).count();
    use.input_gradients[0] = slices_.round_gradient(device, index_, largest, sum.bytes);
  }
  const Region result = use.input_gradients[0];
  slices_.emit_pass(LayerPass::backward_data, std::move(use), suffix);
  if (!round.adds_to_sent) return;
  builder_.emit_add(fmt::format("add {} input gradients @{} {}", layer_.name, device, suffix),
                    stages::backward_fc, {device, StreamKind::compute}, sum, {result});
}

// Parts of rows are added up here, those of slices in the rounds of the layer that has the slices.
void ColumnParallelLinear::emit_reduce_scatter(const ReduceScatter& scatter) {
  if (input_is_rows_) {
    emit_reduce_rows(scatter);
    return;
  }
  const std::string suffix = scatter.name.empty() ? "" : " " + scatter.name;
  AllToAll exchange{fmt::format("send {} activation gradients{}", input_name_, suffix),
                    stages::send_activation_gradients, index_};
  exchange.part = [&](int source, int target) {
    const auto on = [&](int device) {
      return slices_.partial_gradient(device, input_, source, target, scatter, scatter.rows);
    };
    return CopySegment{on(source), on(target)};
  };
  emit_all_to_all(builder_, group(), exchange);
}

// The sum of all devices' parts for each device's own rows, where data-parallel layers run the
// backward pass.
void ColumnParallelLinear::emit_reduce_rows(const ReduceScatter& scatter) {
  const Stage stage = stages::send_activation_gradients;
  const std::string what = input_name_ + " activation gradients";
  const std::string suffix = scatter.name.empty() ? "" : " " + scatter.name;
  std::map<int, std::vector<Region>> parts;  // by target
  for (const auto& [source, target] : group().messages()) {
    const Interval rows = builder_.rows(target);
    if (!scatter.rows.contains(rows)) continue;
    const Region part = slices_.input_gradient(source, input_, scatter, rows);
    if (source == target && !scatter.adds) {
      builder_.emit_copy(fmt::format("keep {} @{}", what, target), stage, index_,
                         {{target, StreamKind::copy}},
                         {{part, builder_.tensor_gradient(target, input_)}});
    } else if (source == target) {
      parts[target].push_back(part);
    } else {
      parts[target].push_back(slices_.received_input_gradient(target, input_, source, scatter));
      builder_.emit_transfer(fmt::format("send {}{}", what, suffix), stage, index_, source, target,
                             {{part, parts[target].back()}}, When::every_micro_batch, full_duplex);
    }
  }
  // Where several rounds send, the next round must not wait for the sum.
  const StreamKind stream = scatter.name.empty() ? StreamKind::compute : StreamKind::update;
  for (auto& [device, sources] : parts) {
    builder_.emit_add(fmt::format("add {} @{}{}", what, device, suffix), stage, {device, stream},
                      builder_.tensor_gradient(device, input_), std::move(sources));
  }
}

// Copies between whole rows of the output and slices of them that lie one after the other.
void ColumnParallelLinear::rearrange_output(const std::string& label, Stage stage, int device,
                                            const Region& whole,
                                            const std::function<Region(int owner)>& slice_of,
                                            Direction direction) {
  const int64_t element = dtype_bytes(net_.tensor(output_).dtype);
  const int64_t row_bytes = net_.tensor(output_).shape.c * element;
  const bool to_rows = direction == Direction::to_rows;
  std::vector<CopySegment> segments;
  std::vector<Region> slices;
  for (const int owner : members()) {
    const Region slice = slices.emplace_back(slice_of(owner));
    const Interval columns = slices_.neurons(output_, owner);
    const int64_t bytes = columns.count() * element;
    for (int64_t row = 0; row < builder_.rows(device).count(); ++row) {
      const int64_t offset = whole.offset + row * row_bytes + columns.begin * element;
      const Region in_row{whole.buffer, offset, bytes};
      const Region in_slice{slice.buffer, slice.offset + row * bytes, bytes};
      segments.push_back(to_rows ? CopySegment{in_slice, in_row} : CopySegment{in_row, in_slice});
    }
  }
  std::vector<Region> reads{whole};
  if (to_rows) std::swap(reads, slices);
  builder_.emit_rearrangement(label, stage, index_, device, std::move(segments), std::move(reads),
                              std::move(slices));
}

void ColumnParallelLinear::emit_gather_output() {
  const std::string& name = slices_.producer(output_);
  AllToAll exchange{fmt::format("send {} slices", name), stages::send_activations, index_};
  exchange.part = [&](int source, int target) {
    const Interval rows = builder_.rows(target);
    return CopySegment{slices_.activation(source, output_, source, rows),
                       slices_.activation(target, output_, source, rows)};
  };
  emit_all_to_all(builder_, group(), exchange);
  for (const int device : members()) {
    const auto slice_of = [&](int owner) {
      return slices_.activation(device, output_, owner, builder_.rows(device));
    };
    rearrange_output(fmt::format("gather {} @{}", name, device), stages::send_activations, device,
                     builder_.tensor(device, output_), slice_of, Direction::to_rows);
  }
}

void ColumnParallelLinear::emit_scatter_gradient() {
  const std::string what = slices_.producer(output_) + " activation gradients";
  const Stage stage = stages::send_activation_gradients;
  const ReduceScatter& scatter = slices_.rounds().of(index_).front().received;
  const auto part = [&](int source, int owner) {  // where it is cut out of the rows of `source`
    const Interval rows = builder_.rows(source);
    return source == owner
               ? slices_.gradient(owner, output_, rows)
               : slices_.partial_gradient(source, output_, source, owner, scatter, rows);
  };
  for (const int device : members()) {
    rearrange_output(
        fmt::format("scatter {} @{}", what, device), stage, device,
        builder_.tensor_gradient(device, output_), [&](int owner) { return part(device, owner); },
        Direction::to_slices);
  }
  for (const int source : members()) {
    for (const int owner : members()) {
      if (source == owner) continue;
      const Region arrived = slices_.gradient(owner, output_, builder_.rows(source));
      builder_.emit_transfer(fmt::format("send slices of {}", what), stage, index_, source, owner,
                             {{part(source, owner), arrived}}, When::every_micro_batch,
                             full_duplex);
    }
  }
}

}  // namespace tandem
