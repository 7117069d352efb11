#include "core/schedule/execution/lowering.h"

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "core/base/overloaded.h"
#include "core/base/running_note.h"
#include "core/plugin/host.h"
#include "core/plugin/registry.h"
#include "core/schedule/execution/joined_rows.h"
#include "core/schedule/execution/lowering_resolver.h"
#include "core/schedule/execution/messages.h"
#include "core/schedule/kernels/guarded_pass.h"

namespace tandem {
namespace {

// The data pass comes last, because where a layer runs in place, its input gradient overwrites the
// output gradient.
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

tandem_status no_kernel(const tandem_call&) {
  host_table().explain("the executor was made without kernels");
  return TANDEM_FAILED;
}

// Puts the layer before the reason that its kernel gave, and the place in a file after it.
void explain_with(const KernelOwner& owner, tandem_status status) {
  const std::string reason = take_reason();
  host_table().explain(
      fmt::format("{}: {}{}", owner.layer,
                  reason.empty() ? fmt::format("it failed with status {}, without a reason", status)
                                 : reason,
                  owner.place)
          .c_str());
}

}  // namespace

tandem_status Lowered::trampoline(void* context, const tandem_call* call) {
  const Lowered& work = *static_cast<Lowered*>(context);
  for (const Touch& touch : work.touches) {
    volatile std::byte* byte = touch.address;
    const std::byte value = *byte;
    if (touch.writes) *byte = value;
  }
  std::optional<RunningNote> note;
  if (work.owner != nullptr) {
    const int64_t per_step = work.micro_batches_per_step;
    note.emplace(work.pass, work.owner, per_step > 0 ? work.micro_batch / per_step + 1 : 0);
  }
  const tandem_status status = work.run(*call);
  if (status != TANDEM_OK) {
    int64_t none = -1;
    work.first_failed->compare_exchange_strong(none, work.micro_batch);
  }
  return status;
}

Lowering::Lowering(const Plan& plan, const MemoryPlan& memory, const Net& net,
                   const Runtime& runtime, const Kernels* kernels, const CostTable* costs,
                   const UpdateRule& rule, const Communicator* ranks, const DeviceLinks* links,
                   bool communication, PluginGuards* guards)
    : plan_(plan),
      memory_(memory),
      net_(net),
      runtime_(runtime),
      kernels_(kernels),
      costs_(costs),
      rule_(rule),
      ranks_(ranks),
      links_(links),
      communication_(communication),
      guards_(guards),
      touches_(sanitizes_threads && runtime.machine().is_host_addressable()) {}

std::byte* Lowering::address(const Region& region, int64_t micro_batch,
                             const std::vector<void*>& externals) const {
  if (region.buffer < 0) return nullptr;
  const auto index = size_t(region.buffer);
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
  return base + (micro_batch % buffer.slots) * slot_stride(buffer) + region.offset;
}

Lowered Lowering::lower(int task_index, int64_t micro_batch,
                        const std::vector<void*>& externals) const {
  const Task& task = plan_.task(task_index);
  const Resolver at{*this, micro_batch, externals};
  Lowered result;
  result.micro_batch = micro_batch;
  std::visit(overloaded{
                 [&](const LayerWork& work) { lower_layer(task, work, at, result); },
                 [&](const CopyWork& work) { lower_copies(work, at, result); },
                 [&](const AddWork& work) { lower_sum(work.target, work.sources, at, result); },
                 [&](const MergeWork& work) { lower_merge(work, at, result); },
                 [&](const NormWork& work) { lower_norms(work, at, result); },
                 [&](const UpdateWork& work) { lower_update(work, at, result); },
                 [&](const CheckWork& work) { lower_check(work, at, result); },
                 [&](const ConvertWork& work) { lower_conversion(work, at, result); },
                 [&](const RankMessage& work) { lower_message(task, work, at, result); },
             },
             task.work);
  if (!result.run) return result;
  if (costs_ != nullptr) result.predicted_seconds = costs_->seconds(net_, plan_, task);
  if (touches_) note_touches(task, at, result);
  return result;
}

// Many segments within one device are copied by one function where the host can reach the memory:
// as copies of the backend each of them would take longer to issue than to do. A paced or simulated
// device takes the time that the costs say.
bool Lowering::copies_on_host(const CopyWork& work) const {
  const Machine& machine = runtime_.machine();
  return rearranges(plan_, work) && (machine.is_host_addressable() || machine.has_virtual_time());
}

void Lowering::lower_rows(const CopyWork& work, const Resolver& at, Lowered& result) const {
  struct Row {
    void* target;
    const void* source;
    size_t bytes;
  };
  std::vector<Row> rows;
  for (const CopySegment& segment : work.segments) {
    rows.push_back({at(segment.target), at(segment.source), size_t(plan_.bytes(segment.source))});
  }
  result.run = [rows = std::move(rows)](const tandem_call&) {
    for (const Row& row : rows) std::memcpy(row.target, row.source, row.bytes);
    return TANDEM_OK;
  };
}

int Lowering::device_of(const Region& region) const {
  const Buffer& buffer = plan_.buffer(region.buffer);
  return buffer.is_extended ? TANDEM_HOST : buffer.device;
}

void Lowering::lower_copies(const CopyWork& work, const Resolver& at, Lowered& result) const {
  if (copies_on_host(work)) return lower_rows(work, at, result);
  for (const CopySegment& segment : work.segments) {
    const int source = device_of(segment.source), target = device_of(segment.target);
    if (!communication_ && source >= 0 && target >= 0 && source != target) continue;
    const int64_t bytes = plan_.bytes(segment.source);
    if (bytes == 0) continue;
    result.copies.push_back(one_row(target, at(segment.target), source, at(segment.source), bytes));
  }
  if (rearranges(plan_, work)) result.copies = joined_rows(result.copies);
}

void Lowering::lower_message(const Task& task, const RankMessage& work, const Resolver& at,
                             Lowered& result) const {
  if (!communication_) return;
  std::vector<MessagePart> parts;
  for (const Region& region : work.regions) {
    const int64_t bytes = plan_.bytes(region);
    if (bytes > 0) parts.push_back({device_of(region), at(region), bytes});
  }
  const Machine& machine = runtime_.machine();
  std::byte* staging = at(work.staging);
  const bool is_reached =
      work.by_link ? links_ != nullptr
                   : staging != nullptr || machine.is_host_addressable() || is_of_host(parts);
  if (ranks_ == nullptr || !sends_messages(machine.backend()) || !is_reached) {
    throw error("task '{}': devices '{}' send no messages to other ranks", task.label,
                machine.kind());
  }
  const bool is_received = std::holds_alternative<ReceiveWork>(task.work);
  if (staging != nullptr) {
    const MessagePart whole{device_of(work.staging), staging, plan_.bytes(work.staging)};
    result.copies = staging_copies(parts, whole, is_received);
    result.copies_last = is_received;
    parts = {whole};
  }
  if (work.by_link) {
    result.run = link_call(*links_, work, parts);
    return;
  }
  result.kind = TANDEM_WORK_MESSAGE;
  result.run = message_call(*ranks_, work, is_received, parts);
}

void Lowering::lower_layer(const Task& task, const LayerWork& work, const Resolver& at,
                           Lowered& result) const {
  if (kernels_ == nullptr) {
    result.run = &no_kernel;
    return;
  }
  const PlanBinding& binding = plan_.binding(work.binding);
  const Layer& layer = net_.layer(binding.layer);
  // The micro-batches of a step after its first add to the gradients of those before.
  const bool accumulates = work.accumulate || at.micro_batch % plan_.micro_batches_per_step != 0;
  const auto pointers = at.pointers(binding, layer, work.pass, accumulates);
  const auto passes = functions(kernels_->table(work.binding), work.pass);
  for (const tandem_pass_function function : passes) {
    if (function != nullptr) continue;
    throw error("task '{}': {} has no {} on '{}'", task.label, layer.title(), to_string(work.pass),
                runtime_.machine().kind());
  }
  const KernelOwner& owner = kernels_->owner(work.binding);
  const auto call_all = [handle = kernels_->handle(work.binding), passes](
                            const tandem_call& call, const tandem_pass* given) {
    tandem_status status = TANDEM_OK;
    for (size_t i = 0; i < passes.size() && status == TANDEM_OK; ++i) {
      status = passes[i](handle, &call, given);
    }
    return status;
  };
  const bool is_guarded = guards_ != nullptr && owner.is_third_party && !binding.whole_outputs;
  const GuardedPass guarded =
      is_guarded ? guarded_pass(work, accumulates, *pointers) : GuardedPass();
  result.pass = to_string(work.pass);
  result.owner = owner.whole.c_str();
  result.micro_batches_per_step = net_.phase == TANDEM_TRAIN ? plan_.micro_batches_per_step : 0;
  result.run = [pointers, call_all, guarded, owner = &owner,
                guards = is_guarded && guarded.is_possible() ? guards_
                                                             : nullptr](const tandem_call& call) {
    const auto pass = [&](const tandem_pass* given) { return call_all(call, given); };
    const tandem_status status =
        guards == nullptr ? pass(&pointers->pass) : guarded.run(*pointers, pass, *guards);
    if (status != TANDEM_OK) explain_with(*owner, status);
    return status;
  };
}

namespace {

// What a pass may do with each of its memories.
struct PassAccess {
  GuardedAccess inputs, outputs, input_gradients, weight_gradients, saved, statistics;
  bool has_output_gradients = false;  // before the backward passes other streams may write them
};

// Follows the comments of tandem_pass. A slice of the outputs or of the inputs writes a part only.
PassAccess access_of(LayerPass pass, const PlanBinding& use, const Layer& layer, bool accumulates) {
  using Access = GuardedAccess;
  const bool is_forward = pass == LayerPass::forward, reads_all = tandem::is_forward(pass);
  const bool gives_data = pass == LayerPass::backward_data || pass == LayerPass::backward;
  const bool gives_weights = pass == LayerPass::backward_weights || pass == LayerPass::backward;
  const bool is_part = use.slice.end >= 0 || use.input_slice.end >= 0 || use.adds_to_output;
  const Access whole = is_part ? Access::update : Access::write;
  const auto readable = [](bool may_read) { return may_read ? Access::read : Access::hidden; };
  return {.inputs = readable(reads_all || layer.backward_reads_inputs()),
          .outputs =
              is_forward ? whole : readable(!reads_all && layer.has(TANDEM_BACKWARD_READS_OUTPUTS)),
          .input_gradients = gives_data ? whole : Access::hidden,
          .weight_gradients = !gives_weights ? Access::hidden
                              : accumulates  ? Access::update
                                             : whole,
          .saved = is_forward            ? Access::fill
                   : is_statistics(pass) ? Access::read
                                         : Access::update,
          .statistics = is_statistics(pass) ? Access::write : Access::read,
          .has_output_gradients = !reads_all};
}

}  // namespace

GuardedPass Lowering::guarded_pass(const LayerWork& work, bool accumulates,
                                   const LayerPointers& pointers) const {
  using Access = GuardedAccess;
  const PlanBinding& binding = plan_.binding(work.binding);
  const Layer& layer = net_.layer(binding.layer);
  const PassAccess may = access_of(work.pass, binding, layer, accumulates);
  GuardedPass result;
  const auto add = [&](const char* what, auto array, const std::vector<Region>& regions,
                       const std::vector<int>& tensors, Access access) {
    const auto& addresses = pointers.*array;
    for (size_t i = 0; i < addresses.size() && i < regions.size(); ++i) {
      GuardedPart part{fmt::format("{} {}", what, i), const_cast<void*>(addresses[i]),
                       addresses[i] == nullptr ? 0 : plan_.bytes(regions[i]),
                       i < tensors.size() ? net_.tensor(tensors[i]).dtype : TANDEM_FLOAT32, access};
      if constexpr (std::is_same_v<decltype(array), decltype(&LayerPointers::inputs)>) {
        if (access == Access::hidden) part.hidden_in = array;
        const bool is_state = array == &LayerPointers::weights && work.pass == LayerPass::forward &&
                              !net_.weight(layer.weights[i]).trained();
        if (is_state) part.access = Access::update;
      }
      result.add(std::move(part));
    }
  };
  add("input", &LayerPointers::inputs, binding.inputs, layer.inputs, may.inputs);
  add("output", &LayerPointers::outputs, binding.outputs, layer.outputs, may.outputs);
  add("weight", &LayerPointers::weights, binding.weights, {}, Access::read);
  add("the gradient of input", &LayerPointers::input_gradients, binding.input_gradients,
      layer.inputs, may.input_gradients);
  if (may.has_output_gradients) {
    add("the gradient of output", &LayerPointers::output_gradients, binding.output_gradients,
        layer.outputs, Access::read);
  }
  add("the gradient of weight", &LayerPointers::weight_gradients, binding.weight_gradients, {},
      may.weight_gradients);
  const auto bytes_of = [&](int buffer) { return buffer < 0 ? 0 : plan_.buffer(buffer).bytes; };
  result.add({"saved memory", pointers.pass.saved, bytes_of(binding.saved), 0, may.saved});
  result.add({"scratch memory", pointers.pass.scratch, bytes_of(scratch_of(binding, work.pass)), 0,
              Access::scratch});
  if (pointers.pass.addend != nullptr) {
    result.add({"the addend", const_cast<void*>(pointers.pass.addend), plan_.bytes(binding.addend),
                net_.tensor(layer.addend).dtype, Access::read});
  }
  if (pointers.pass.statistics != nullptr) {
    result.add({"the statistics", pointers.pass.statistics,
                plan_.bytes(statistics_of(binding, work.pass)), TANDEM_FLOAT32, may.statistics});
  }
  return result;
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
