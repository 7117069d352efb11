// The memory half of the plan builder: where every tensor, gradient and array of a plan lives.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "core/data/loader.h"
#include "core/schedule/builder/plan_builder.h"
#include "core/schedule/plan/buffers.h"

namespace tandem {

namespace {

// Tensor names may come again after a layer run in place, so buffers are named by who produces.
std::string output_name(const Net& net, int tensor) {
  const Tensor& t = net.tensors[size_t(tensor)];
  const Layer& producer = net.layers[size_t(t.producer)];
  if (producer.outputs.size() == 1) return producer.name + " output";
  for (size_t i = 0; i < producer.outputs.size(); ++i) {
    if (producer.outputs[i] == tensor) return fmt::format("{} output {}", producer.name, i);
  }
  return fmt::format("{} output of {}", t.name, producer.name);
}

}  // namespace

int PlanBuilder::buffer(const Buffer& description) {
  const auto [found, is_new] = buffers_.try_emplace({description.device, description.name},
                                                    static_cast<int>(plan_.buffers.size()));
  if (is_new) plan_.buffers.push_back(description);
  return found->second;
}

Buffer PlanBuilder::at(int shard, const std::string& name, int64_t bytes, int slots) const {
  const Shard& s = shards_[size_t(shard)];
  return {s.name.empty() ? name : fmt::format("{} ({})", name, s.name),
          s.device,
          BufferKind::transient,
          bytes,
          slots,
          {}};
}

const std::vector<Shape>& PlanBuilder::shapes(int shard) {
  const int64_t count = rows(shard).count();
  const auto found = shapes_.find(count);
  return found != shapes_.end() ? found->second
                                : shapes_.emplace(count, net().shapes(count)).first->second;
}

BatchLayout PlanBuilder::batch_layout(int64_t row_count) const {
  Shape sample = net().tensors[size_t(net().data)].shape;
  sample.n = 1;
  std::vector<Shape> more;
  for (const int input : net().more_inputs) more.push_back(net().tensors[size_t(input)].shape);
  return make_batch_layout(row_count, sample, more);
}

BatchLayout PlanBuilder::global_layout() const {
  const BatchLayout floats = batch_layout(net().batch);
  return inputs_.bytes
             ? make_batch_layout(floats.rows, floats.sample, floats.more, PixelForm::bytes)
             : floats;
}

Region PlanBuilder::input(int shard) {
  const int64_t bytes = batch_layout(rows(shard).count()).bytes;
  return {buffer(at(shard, buffers::input, bytes, 2)), 0, bytes};
}

Region PlanBuilder::step(int shard) {
  return {input(shard).buffer, 0, sizeof(tandem_step)};
}

Region PlanBuilder::weights(int device, Interval range) {
  return {
      buffer(
          {buffers::weights, device, BufferKind::persistent, buffers::weight_bytes(net()), 1, {}}),
      range.begin, range.count()};
}

// Gradients that several batches add to outlive a step.
BufferKind PlanBuilder::gradients_kind() const {
  return plan_.micro_batches_per_step > 1 ? BufferKind::persistent : BufferKind::transient;
}

Region PlanBuilder::weight_array(const std::string& name, int device, BufferKind kind,
                                 Interval range) {
  const int index = buffer({name, device, kind, buffers::weight_bytes(net()), 1, {}});
  weight_arrays_.insert(index);
  return {index, range.begin, range.count()};
}

Region PlanBuilder::gradients(int device, Interval range) {
  return weight_array(buffers::gradients, device, gradients_kind(), range);
}

Region PlanBuilder::received_gradients(int sender, Interval range, int root) {
  return arriving_gradients(root, fmt::format("received gradients @{}", sender), range);
}

Region PlanBuilder::arriving_gradients(int device, const std::string& name, Interval range) {
  return weight_array(name, device, BufferKind::transient, range);
}

Region PlanBuilder::found_inf(int device) {
  const Buffer description{buffers::found_inf,    device, BufferKind::persistent,
                           buffers::scalar_bytes, 1,      {}};
  return {buffer(description), 0, sizeof(int32_t)};
}

std::vector<Region> PlanBuilder::norms(int device, const std::vector<int>& arrays) {
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

Region PlanBuilder::metrics(int shard) {
  const int64_t bytes = static_cast<int64_t>(net().scalars.size()) * buffers::scalar_bytes;
  return {buffer(at(shard, buffers::metrics, bytes)), 0, bytes};
}

Region PlanBuilder::metric(int shard, int scalar) {
  return {metrics(shard).buffer, scalar * buffers::scalar_bytes, sizeof(float)};
}

Region PlanBuilder::received_metrics(int sender, int root) {
  const int64_t bytes = metrics(sender).bytes;
  return {buffer(at(root, fmt::format("received metrics @{}", sender), bytes)), 0, bytes};
}

int64_t PlanBuilder::tensor_bytes(int shard, int index) {
  return element_count(shapes(shard)[size_t(index)]) *
         dtype_bytes(net().tensors[size_t(index)].dtype);
}

Region PlanBuilder::tensor(int shard, int index) {
  if (const int scalar = scalar_of_tensor_[size_t(index)]; scalar >= 0) {
    return metric(shard, scalar);
  }
  const int root = net().values_of(index);
  const int64_t bytes = tensor_bytes(shard, root);
  if (net().tensors[size_t(root)].producer >= 0) {
    return {buffer(at(shard, output_name(net(), root), bytes)), 0, bytes};
  }
  const BatchLayout layout = batch_layout(rows(shard).count());
  const Region all = input(shard);
  if (root == net().data) return {all.buffer, layout.data_offset, bytes};
  if (root == net().label) return {all.buffer, layout.label_offset, bytes};
  const auto more = std::find(net().more_inputs.begin(), net().more_inputs.end(), root);
  return {all.buffer, layout.more_offsets[size_t(more - net().more_inputs.begin())], bytes};
}

Region PlanBuilder::tensor_gradient(int shard, int index) {
  const int root = net().gradient_of(index);
  const int64_t bytes = tensor_bytes(shard, root);
  const std::string of = net().tensors[size_t(root)].producer >= 0
                             ? output_name(net(), root)
                             : net().tensors[size_t(root)].name;
  return {buffer(at(shard, of + " gradient", bytes)), 0, bytes};
}

namespace {

Region some_of(const Region& region, Interval all, Interval some) {
  const int64_t row = region.bytes / all.count();
  return {region.buffer, region.offset + (some.begin - all.begin) * row, some.count() * row};
}

}  // namespace

Region PlanBuilder::tensor(int shard, int index, Interval some) {
  return some_of(tensor(shard, index), rows(shard), some);
}

Region PlanBuilder::tensor_gradient(int shard, int index, Interval some) {
  return some_of(tensor_gradient(shard, index), rows(shard), some);
}

// A loss's own output gradient is its weight in the sum.
Region PlanBuilder::output_gradient(int shard, int layer, size_t output) {
  const int tensor = net().layers[size_t(layer)].outputs[output];
  const int scalar = scalar_of_tensor_[size_t(tensor)];
  if (scalar >= 0) return constant(device_of(shard), scalar);
  return net().tensors[size_t(tensor)].has_gradient ? tensor_gradient(shard, tensor) : Region{};
}

namespace {

int64_t statistics_bytes(const Net& net, int layer, LayerPass pass) {
  const tandem_layer_statistics floats = net.statistics(layer);
  return 4 * (pass == LayerPass::forward_statistics ? floats.forward : floats.backward);
}

}  // namespace

Region PlanBuilder::statistics(int device, int layer, LayerPass pass) {
  const int64_t bytes = statistics_bytes(net(), layer, pass);
  if (bytes == 0) return {};
  const std::string name = fmt::format("{} {}", net().layers[size_t(layer)].name, to_string(pass));
  return {buffer({name, device, BufferKind::transient, bytes, 1, {}}), 0, bytes};
}

Region PlanBuilder::received_statistics(int sender, int layer, LayerPass pass, int root) {
  const int64_t bytes = statistics_bytes(net(), layer, pass);
  const std::string name =
      fmt::format("received {} {} @{}", net().layers[size_t(layer)].name, to_string(pass), sender);
  return {buffer({name, root, BufferKind::transient, bytes, 1, {}}), 0, bytes};
}

// Where the layer's pass puts it: in the net's array, or beside it (see has_own_gradient()).
Region PlanBuilder::weight_gradient(int device, int layer, int weight) {
  const WeightArray& array = net().weights[size_t(weight)];
  if (!has_own_gradient(layer, weight)) {
    return gradients(device, buffers::bytes_of(array));
  }
  const std::string name =
      fmt::format("{} gradient of {}", net().layers[size_t(layer)].name, array.name);
  const int64_t bytes = buffers::bytes_of(array).count();
  return {buffer({name, device, gradients_kind(), bytes, 1, {}}), 0, bytes};
}

PlanBinding PlanBuilder::describe(int shard, int layer) {
  const Layer& l = net().layers[size_t(layer)];
  const bool trains = purpose_ == Purpose::training;
  const int device = device_of(shard);
  PlanBinding use;
  use.layer = layer;
  use.device = device;
  use.rows = rows(shard);
  use.activation = l.activation;
  for (size_t i = 0; i < l.inputs.size(); ++i) {
    const bool wanted = trains && l.wants_backward_data && l.may_take_gradient(i) &&
                        net().tensors[size_t(l.inputs[i])].has_gradient;
    use.inputs.push_back(tensor(shard, l.inputs[i]));
    use.input_gradients.push_back(wanted ? tensor_gradient(shard, l.inputs[i]) : Region{});
  }
  for (size_t i = 0; i < l.outputs.size(); ++i) {
    use.outputs.push_back(tensor(shard, l.outputs[i]));
    use.output_gradients.push_back(trains && l.has_backward() ? output_gradient(shard, layer, i)
                                                              : Region{});
  }
  for (const int weight : l.weights) {
    const WeightArray& array = net().weights[size_t(weight)];
    const Interval range = buffers::bytes_of(array);
    // A frozen array's gradient is made all the same: a layer computes its weights' gradients
    // together, and the update leaves out what is not trained.
    const bool wanted = trains && l.wants_backward_weights && array.kind == TANDEM_TRAINED;
    use.weights.push_back(weights(device, range));
    use.weight_gradients.push_back(!wanted ? Region{} : weight_gradient(device, layer, weight));
  }
  use.step = step(shard);
  if (l.has(TANDEM_LOSS) || l.has(TANDEM_METRIC)) {
    constexpr int64_t samples = offsetof(tandem_step, samples);
    use.normaliser = {use.step.buffer, samples, sizeof(float)};
    const int64_t rows_here = rows(shard).count();
    use.row_labels = {input(shard).buffer, batch_layout(rows_here).label_offset, rows_here * 4};
  }
  use.forward_statistics = statistics(device, layer, LayerPass::forward_statistics);
  if (trains && l.has_backward()) {
    use.backward_statistics = statistics(device, layer, LayerPass::backward_statistics);
  }
  // Their sizes are the kernel's to say, also where nothing is read backward.
  use.saved = buffer(at(shard, l.name + " saved", 0));
  // Of each pass, so that a layer's large one takes the room of what has not begun yet.
  const auto scratch = [&](const char* pass) {
    return buffer(
        {fmt::format("{} {} scratch", l.name, pass), device, BufferKind::transient, 0, 1, {}});
  };
  use.scratch = scratch("forward");
  use.backward_scratch = trains && l.has_backward() ? scratch("backward") : use.scratch;
  return use;
}

int PlanBuilder::add_binding(PlanBinding use) {
  plan_.bindings.push_back(std::move(use));
  return static_cast<int>(plan_.bindings.size()) - 1;
}

int PlanBuilder::binding(int shard, int layer) {
  if (const auto found = bindings_.find({shard, layer}); found != bindings_.end()) {
    return found->second;
  }
  return bindings_[{shard, layer}] = add_binding(describe(shard, layer));
}

}  // namespace tandem
