
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "core/plugin/registry.h"
#include "core/schedule/execution/joined_rows.h"
#include "core/schedule/execution/lowering_resolver.h"

namespace tandem {

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

bool is_forward(LayerPass pass) {
  return pass == LayerPass::forward || pass == LayerPass::forward_statistics;
}

const Region& statistics_of(const PlanBinding& binding, LayerPass pass) {
  return is_forward(pass) ? binding.forward_statistics : binding.backward_statistics;
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
      touches_(sanitizes_threads && runtime.machine().has(TANDEM_HOST_ADDRESSABLE)) {}

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
      if (base != nullptr) base += memory_.offsets[index];
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
    if (!lower_rows(task, *copy, at, result)) lower_copies(*copy, at, result);
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
  } else if (const auto* convert = std::get_if<ConvertWork>(&task.work)) {
    lower_conversion(*convert, at, result);
  } else {
    lower_check(std::get<CheckWork>(task.work), at, result);
  }
  if (costs_ != nullptr) result.predicted_seconds = costs_->seconds(net_, plan_, task);
  if (touches_) note_touches(task, at, result);
  return result;
}

// Rows that are put side by side are no copies of the backend's where the host can reach them: each
// of these would take longer to issue than to do. A paced or simulated device takes what they cost.
bool Lowering::lower_rows(const Task& task, const CopyWork& work, const Resolver& at,
                          Lowered& result) const {
  constexpr uint64_t by_host = TANDEM_HOST_ADDRESSABLE | TANDEM_VIRTUAL_TIME;
  if (!rearranges(plan_, work) || !runtime_.machine().has(by_host)) return false;
  struct Row {
    void* target;
    const void* source;
    size_t bytes;
  };
  std::vector<Row> rows;
  for (const CopySegment& segment : work.segments) {
    rows.push_back(
        {at(segment.target), at(segment.source), static_cast<size_t>(plan_.bytes(segment.source))});
  }
  result.run = [rows = std::move(rows)](const tandem_call&) {
    for (const Row& row : rows) std::memcpy(row.target, row.source, row.bytes);
    return TANDEM_OK;
  };
  if (costs_ != nullptr) result.predicted_seconds = costs_->seconds(net_, plan_, task);
  if (touches_) note_touches(task, at, result);
  return true;
}

void Lowering::lower_copies(const CopyWork& work, const Resolver& at, Lowered& result) const {
  const auto device = [&](const Region& region) {
    const Buffer& buffer = plan_.buffers[static_cast<size_t>(region.buffer)];
    return buffer.is_extended ? TANDEM_HOST : buffer.device;
  };
  for (const CopySegment& segment : work.segments) {
    const int source = device(segment.source), target = device(segment.target);
    if (!communication_ && source >= 0 && target >= 0 && source != target) continue;
    const int64_t bytes = plan_.bytes(segment.source);
    if (bytes == 0) continue;
    result.copies.push_back(one_row(target, at(segment.target), source, at(segment.source), bytes));
  }
  if (rearranges(plan_, work)) result.copies = joined_rows(result.copies);
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
  const bool accumulates = work.accumulate || at.step % plan_.micro_batches_per_step != 0;
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
                    at({is_forward(work.pass) ? binding.scratch : binding.backward_scratch}),
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

void Lowering::lower_check(const CheckWork& work, const Resolver& at, Lowered& result) const {
  result.run = [check = runtime_.machine().backend().check_finite,
                values = at.as<const float>(work.values), count = plan_.bytes(work.values) / 4,
                found_inf = at.as<int32_t>(work.found_inf)](const tandem_call& call) {
    return check(&call, values, count, found_inf);
  };
}

void Lowering::lower_conversion(const ConvertWork& work, const Resolver& at,
                                Lowered& result) const {
  const auto convert = runtime_.machine().backend().convert_pixels;
  if (convert == nullptr) {
    throw error("backend '{}' is of a plugin ABI before 1.4, which makes no floats of bytes",
                runtime_.machine().kind());
  }
  tandem_pixels pixels{};
  pixels.struct_size = sizeof(pixels);
  pixels.shape = work.shape;
  pixels.pixels = at.as<const uint8_t>(work.pixels);
  pixels.target = at.as<float>(work.target);
  std::copy(work.scale.means.begin(), work.scale.means.end(), pixels.means);
  pixels.scale = work.scale.scale;
  result.run = [convert, pixels](const tandem_call& call) { return convert(&call, &pixels); };
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
