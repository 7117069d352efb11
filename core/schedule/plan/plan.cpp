#include "core/schedule/plan/plan.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/overloaded.h"
#include "core/model/net/net.h"
#include "core/schedule/plan/buffers.h"
#include "core/schedule/plan/regions.h"

namespace tandem {

const char* to_string(StreamKind kind) {
  static constexpr std::array names{"compute", "communication", "copy",
                                    "send",    "update",        "control"};
  static_assert(names.size() == stream_kinds);
  return names.at(size_t(kind));
}

const char* to_string(LayerPass pass) {
  static constexpr std::array names{"forward",  "backward_data",      "backward_weights",
                                    "backward", "forward_statistics", "backward_statistics"};
  static_assert(names.size() == layer_passes);
  return names.at(size_t(pass));
}

int Plan::find_buffer(const std::string& name, int device) const {
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].device == device && buffers[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

int64_t Plan::bytes(const Region& region) const {
  if (region.buffer < 0) return 0;
  if (region.bytes != whole_buffer) return region.bytes;
  return buffers[size_t(region.buffer)].bytes - region.offset;
}

int64_t Plan::bytes(const std::vector<Region>& regions) const {
  int64_t sum = 0;
  for (const Region& region : regions) sum += bytes(region);
  return sum;
}

bool works_in(const Plan& plan, const Task& task, int64_t micro_batch) {
  const int64_t of_step = micro_batch % plan.micro_batches_per_step;
  if (task.when == When::first_micro_batch) return of_step == 0;
  if (task.when == When::micro_batch_0) return micro_batch == 0;
  if (task.when == When::last_micro_batch) return of_step == plan.micro_batches_per_step - 1;
  return true;
}

bool is_forward(LayerPass pass) {
  return pass == LayerPass::forward || pass == LayerPass::forward_statistics;
}

bool repeats(const Task& task) {
  const auto* pass = std::get_if<LayerWork>(&task.work);
  return pass != nullptr && pass->repeats;
}

bool is_statistics(LayerPass pass) {
  return pass == LayerPass::forward_statistics || pass == LayerPass::backward_statistics;
}

int scratch_of(const PlanBinding& binding, LayerPass pass) {
  return is_forward(pass) ? binding.scratch : binding.backward_scratch;
}

const Region& statistics_of(const PlanBinding& binding, LayerPass pass) {
  return is_forward(pass) ? binding.forward_statistics : binding.backward_statistics;
}

std::string step_name(const Plan& plan, int64_t micro_batch) {
  const int count = plan.micro_batches_per_step;
  if (plan.strategy == testing_strategy) return fmt::format("batch {}", micro_batch + 1);
  const std::string step = fmt::format("step {}", micro_batch / count + 1);
  return count == 1 ? step
                    : fmt::format("{}, micro-batch {} of {}", step, micro_batch % count + 1, count);
}

double slice_fraction(const Net& net, const PlanBinding& binding) {
  const Layer& layer = net.layer(binding.layer);
  double fraction = 1;
  if (binding.slice.end >= 0) {
    const Shape& output = net.tensor(layer.outputs[0]).shape;
    fraction *= static_cast<double>(binding.slice.count()) / static_cast<double>(output.c);
  }
  if (binding.input_slice.end >= 0) {
    const Shape& input = net.tensor(layer.inputs[0]).shape;
    fraction *= static_cast<double>(binding.input_slice.count()) /
                static_cast<double>(input.c * input.h * input.w);
  }
  return fraction;
}

namespace {

// The first of so many things that equals one before it. By their hashes: a set of the names would
// take much memory beside a large plan.
template <class Hash, class IsEqual>
std::optional<size_t> find_twice(size_t count, const Hash& hash, const IsEqual& is_equal) {
  std::vector<std::pair<size_t, size_t>> hashes;  // and which
  hashes.reserve(count);
  for (size_t i = 0; i < count; ++i) hashes.emplace_back(hash(i), i);
  std::sort(hashes.begin(), hashes.end());
  std::optional<size_t> first;
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = i + 1; j < count && hashes[j].first == hashes[i].first; ++j) {
      if (!is_equal(hashes[i].second, hashes[j].second)) continue;
      first = std::min(first.value_or(count), hashes[j].second);
      break;
    }
  }
  return first;
}

void validate_buffers(const Plan& plan) {
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.device < -1 || buffer.device >= plan.devices) {
      throw error("buffer '{}': device {} is not one of the plan's {}", buffer.name, buffer.device,
                  plan.devices);
    }
    if (buffer.bytes < 0 || buffer.slots < 1) {
      throw error("buffer '{}' of device {}: {} bytes in {} slots", buffer.name, buffer.device,
                  buffer.bytes, buffer.slots);
    }
    const bool is_outside = buffer.is_extended || !buffer.memory.empty();
    if (is_outside && (buffer.kind != BufferKind::persistent || buffer.device < 0)) {
      throw error("buffer '{}' is extended memory, but not a device's persistent one", buffer.name);
    }
  }
  const auto twice = find_twice(
      plan.buffers.size(),
      [&](size_t i) {
        return std::hash<std::string>()(plan.buffers[i].name) + size_t(plan.buffers[i].device + 1);
      },
      [&](size_t i, size_t j) {
        const Buffer &a = plan.buffers[i], &b = plan.buffers[j];
        return a.device == b.device && a.name == b.name;
      });
  if (!twice) return;
  const Buffer& buffer = plan.buffers[*twice];
  throw error("buffer '{}' of device {} occurs twice", buffer.name, buffer.device);
}

void validate_region(const Plan& plan, const Task& task, const Region& region) {
  if (region.buffer < 0 || region.buffer >= static_cast<int>(plan.buffers.size())) {
    throw error("task '{}' uses buffer {}, which does not exist", task.label, region.buffer);
  }
  const Buffer& buffer = plan.buffer(region.buffer);
  const int64_t bytes = plan.bytes(region);
  if (region.offset < 0 || bytes < 0 || region.offset > buffer.bytes - bytes) {
    throw error("task '{}': bytes {} to {} exceed buffer '{}' of device {}, which has {}",
                task.label, region.offset, region.offset + bytes, buffer.name, buffer.device,
                buffer.bytes);
  }
}

void validate_streams(const Plan& plan, const Task& task) {
  if (task.streams.empty()) throw error("task '{}' has no stream", task.label);
  for (size_t i = 0; i < task.streams.size(); ++i) {
    const StreamId& stream = task.streams[i];
    if (stream.device < 0 || stream.device >= plan.devices) {
      throw error("task '{}': its {} stream is of device {}, the plan has {}", task.label,
                  to_string(stream.kind), stream.device, plan.devices);
    }
    if (std::find(task.streams.begin(), task.streams.begin() + static_cast<int64_t>(i), stream) !=
        task.streams.begin() + static_cast<int64_t>(i)) {
      throw error("task '{}' names the {} stream of device {} twice", task.label,
                  to_string(stream.kind), stream.device);
    }
  }
}

void validate_waits(const Plan& plan, int index) {
  const Task& task = plan.task(index);
  for (const Dependency& wait : task.after) {
    if (wait.task < 0 || wait.task >= static_cast<int>(plan.tasks.size()) ||
        wait.micro_batches_back < 0) {
      throw error("task '{}' waits for task {} of {} micro-batches back, which does not exist",
                  task.label, wait.task, wait.micro_batches_back);
    }
    if (wait.micro_batches_back > 0 || wait.task < index) continue;
    if (wait.task == index) throw error("task '{}' waits for itself", task.label);
    throw error("task '{}' waits for '{}', which comes later in the micro-batch", task.label,
                plan.task(wait.task).label);
  }
}

void validate_binding(const Plan& plan, const Task& task, int binding) {
  if (binding >= 0 && binding < static_cast<int>(plan.bindings.size())) return;
  throw error("task '{}' uses binding {}, which does not exist", task.label, binding);
}

void validate_sum(const Plan& plan, const Task& task, const Region& target,
                  const std::vector<Region>& sources) {
  for (const Region& source : sources) {
    if (plan.bytes(source) == plan.bytes(target)) continue;
    throw error("task '{}' adds {} bytes to {}", task.label, plan.bytes(source),
                plan.bytes(target));
  }
}

void validate_conversion(const Plan& plan, const Task& task, const ConvertWork& convert) {
  const int64_t count = element_count(convert.shape);
  if (plan.bytes(convert.pixels) == count &&
      plan.bytes(convert.target) == buffers::float_bytes * count) {
    return;
  }
  throw error("task '{}' makes {} bytes of pixels {} bytes of floats, and its pictures are {}",
              task.label, plan.bytes(convert.pixels), plan.bytes(convert.target),
              to_string(convert.shape));
}

void validate_copy(const Plan& plan, const Task& task, const CopyWork& copy) {
  for (const CopySegment& segment : copy.segments) {
    if (plan.bytes(segment.source) == plan.bytes(segment.target)) continue;
    throw error("task '{}' copies {} bytes to a region of {}", task.label,
                plan.bytes(segment.source), plan.bytes(segment.target));
  }
}

void validate_message(const Plan& plan, const Task& task, const RankMessage& message) {
  const int64_t bytes = plan.bytes(message.regions);
  if (message.staging.buffer >= 0 && plan.bytes(message.staging) != bytes) {
    throw error("task '{}' has a message of {} bytes, which goes through {}", task.label, bytes,
                plan.bytes(message.staging));
  }
  if (message.peer >= 0 && message.channel >= 0) return;
  throw error("task '{}' is a message with rank {} on channel {}: both count from 0", task.label,
              message.peer, message.channel);
}

void validate_work(const Plan& plan, const Task& task) {
  for_each_region(task.work, [&](const Region& region) { validate_region(plan, task, region); });
  std::visit(overloaded{
                 [&](const LayerWork& work) { validate_binding(plan, task, work.binding); },
                 [&](const CopyWork& work) { validate_copy(plan, task, work); },
                 [&](const AddWork& work) { validate_sum(plan, task, work.target, work.sources); },
                 [&](const MergeWork& work) {
                   validate_binding(plan, task, work.binding);
                   validate_sum(plan, task, work.target, work.sources);
                 },
                 [](const OneOf<NormWork, UpdateWork, CheckWork> auto&) {},
                 [&](const ConvertWork& work) { validate_conversion(plan, task, work); },
                 [&](const RankMessage& work) { validate_message(plan, task, work); },
             },
             task.work);
}

void validate_labels(const Plan& plan) {
  const auto label = [&](size_t i) -> const std::string& { return plan.tasks[i].label; };
  const auto twice = find_twice(
      plan.tasks.size(), [&](size_t i) { return std::hash<std::string>()(label(i)); },
      [&](size_t i, size_t j) { return label(i) == label(j); });
  if (!twice) return;
  throw error("the label '{}' occurs twice: labels name one task of a plan", label(*twice));
}

}  // namespace

void validate(const Plan& plan) {
  if (plan.micro_batches_per_step < 1) {
    throw error("a plan with {} micro-batches a step: at least 1", plan.micro_batches_per_step);
  }
  validate_buffers(plan);
  validate_labels(plan);
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    const Task& task = plan.tasks[i];
    validate_streams(plan, task);
    for (const Region& region : task.reads) validate_region(plan, task, region);
    for (const Region& region : task.writes) validate_region(plan, task, region);
    validate_work(plan, task);
    validate_waits(plan, static_cast<int>(i));
  }
}

}  // namespace tandem
