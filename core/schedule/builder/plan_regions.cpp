#include "core/schedule/builder/plan_regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

#include "core/base/error.h"
#include "core/model/net/loss_scale.h"
#include "core/schedule/plan/buffers.h"
#include "core/schedule/plan/memory_plan.h"
#include "core/schedule/plan/packing.h"

namespace tandem {
namespace {

std::vector<Interval> shares(const StrategyInputs& inputs, const std::string& strategy) {
  const int64_t batch = inputs.net->batch;
  const int devices = inputs.devices;
  if (devices < 1) throw error("strategy '{}' on {} devices: at least 1", strategy, devices);
  if (batch < devices) {
    throw error(
        "batch {} is smaller than the {} devices: every device needs at least one row, so use a "
        "batch of {} or more, or {} devices or fewer",
        batch, devices, devices, batch);
  }
  std::vector<Interval> rows;
  for (int device = 0; device < devices; ++device) rows.push_back(share(batch, devices, device));
  return rows;
}

int64_t statistics_bytes(const Net& net, int layer, LayerPass pass) {
  const tandem_layer_statistics floats = net.statistics(layer);
  return buffers::float_bytes *
         (pass == LayerPass::forward_statistics ? floats.forward : floats.backward);
}

}  // namespace

PlanRegions::PlanRegions(const StrategyInputs& inputs, const std::string& strategy, Purpose purpose)
    : PlanRegions(inputs, strategy, purpose, shares(inputs, strategy)) {}

PlanRegions::PlanRegions(const StrategyInputs& inputs, const std::string& strategy, Purpose purpose,
                         const std::vector<Interval>& rows)
    : inputs_(inputs),
      purpose_(purpose),
      scalar_of_tensor_(inputs.net->tensors.size(), -1),
      number_of_output_(inputs.net->tensors.size(), -1) {
  for (size_t device = 0; device < rows.size(); ++device) {
    shards_.push_back({static_cast<int>(device), rows[device], ""});
  }
  weight_buffers_.resize(size_t(devices()));
  memory_of_.resize(size_t(devices()));
  find_scalars();
  number_outputs();
  find_last_users();
  plan_.strategy = strategy;
  plan_.options = inputs_.options;
  plan_.net = net().name;
  plan_.devices = devices();
  plan_.batch = net().batch;
  if (purpose == Purpose::training) plan_.micro_batches_per_step = inputs_.micro_batches_per_step;
}

void PlanRegions::find_scalars() {
  for (size_t i = 0; i < net().scalars.size(); ++i) {
    const Scalar& scalar = net().scalars[i];
    const Tensor& tensor = net().tensor(scalar.tensor);
    if (element_count(tensor.shape) != 1) {
      throw error("{}: output '{}' is {}; a loss or metric reports a single number",
                  net().layer(scalar.layer).title(), scalar.name, to_string(tensor.shape));
    }
    scalar_of_tensor_[size_t(scalar.tensor)] = static_cast<int>(i);
  }
}

void PlanRegions::number_outputs() {
  for (size_t layer = 0; layer < net().layers.size(); ++layer) {
    const std::vector<int>& outputs = net().layers[layer].outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const size_t output = size_t(outputs[i]);
      if (net().tensors[output].producer != static_cast<int>(layer)) continue;
      number_of_output_[output] = static_cast<int>(i);
    }
  }
}

void PlanRegions::find_last_users() {
  last_users_.assign(net().weights.size(), -1);
  for (size_t i = 0; i < net().layers.size(); ++i) {
    if (!net().layers[i].wants_backward_weights) continue;
    for (const int weight : net().layers[i].weights) {
      last_users_[size_t(weight)] = static_cast<int>(i);
    }
  }
}

void PlanRegions::pack() {
  pack_buffers(plan_, {weight_arrays_.begin(), weight_arrays_.end()});
}

int PlanRegions::add_shard(int device, Interval rows, const std::string& name) {
  shards_.push_back({device, rows, name});
  return static_cast<int>(shards_.size()) - 1;
}

// Tensor names may come again after a layer run in place, so buffers are named by who produces.
std::string PlanRegions::output_name(int tensor) const {
  const Tensor& t = net().tensor(tensor);
  const Layer& producer = net().layer(t.producer);
  if (producer.outputs.size() == 1) return producer.name + " output";
  const int number = number_of_output_[size_t(tensor)];
  return number >= 0 ? fmt::format("{} output {}", producer.name, number)
                     : fmt::format("{} output of {}", t.name, producer.name);
}

int PlanRegions::buffer(const Buffer& description) {
  // The factor is 2^64 divided by the golden ratio, which spreads neighboring numbers evenly.
  const size_t hash = std::hash<std::string>()(description.name) +
                      0x9e3779b97f4a7c15 * size_t(description.device + 1);
  const auto [first, last] = buffers_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    const Buffer& other = plan_.buffer(known->second);
    if (other.device == description.device && other.name == description.name) return known->second;
  }
  const int index = static_cast<int>(plan_.buffers.size());
  plan_.buffers.push_back(description);
  buffers_.emplace(hash, index);
  return index;
}

Region PlanRegions::transient(int device, const std::string& name, int64_t bytes) {
  return {buffer({name, device, BufferKind::transient, bytes, 1, {}}), 0, bytes};
}

Buffer PlanRegions::at(int shard, const std::string& name, int64_t bytes, int slots) const {
  const Shard& s = shards_[size_t(shard)];
  return {s.name.empty() ? name : fmt::format("{} ({})", name, s.name),
          s.device,
          BufferKind::transient,
          bytes,
          slots,
          {}};
}

const std::vector<Shape>& PlanRegions::shapes(int shard) {
  const int64_t count = rows(shard).count();
  const auto found = shapes_.find(count);
  return found != shapes_.end() ? found->second
                                : shapes_.emplace(count, net().shapes(count)).first->second;
}

BatchLayout PlanRegions::batch_layout(int64_t row_count) const {
  Shape sample = net().tensor(net().data).shape;
  sample.n = 1;
  std::vector<Shape> more;
  for (const int input : net().more_inputs) more.push_back(net().tensor(input).shape);
  return make_batch_layout(row_count, sample, more);
}

BatchLayout PlanRegions::global_layout() const {
  const BatchLayout floats = batch_layout(net().batch);
  return inputs_.bytes
             ? make_batch_layout(floats.rows, floats.sample, floats.more, PixelForm::bytes)
             : floats;
}

Region PlanRegions::input(int shard) {
  Region& known = shards_[size_t(shard)].input;
  if (known.buffer >= 0) return known;
  const int64_t bytes = batch_layout(rows(shard).count()).bytes;
  return known = {buffer(at(shard, buffers::input, bytes, 2)), 0, bytes};
}

Region PlanRegions::step(int shard) {
  return {input(shard).buffer, 0, sizeof(tandem_step)};
}

Region PlanRegions::weights(int device, Interval range) {
  int& known = weight_buffers_[size_t(device)].weights;
  if (known < 0) {
    known = buffer({buffers::weights,
                    device,
                    BufferKind::persistent,
                    buffers::weight_bytes(net()),
                    1,
                    {},
                    false,
                    memory_of_[size_t(device)]});
  }
  return {known, range.begin, range.count()};
}

// Gradients that several batches add to outlive a step; memory of their own is no device's arena.
BufferKind PlanRegions::gradients_kind(int device) const {
  const bool is_kept = plan_.micro_batches_per_step > 1 || !memory_of_[size_t(device)].empty();
  return is_kept ? BufferKind::persistent : BufferKind::transient;
}

Region PlanRegions::weight_array(const std::string& name, int device, BufferKind kind,
                                 Interval range) {
  const int index = buffer({name, device, kind, buffers::weight_bytes(net()), 1, {}});
  weight_arrays_.insert(index);
  return {index, range.begin, range.count()};
}

Region PlanRegions::gradients(int device, Interval range) {
  int& known = weight_buffers_[size_t(device)].gradients;
  if (known < 0) {
    known = weight_array(buffers::gradients, device, gradients_kind(device), range).buffer;
    plan_.buffer(known).memory = memory_of_[size_t(device)];
  }
  return {known, range.begin, range.count()};
}

std::vector<CopySegment> PlanRegions::copies(WeightsOrGradients array, int source, int target,
                                             const std::vector<Interval>& ranges) {
  std::vector<CopySegment> segments;
  for (const Interval& range : ranges) {
    segments.push_back({(this->*array)(source, range), (this->*array)(target, range)});
  }
  return segments;
}

Region PlanRegions::received_gradients(int sender, Interval range, int root) {
  return arriving_gradients(root, fmt::format("received gradients @{}", sender), range);
}

Region PlanRegions::arriving_gradients(int device, const std::string& name, Interval range) {
  return weight_array(name, device, BufferKind::transient, range);
}

Region PlanRegions::found_inf(int device) {
  const Buffer description{buffers::found_inf,    device, BufferKind::persistent,
                           buffers::scalar_bytes, 1,      {}};
  return {buffer(description), 0, sizeof(int32_t)};
}

std::vector<Region> PlanRegions::norms(int device, const std::vector<int>& arrays) {
  constexpr int64_t one = sizeof(double);
  const int all =
      buffer({buffers::norms, device, BufferKind::persistent, buffers::norms_bytes(net()), 1, {}});
  std::vector<Region> regions;
  for (const int array : arrays) {
    const int64_t weights = static_cast<int64_t>(net().weights.size());
    regions.push_back({all, array * one, one});
    regions.push_back({all, (weights + array) * one, one});
  }
  return regions;
}

Region PlanRegions::metrics(int shard) {
  Region& known = shards_[size_t(shard)].metrics;
  if (known.buffer >= 0) return known;
  const int64_t bytes = static_cast<int64_t>(net().scalars.size()) * buffers::scalar_bytes;
  return known = {buffer(at(shard, buffers::metrics, bytes)), 0, bytes};
}

Region PlanRegions::metric(int shard, int scalar) {
  return {metrics(shard).buffer, scalar * buffers::scalar_bytes, sizeof(float)};
}

Region PlanRegions::received_metrics(int sender, int root) {
  const int64_t bytes = metrics(sender).bytes;
  return {buffer(at(root, fmt::format("received metrics @{}", sender), bytes)), 0, bytes};
}

int64_t PlanRegions::tensor_bytes(int shard, int index) {
  return element_count(shapes(shard)[size_t(index)]) * dtype_bytes(net().tensor(index).dtype);
}

Region PlanRegions::tensor(int shard, int index) {
  if (const int scalar = scalar_of_tensor_[size_t(index)]; scalar >= 0) {
    return metric(shard, scalar);
  }
  const int root = net().values_of(index);
  const int64_t bytes = tensor_bytes(shard, root);
  if (net().tensor(root).producer >= 0) {
    const auto describe = [&] { return at(shard, output_name(root), bytes); };
    return {known_buffer(shards_[size_t(shard)].tensors, root, describe), 0, bytes};
  }
  const BatchLayout layout = batch_layout(rows(shard).count());
  const Region all = input(shard);
  if (root == net().data) return {all.buffer, layout.data_offset, bytes};
  if (root == net().label) return {all.buffer, layout.label_offset, bytes};
  const auto more = std::find(net().more_inputs.begin(), net().more_inputs.end(), root);
  return {all.buffer, layout.more_offsets[size_t(more - net().more_inputs.begin())], bytes};
}

Region PlanRegions::tensor_gradient(int shard, int index) {
  const int root = net().gradient_of(index);
  const int64_t bytes = tensor_bytes(shard, root);
  const auto describe = [&] {
    const Tensor& of = net().tensor(root);
    return at(shard, (of.producer >= 0 ? output_name(root) : of.name) + " gradient", bytes);
  };
  return {known_buffer(shards_[size_t(shard)].gradients, root, describe), 0, bytes};
}

Region part_of(const Region& whole, Interval all, Interval some) {
  if (whole.buffer < 0) return whole;
  const int64_t one = whole.bytes / all.count();
  return {whole.buffer, whole.offset + (some.begin - all.begin) * one, some.count() * one};
}

Region PlanRegions::tensor(int shard, int index, Interval some) {
  return part_of(tensor(shard, index), rows(shard), some);
}

Region PlanRegions::tensor_gradient(int shard, int index, Interval some) {
  return part_of(tensor_gradient(shard, index), rows(shard), some);
}

// A loss's own output gradient is its weight in the sum.
Region PlanRegions::output_gradient(int shard, int layer, size_t output) {
  const int tensor = net().layer(layer).outputs[output];
  const int scalar = scalar_of_tensor_[size_t(tensor)];
  if (scalar >= 0) return constant(device_of(shard), scalar);
  return net().tensor(tensor).has_gradient ? tensor_gradient(shard, tensor) : Region{};
}

Region PlanRegions::statistics(int device, int layer, LayerPass pass) {
  const int64_t bytes = statistics_bytes(net(), layer, pass);
  if (bytes == 0) return {};
  const std::string name = fmt::format("{} {}", net().layer(layer).name, to_string(pass));
  return transient(device, name, bytes);
}

Region PlanRegions::received_statistics(int sender, int layer, LayerPass pass, int root) {
  const int64_t bytes = statistics_bytes(net(), layer, pass);
  const std::string name =
      fmt::format("received {} {} @{}", net().layer(layer).name, to_string(pass), sender);
  return transient(root, name, bytes);
}

// Where the layer's pass puts it: in the net's array, or beside it (see has_own_gradient()).
Region PlanRegions::weight_gradient(int device, int layer, int weight) {
  const WeightArray& array = net().weight(weight);
  if (!has_own_gradient(layer, weight)) {
    return gradients(device, buffers::bytes_of(array));
  }
  const std::string name = fmt::format("{} gradient of {}", net().layer(layer).name, array.name);
  const int64_t bytes = buffers::bytes_of(array).count();
  return {buffer({name, device, gradients_kind(device), bytes, 1, {}}), 0, bytes};
}

Region PlanRegions::constant(int device, int scalar) {
  const auto [known, is_new] = constants_.try_emplace(device, -1);
  if (is_new) known->second = buffer(constants_of(device));
  return {known->second, scalar * buffers::scalar_bytes, sizeof(float)};
}

Buffer PlanRegions::constants_of(int device) const {
  constexpr size_t floats = buffers::scalar_bytes / sizeof(float);
  const std::vector<Scalar>& scalars = net().scalars;
  const double scale = loss_scale(net());
  Buffer description{buffers::constants,
                     device,
                     BufferKind::persistent,
                     0,
                     1,
                     std::vector<float>(scalars.size() * floats, 0.0F)};
  for (size_t i = 0; i < scalars.size(); ++i) {
    description.initial[i * floats] = static_cast<float>(scalars[i].loss_weight * scale);
  }
  description.bytes = static_cast<int64_t>(description.initial.size() * sizeof(float));
  return description;
}

// A pass adds to all of its weights' gradients or overwrites all. A layer may share only some of
// its weights. Then the gradients of the shared ones are made in memory of their own and added
// after the pass, except by the layer whose backward pass runs first.
bool PlanRegions::has_own_gradient(int layer, int weight) const {
  const auto is_first = [this, layer](int w) { return last_users_[size_t(w)] == layer; };
  const Layer& l = net().layer(layer);
  const bool starts_any = std::any_of(l.weights.begin(), l.weights.end(), [&](int w) {
    return net().weight(w).kind == TANDEM_TRAINED && is_first(w);
  });
  return starts_any && !is_first(weight);
}

StateRegion PlanRegions::keep_state(int device, Interval range, bool is_extended) {
  if (inputs_.solver_states == 0) return {};
  const char* name = is_extended ? buffers::extended_state : buffers::state;
  const std::string memory = is_extended ? memory_of_[size_t(device)] : "";
  const int index = buffer({name, device, BufferKind::persistent, 0, 1, {}, is_extended, memory});
  Buffer& state = plan_.buffer(index);
  const int64_t begin = state.bytes, stride = aligned(range.count());
  state.bytes += inputs_.solver_states * stride;
  plan_.state_at.push_back({device, range, begin, stride, is_extended});
  return {{index, begin, range.count()}, stride};
}

void PlanRegions::forget_states() {
  for (Buffer& buffer : plan_.buffers) {
    if (buffer.name == buffers::state || buffer.name == buffers::extended_state) buffer.bytes = 0;
  }
  plan_.state_at.clear();
}

}  // namespace tandem
