#include "core/schedule/plan/localize.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/schedule/plan/dependencies.h"
#include "core/schedule/plan/regions.h"
#include "core/schedule/plan/staging.h"
#include "plugins/fnv.h"

namespace tandem {

int DeviceRanks::count() const {
  return of_device.empty() ? 0 : 1 + *std::max_element(of_device.begin(), of_device.end());
}

int DeviceRanks::local(int device) const {
  const auto end = of_device.begin() + device;
  return static_cast<int>(std::count(of_device.begin(), end, *end));
}

DeviceRanks equal_ranks(int ranks, int devices_each) {
  DeviceRanks result;
  for (int rank = 0; rank < ranks; ++rank) {
    result.of_device.insert(result.of_device.end(), size_t(devices_each), rank);
  }
  return result;
}

namespace {

constexpr int everywhere = -1;  // of external buffers: on all ranks
constexpr int host_rank = 0;    // of the host's other buffers

class Localizer {
 public:
  Localizer(const Plan& whole, const DeviceRanks& ranks, int rank, MessagePath path)
      : whole_(whole), ranks_(ranks), rank_(rank), path_(path) {
    if (static_cast<int>(ranks.of_device.size()) != whole.devices) {
      throw error("a plan for {} devices, and ranks for {}", whole.devices, ranks.of_device.size());
    }
    for (int device = whole.devices; device-- > 0;) {
      first_device_[ranks.of_device[size_t(device)]] = device;
    }
    if (!first_device_.contains(rank)) throw error("rank {} has no device", rank);
    local_.strategy = whole.strategy;
    local_.net = whole.net;
    local_.devices =
        static_cast<int>(std::count(ranks.of_device.begin(), ranks.of_device.end(), rank));
    local_.batch = whole.batch;
    local_.micro_batches_per_step = whole.micro_batches_per_step;
    local_.options = whole.options;
    local_.split_layer = whole.split_layer;
    local_.notes = whole.notes;
    local_.recomputation = whole.recomputation;
  }

  Plan take() {
    take_buffers();
    take_bindings();
    for (const Task& task : whole_.tasks) take_task(task);
    for (const Placement& place : whole_.weights_at) {
      if (is_mine(place.device)) local_.weights_at.push_back({local(place.device), place.interval});
    }
    for (StatePlacement part : whole_.state_at) {
      if (!is_mine(part.device)) continue;
      part.device = local(part.device);
      local_.state_at.push_back(part);
    }
    if (path_ != MessagePath::direct) stage_messages(local_);
    derive_dependencies(local_);
    validate(local_);
    return std::move(local_);
  }

 private:
  // The segments of a copy from one rank to another, or within a rank.
  struct Part {
    int source = 0, target = 0;
    std::vector<CopySegment> segments;
  };

  [[nodiscard]] bool is_mine(int device) const { return ranks_.of_device[size_t(device)] == rank_; }
  [[nodiscard]] int local(int device) const { return device < 0 ? device : ranks_.local(device); }
  [[nodiscard]] int rank_of(const Region& region) const {
    const Buffer& buffer = whole_.buffer(region.buffer);
    if (buffer.device >= 0) return ranks_.of_device[size_t(buffer.device)];
    return buffer.kind == BufferKind::external ? everywhere : host_rank;
  }

  void take_buffers() {
    for (size_t i = 0; i < whole_.buffers.size(); ++i) {
      const int rank = rank_of({static_cast<int>(i), 0, 0});
      buffers_.push_back(
          rank == rank_ || rank == everywhere ? static_cast<int>(local_.buffers.size()) : -1);
      if (buffers_.back() < 0) continue;
      local_.buffers.push_back(whole_.buffers[i]);
      local_.buffers.back().device = local(whole_.buffers[i].device);
    }
  }

  void take_bindings() {
    for (const PlanBinding& whole : whole_.bindings) {
      bindings_.push_back(is_mine(whole.device) ? static_cast<int>(local_.bindings.size()) : -1);
      if (bindings_.back() < 0) continue;
      PlanBinding use = whole;
      use.device = local(whole.device);
      for (int* buffer : {&use.saved, &use.scratch, &use.backward_scratch}) {
        if (*buffer >= 0) *buffer = buffers_[size_t(*buffer)];
      }
      for_each_region_of(use, [this](Region& region) { move(region); });
      local_.bindings.push_back(std::move(use));
    }
  }

  void move(Region& region) const {
    if (region.buffer >= 0) region.buffer = buffers_[size_t(region.buffer)];
  }
  void move(std::vector<Region>& regions) const {
    for (Region& region : regions) move(region);
  }
  void move(Work& work) const {
    if (std::holds_alternative<SendWork>(work) || std::holds_alternative<ReceiveWork>(work)) {
      throw error("a plan with messages is one rank's part already");
    }
    if (auto* pass = std::get_if<LayerWork>(&work))
      pass->binding = bindings_[size_t(pass->binding)];
    if (auto* merge = std::get_if<MergeWork>(&work)) {
      merge->binding = bindings_[size_t(merge->binding)];
    }
    for_each_region(work, [this](Region& region) { move(region); });
  }

  // What the task occupies on that rank, in the numbers of all devices. A copy from or to memory of
  // a rank none of whose streams it names takes the communication stream of the memory's device, or
  // of the rank's first one.
  [[nodiscard]] std::vector<StreamId> streams_on(int rank, const Task& task,
                                                 const Region& region) const {
    std::vector<StreamId> streams;
    for (const StreamId& stream : task.streams) {
      if (ranks_.of_device[size_t(stream.device)] == rank) streams.push_back(stream);
    }
    if (!streams.empty()) return streams;
    const int device = whole_.buffer(region.buffer).device;
    return {{device >= 0 ? device : first_device_.at(rank), StreamKind::communication}};
  }

  void add(Task task, const std::vector<StreamId>& streams, std::vector<Region> reads,
           std::vector<Region> writes) {
    task.streams = streams;
    for (StreamId& stream : task.streams) stream.device = local(stream.device);
    task.reads = std::move(reads);
    task.writes = std::move(writes);
    move(task.reads);
    move(task.writes);
    move(task.work);
    local_.tasks.push_back(std::move(task));
  }

  void take_task(const Task& task) {
    if (const auto* copy = std::get_if<CopyWork>(&task.work)) return take_copy(task, *copy);
    const int rank = ranks_.of_device[size_t(task.streams[0].device)];
    for (const auto* regions : {&task.reads, &task.writes}) {
      for (const Region& region : *regions) {
        if (const int other = rank_of(region); other != rank && other != everywhere) {
          throw error("task '{}' of rank {} touches memory of rank {}, but only copies may",
                      task.label, rank, other);
        }
      }
    }
    if (rank == rank_) add(task, task.streams, task.reads, task.writes);
  }

  [[nodiscard]] std::vector<Part> parts_of(const CopyWork& copy) const {
    std::vector<Part> parts;
    for (const CopySegment& segment : copy.segments) {
      int source = rank_of(segment.source), target = rank_of(segment.target);
      if (source == everywhere) source = target;
      if (target == everywhere) target = source;
      const auto at = std::find_if(parts.begin(), parts.end(), [&](const Part& part) {
        return part.source == source && part.target == target;
      });
      Part& part = at == parts.end() ? parts.emplace_back(Part{source, target, {}}) : *at;
      part.segments.push_back(segment);
    }
    return parts;
  }

  void take_copy(const Task& task, const CopyWork& copy) {
    const std::vector<Part> parts = parts_of(copy);
    if (parts.empty()) return take_touch(task);
    const bool is_within = parts.size() == 1 && parts[0].source == parts[0].target;
    for (const Part& part : parts) {
      if (is_within && part.source == rank_) {
        add(task, streams_on(rank_, task, part.segments[0].source), task.reads, task.writes);
      } else if (part.source != part.target) {
        take_message(task, part);
      } else if (part.source == rank_) {
        take_part(task, part);
      }
    }
  }

  // A copy of nothing orders what it names.
  void take_touch(const Task& task) {
    Task mine = task;
    std::vector<StreamId> streams;
    for (const StreamId& stream : task.streams) {
      if (is_mine(stream.device)) streams.push_back(stream);
    }
    if (streams.empty()) return;
    const auto elsewhere = [&](const Region& region) {
      const int rank = rank_of(region);
      return rank != rank_ && rank != everywhere;
    };
    std::erase_if(mine.reads, elsewhere);
    std::erase_if(mine.writes, elsewhere);
    add(mine, streams, mine.reads, mine.writes);
  }

  void take_part(const Task& task, const Part& part) {
    Task mine = task;
    mine.work = CopyWork{part.segments};
    add(mine, streams_on(rank_, task, part.segments[0].source),
        regions_of(part, &CopySegment::source), regions_of(part, &CopySegment::target));
  }

  // All that the part copies from, or to.
  [[nodiscard]] static std::vector<Region> regions_of(const Part& part, Region CopySegment::*end) {
    std::vector<Region> regions;
    for (const CopySegment& segment : part.segments) regions.push_back(segment.*end);
    return regions;
  }

  // Both sides say the same of the message.
  [[nodiscard]] bool is_by_link(const Part& part) const {
    const auto is_on_device = [&](const Region& region) {
      const Buffer& buffer = whole_.buffer(region.buffer);
      return buffer.device >= 0 && !buffer.is_extended;
    };
    return path_ == MessagePath::links &&
           std::all_of(part.segments.begin(), part.segments.end(), [&](const CopySegment& segment) {
             return is_on_device(segment.source) && is_on_device(segment.target);
           });
  }

  // Every rank numbers all channels, so that both sides agree.
  void take_message(const Task& task, const Part& part) {
    const auto from = streams_on(part.source, task, part.segments[0].source);
    const auto to = streams_on(part.target, task, part.segments[0].target);
    const auto number = [](const StreamId& stream) {
      return stream.device * stream_kinds + static_cast<int>(stream.kind);
    };
    const int channel =
        channels_.try_emplace({number(from[0]), number(to[0])}, static_cast<int>(channels_.size()))
            .first->second;
    Task mine = task;
    if (part.source == rank_) {
      const std::vector<Region> regions = regions_of(part, &CopySegment::source);
      mine.label = fmt::format("send {} to rank {}", task.label, part.target);
      mine.work = CopyWork{};
      add(mine, from, regions, {});
      local_.tasks.back().work =
          SendWork{{part.target, channel, local_.tasks.back().reads, {}, is_by_link(part)}};
    } else if (part.target == rank_) {
      const std::vector<Region> regions = regions_of(part, &CopySegment::target);
      mine.label = fmt::format("receive {} from rank {}", task.label, part.source);
      mine.work = CopyWork{};
      add(mine, to, {}, regions);
      local_.tasks.back().work =
          ReceiveWork{{part.source, channel, local_.tasks.back().writes, {}, is_by_link(part)}};
    }
  }

  const Plan& whole_;
  const DeviceRanks& ranks_;
  const int rank_;
  const MessagePath path_;
  Plan local_;
  std::vector<int> buffers_, bindings_;          // local numbers; -1: another rank's
  std::map<int, int> first_device_;              // by rank
  std::map<std::pair<int, int>, int> channels_;  // by the numbers of source and target stream
};

class Fingerprint {
 public:
  void add(const std::string& text) {
    add(static_cast<int64_t>(text.size()));
    for (const char c : text) value_ = fnv::add(value_, static_cast<uint8_t>(c));
  }
  void add(int64_t value) {
    for (int i = 0; i < 8; ++i) {
      value_ = fnv::add(value_, static_cast<uint8_t>(static_cast<uint64_t>(value) >> 8 * i));
    }
  }
  void add(const Region& region) {
    add(region.buffer);
    add(region.offset);
    add(region.bytes);
  }
  [[nodiscard]] uint64_t value() const { return value_; }

 private:
  uint64_t value_ = fnv::begin;
};

}  // namespace

Plan localize(const Plan& plan, const DeviceRanks& ranks, int rank, MessagePath path) {
  return Localizer(plan, ranks, rank, path).take();
}

uint64_t fingerprint(const Plan& plan) {
  Fingerprint result;
  result.add(plan.strategy);
  result.add(plan.net);
  for (const int64_t number :
       {int64_t{plan.devices}, plan.batch, int64_t{plan.micro_batches_per_step}}) {
    result.add(number);
  }
  for (const Buffer& buffer : plan.buffers) {
    result.add(buffer.name);
    result.add(buffer.device);
    result.add(buffer.slots);
    // Sizes that only kernels know may differ between machines.
    result.add(buffer.kind == BufferKind::persistent ? buffer.bytes : 0);
  }
  for (const PlanBinding& use : plan.bindings) {
    for (const int64_t number :
         {int64_t{use.layer}, int64_t{use.device}, use.rows.begin, use.rows.end, use.slice.begin,
          use.slice.end, use.input_slice.begin, use.input_slice.end}) {
      result.add(number);
    }
  }
  for (const Task& task : plan.tasks) {
    result.add(task.label);
    result.add(static_cast<int64_t>(task.work.index()));
    result.add(static_cast<int64_t>(task.when));
    for (const StreamId& stream : task.streams) {
      result.add(stream.device);
      result.add(static_cast<int64_t>(stream.kind));
    }
    for (const auto* regions : {&task.reads, &task.writes}) {
      result.add(static_cast<int64_t>(regions->size()));
      for (const Region& region : *regions) result.add(region);
    }
  }
  return result.value();
}

}  // namespace tandem
