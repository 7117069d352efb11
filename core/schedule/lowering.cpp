#include "core/schedule/lowering.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "core/plugin/registry.h"

namespace tandem {

struct Lowering::Resolver {
  const Lowering& lowering;
  int64_t step;
  const std::vector<void*>& externals;

  std::byte* operator()(const Region& region) const {
    return lowering.address(region, step, externals);
  }
  template <class T>
  T* as(const Region& region) const {
    return reinterpret_cast<T*>((*this)(region));
  }
  template <class T>
  std::vector<T*> all(const std::vector<Region>& regions) const {
    std::vector<T*> result;
    for (const Region& region : regions) result.push_back(as<T>(region));
    return result;
  }
  // `count` entries: kernels index them without asking; what the plan leaves out is not wanted.
  template <class Pointer>
  std::vector<Pointer> all(const std::vector<Region>& regions, size_t count) const {
    std::vector<Pointer> result;
    for (const Region& region : regions) result.push_back((*this)(region));
    result.resize(count);
    return result;
  }
};

namespace {

// A pass and the arrays that it points to.
struct LayerPointers {
  std::vector<void*> inputs, outputs, weights, input_gradients, weight_gradients;
  std::vector<const void*> output_gradients;
  tandem_pass pass{};
};

// Data last: where a layer runs in place, its input gradient takes the output gradient's memory.
std::vector<tandem_pass_function> functions(const tandem_kernel& table, LayerPass pass) {
  switch (pass) {
    case LayerPass::forward:
      return {table.forward};
    case LayerPass::backward_data:
      return {table.backward_data};
    case LayerPass::backward_weights:
      return {table.backward_weights};
    case LayerPass::backward:
      if (table.backward != nullptr) return {table.backward};
      return {table.backward_weights, table.backward_data};
    case LayerPass::forward_statistics:
      return {table.forward_statistics};
    case LayerPass::backward_statistics:
      return {table.backward_statistics};
  }
  return {nullptr};
}

const Region& statistics_of(const PlanBinding& binding, LayerPass pass) {
  const bool is_forward = pass == LayerPass::forward || pass == LayerPass::forward_statistics;
  return is_forward ? binding.forward_statistics : binding.backward_statistics;
}

// Neighbours in the weight array with one rule are one update, unless each array has its own rate.
struct UpdatePiece {
  int first = -1;                 // weight array of the net
  int64_t offset = 0, count = 0;  // floats
  double rate_multiplier = 1, decay_multiplier = 1;
};

// What of the piece lies in floats [begin, end).
UpdatePiece clipped(UpdatePiece piece, int64_t begin, int64_t end) {
  const int64_t last = std::min(piece.offset + piece.count, end);
  piece.offset = std::max(piece.offset, begin);
  piece.count = std::max<int64_t>(last - piece.offset, 0);
  return piece;
}

std::vector<UpdatePiece> pieces(const Net& net, const std::vector<int>& weights, bool merge) {
  constexpr int64_t alignment = 16;  // floats, of every array
  std::vector<UpdatePiece> result;
  for (const int index : weights) {
    const WeightArray& array = net.weights[static_cast<size_t>(index)];
    if (!array.trained() || array.count == 0) continue;
    if (merge && !result.empty()) {
      UpdatePiece& last = result.back();
      const int64_t end = last.offset + last.count;
      if ((end + alignment - 1) / alignment * alignment == array.offset &&
          last.rate_multiplier == array.rate_multiplier &&
          last.decay_multiplier == array.decay_multiplier) {
        last.count = array.offset + array.count - last.offset;
        continue;
      }
    }
    result.push_back(
        {index, array.offset, array.count, array.rate_multiplier, array.decay_multiplier});
  }
  return result;
}

std::vector<UpdatePiece> pieces(const Net& net, const std::vector<WeightPart>& parts) {
  std::vector<UpdatePiece> result;
  for (const WeightPart& part : parts) {
    const WeightArray& array = net.weights[static_cast<size_t>(part.weight)];
    if (!array.trained() || part.begin >= part.end) continue;
    result.push_back({part.weight, array.offset + part.begin, part.end - part.begin,
                      array.rate_multiplier, array.decay_multiplier});
  }
  return result;
}

tandem_status no_kernel(const tandem_call&) {
  host_table().explain("the executor was made without kernels");
  return TANDEM_FAILED;
}

}  // namespace

tandem_status Lowered::trampoline(void* context, const tandem_call* call) {
  const Lowered& work = *static_cast<Lowered*>(context);
  for (const Touch& touch : work.touches) {
    volatile std::byte* byte = touch.address;
    const std::byte value = *byte;
    if (touch.writes) *byte = value;
  }
  const tandem_status status = work.run(*call);
  if (status != TANDEM_OK) {
    int64_t none = -1;
    work.failed_step->compare_exchange_strong(none, work.step);
  }
  return status;
}

Lowering::Lowering(const Plan& plan, const MemoryPlan& memory, const Net& net,
                   const Runtime& runtime, const Kernels* kernels, const CostTable* costs,
                   const UpdateRule& rule, bool communication)
    : plan_(plan),
      memory_(memory),
      net_(net),
      runtime_(runtime),
      kernels_(kernels),
      costs_(costs),
      rule_(rule),
      communication_(communication),
      touches_(sanitizes_threads && runtime.machine().kind() == "cpu") {}

std::byte* Lowering::address(const Region& region, int64_t step,
                             const std::vector<void*>& externals) const {
  if (region.buffer < 0) return nullptr;
  const auto index = static_cast<size_t>(region.buffer);
  const Buffer& buffer = plan_.buffers[index];
  std::byte* base = nullptr;
  switch (buffer.kind) {
    case BufferKind::external:
      base = static_cast<std::byte*>(externals[index]);
      return base == nullptr ? nullptr : base + region.offset;
    case BufferKind::persistent:
      base = runtime_.persistent(buffer.name, buffer.device);
      break;
    case BufferKind::transient:
      base = runtime_.transient(buffer.device);
      if (base != nullptr) base += memory_.places[index].offset;
      break;
  }
  if (base == nullptr) return nullptr;
  return base + (step % buffer.slots) * slot_stride(buffer) + region.offset;
}

Lowered Lowering::lower(int task_index, int64_t step, const std::vector<void*>& externals) const {
  const Task& task = plan_.tasks[static_cast<size_t>(task_index)];
  const Resolver at{*this, step, externals};
  Lowered result;
  result.step = step;
  if (const auto* copy = std::get_if<CopyWork>(&task.work)) {
    lower_copies(*copy, at, result);
    return result;
  }
  if (const auto* layer = std::get_if<LayerWork>(&task.work)) {
    lower_layer(task, *layer, at, result);
  } else if (const auto* add = std::get_if<AddWork>(&task.work)) {
    lower_sum(add->target, add->sources, at, result);
  } else if (const auto* merge = std::get_if<MergeWork>(&task.work)) {
    lower_merge(*merge, at, result);
  } else if (const auto* norms = std::get_if<NormWork>(&task.work)) {
    lower_norms(*norms, at, result);
  } else if (const auto* update = std::get_if<UpdateWork>(&task.work)) {
    lower_update(*update, at, result);
  } else {
    lower_check(std::get<CheckWork>(task.work), at, result);
  }
  if (costs_ != nullptr) result.predicted_seconds = costs_->seconds(net_, plan_, task);
  if (touches_) note_touches(task, at, result);
  return result;
}

void Lowering::lower_copies(const CopyWork& work, const Resolver& at, Lowered& result) const {
  const auto device = [&](const Region& region) {
    return plan_.buffers[static_cast<size_t>(region.buffer)].device;
  };
  for (const CopySegment& segment : work.segments) {
    const int source = device(segment.source), target = device(segment.target);
    if (!communication_ && source >= 0 && target >= 0 && source != target) continue;
    const int64_t bytes = plan_.bytes(segment.source);
    if (bytes == 0) continue;
    result.copies.push_back({target, at(segment.target), source, at(segment.source), bytes});
  }
}

void Lowering::lower_layer(const Task& task, const LayerWork& work, const Resolver& at,
                           Lowered& result) const {
  if (kernels_ == nullptr) {
    result.run = &no_kernel;
    return;
  }
  const PlanBinding& binding = plan_.bindings[static_cast<size_t>(work.binding)];
  const Layer& layer = net_.layers[static_cast<size_t>(binding.layer)];
  const size_t inputs = layer.inputs.size(), outputs = layer.outputs.size(),
               weights = layer.weights.size();
  // Batches of one update after its first add to the gradients of the batches before.
  const bool accumulates = work.accumulate || at.step % plan_.batches_per_update != 0;
  const auto pointers = std::make_shared<LayerPointers>();
  pointers->inputs = at.all<void*>(binding.inputs, inputs);
  pointers->outputs = at.all<void*>(binding.outputs, outputs);
  pointers->weights = at.all<void*>(binding.weights, weights);
  pointers->input_gradients = at.all<void*>(binding.input_gradients, inputs);
  pointers->output_gradients = at.all<const void*>(binding.output_gradients, outputs);
  pointers->weight_gradients = at.all<void*>(binding.weight_gradients, weights);
  pointers->pass = {sizeof(tandem_pass),
                    accumulates ? static_cast<uint32_t>(TANDEM_ACCUMULATE) : 0,
                    pointers->inputs.data(),
                    pointers->outputs.data(),
                    pointers->weights.data(),
                    pointers->input_gradients.data(),
                    pointers->output_gradients.data(),
                    pointers->weight_gradients.data(),
                    at({binding.saved}),
                    at({binding.scratch}),
                    at.as<const tandem_step>(binding.step),
                    at.as<const float>(binding.normaliser),
                    at.as<float>(statistics_of(binding, work.pass)),
                    at.as<const float>(binding.row_labels)};
  const auto passes = functions(kernels_->table(work.binding), work.pass);
  for (const tandem_pass_function function : passes) {
    if (function != nullptr) continue;
    throw error("task '{}': {} has no {} on '{}'", task.label, layer.title(), to_string(work.pass),
                runtime_.machine().kind());
  }
  result.run = [handle = kernels_->handle(work.binding), pointers,
                passes](const tandem_call& call) {
    tandem_status status = TANDEM_OK;
    for (size_t i = 0; i < passes.size() && status == TANDEM_OK; ++i) {
      status = passes[i](handle, &call, &pointers->pass);
    }
    return status;
  };
}

void Lowering::lower_sum(const Region& target, const std::vector<Region>& sources,
                         const Resolver& at, Lowered& result) const {
  result.run = [add = runtime_.machine().backend().add, to = at.as<float>(target),
                from = at.all<const float>(sources),
                count = plan_.bytes(target) / 4](const tandem_call& call) {
    return add(&call, to, from.data(), static_cast<uint32_t>(from.size()), count);
  };
}

void Lowering::lower_merge(const MergeWork& work, const Resolver& at, Lowered& result) const {
  if (kernels_ == nullptr) {
    result.run = &no_kernel;
    return;
  }
  const tandem_merge_function merge = kernels_->table(work.binding).merge_forward_statistics;
  if (merge == nullptr || work.pass != LayerPass::forward_statistics) {
    return lower_sum(work.target, work.sources, at, result);
  }
  result.run = [merge, handle = kernels_->handle(work.binding), to = at.as<float>(work.target),
                from = at.all<const float>(work.sources)](const tandem_call& call) {
    return merge(handle, &call, to, from.data(), static_cast<uint32_t>(from.size()));
  };
}

void Lowering::lower_norms(const NormWork& work, const Resolver& at, Lowered& result) const {
  struct Sum {
    const float* values;
    int64_t count;
    double* target;
  };
  std::vector<Sum> sums;
  auto* norms = at.as<double>(work.norms);
  const size_t arrays = net_.weights.size();
  for (const int index : work.weights) {
    const WeightArray& array = net_.weights[static_cast<size_t>(index)];
    if (!array.trained() || array.count == 0) continue;
    sums.push_back(
        {at.as<const float>(work.gradients_buffer) + array.offset, array.count, norms + index});
    sums.push_back({at.as<const float>(work.weights_buffer) + array.offset, array.count,
                    norms + arrays + index});
  }
  const auto function = runtime_.machine().backend().sum_of_squares;
  result.run = [function, sums = std::move(sums)](const tandem_call& call) {
    tandem_status status = TANDEM_OK;
    for (size_t i = 0; i < sums.size() && status == TANDEM_OK; ++i) {
      status = function(&call, sums[i].values, sums[i].count, sums[i].target);
    }
    return status;
  };
}

tandem_update Lowering::update_of(const UpdateWork& work, const Resolver& at) const {
  tandem_update update{};
  update.struct_size = sizeof update;
  update.rule = rule_.rule;
  update.momentum = rule_.momentum;
  update.step = at.as<const tandem_step>(work.step);
  update.skip = at.as<const int32_t>(work.skip);
  update.momentum2 = rule_.momentum2;
  update.delta = rule_.delta;
  update.clip = rule_.clip;
  update.gradient_scale = 1.0 / rule_.batches;
  update.trust_coefficient = rule_.trust_coefficient;
  update.gradient_squares = at.as<const double>(work.norms);
  update.gradient_square_count = static_cast<uint32_t>(net_.weights.size());
  return update;
}

void Lowering::lower_update(const UpdateWork& work, const Resolver& at, Lowered& result) const {
  struct Updates {
    std::vector<std::vector<float*>> states;
    std::vector<tandem_update> updates;
  };
  const auto all = std::make_shared<Updates>();
  const auto* norms = at.as<const double>(work.norms);
  // Where the state of the net's first weight would be, and from one solver array to the next.
  const int64_t state_begin = work.is_part ? (work.state_begin - work.begin) / 4 : 0;
  const int64_t stride = work.is_part ? work.state_stride / 4 : net_.weight_floats;
  const std::vector<UpdatePiece> all_pieces =
      work.parts.empty() ? pieces(net_, work.weights, rule_.rule != TANDEM_UPDATE_LARS)
                         : pieces(net_, work.parts);
  for (UpdatePiece piece : all_pieces) {
    if (work.is_part) piece = clipped(piece, work.begin / 4, (work.begin + work.bytes) / 4);
    if (piece.count == 0) continue;
    std::vector<float*>& states = all->states.emplace_back();
    for (int k = 0; k < rule_.states; ++k) {
      states.push_back(at.as<float>(work.state_buffer) + k * stride + state_begin + piece.offset);
    }
    tandem_update& update = all->updates.emplace_back(update_of(work, at));
    update.count = piece.count;
    update.weights = at.as<float>(work.weights_buffer) + piece.offset;
    update.gradient = at.as<const float>(work.gradients_buffer) + piece.offset;
    update.state = states.data();
    update.state_count = static_cast<uint32_t>(states.size());
    update.decay = static_cast<float>(rule_.weight_decay * piece.decay_multiplier);
    update.l1_decay = static_cast<float>(rule_.l1_decay * piece.decay_multiplier);
    update.rate_multiplier = static_cast<float>(piece.rate_multiplier);
    if (norms == nullptr) continue;
    update.gradient_square = norms + piece.first;
    update.weight_square = norms + net_.weights.size() + piece.first;
  }
  result.run = [update = runtime_.machine().backend().update, all](const tandem_call& call) {
    tandem_status status = TANDEM_OK;
    for (size_t i = 0; i < all->updates.size() && status == TANDEM_OK; ++i) {
      status = update(&call, &all->updates[i]);
    }
    return status;
  };
}

void Lowering::lower_check(const CheckWork& work, const Resolver& at, Lowered& result) const {
  result.run = [check = runtime_.machine().backend().check_finite,
                values = at.as<const float>(work.values), count = plan_.bytes(work.values) / 4,
                skip = at.as<int32_t>(work.skip)](const tandem_call& call) {
    return check(&call, values, count, skip);
  };
}

void Lowering::note_touches(const Task& task, const Resolver& at, Lowered& result) const {
  for (const auto* regions : {&task.reads, &task.writes}) {
    for (const Region& region : *regions) {
      std::byte* begin = at(region);
      const int64_t bytes = plan_.bytes(region);
      if (begin == nullptr || bytes == 0) continue;
      const bool writes = regions == &task.writes;
      result.touches.push_back({begin, writes});
      result.touches.push_back({begin + bytes - 1, writes});
    }
  }
}

}  // namespace tandem
