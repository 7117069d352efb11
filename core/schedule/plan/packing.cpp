#include "core/schedule/plan/packing.h"

#include <algorithm>
#include <map>

#include "core/schedule/plan/memory_plan.h"
#include "core/schedule/plan/regions.h"

namespace tandem {
namespace {

// What is kept of a buffer, and where it goes.
class Kept {
 public:
  void add(const Interval& bytes) {
    kept_.add({bytes.begin / memory_alignment * memory_alignment, aligned(bytes.end)});
  }
  // Returns the bytes in all.
  int64_t place() {
    int64_t filled = 0;
    for (const auto& [begin, end] : kept_.intervals()) {
      offsets_[begin] = filled;
      filled += end - begin;
    }
    return filled;
  }
  [[nodiscard]] Region moved(const Region& region, int64_t bytes) const {
    const Interval kept = kept_.find(region.offset);
    if (kept.is_empty() || region.offset + bytes > kept.end) return {};
    return {region.buffer, offsets_.at(kept.begin) + region.offset - kept.begin, bytes};
  }

 private:
  IntervalSet kept_;
  std::map<int64_t, int64_t> offsets_;  // by begin of what is kept
};

class Packing {
 public:
  Packing(Plan& plan, const std::vector<int>& buffers) : plan_(plan) {
    for (const int buffer : buffers) kept_[buffer];
    for (const Task& task : plan_.tasks) {
      for (const auto* list : {&task.reads, &task.writes}) {
        for (const Region& region : *list) keep(region);
      }
    }
  }

  void pack() {
    std::map<int, int64_t> packed;
    for (auto& [buffer, kept] : kept_) packed[buffer] = kept.place();
    const auto move_one = [this](Region& region) { move(region); };
    for (PlanBinding& use : plan_.bindings) for_each_region_of(use, move_one);
    for (Task& task : plan_.tasks) {
      move(task.reads);
      move(task.writes);
      for_each_region(task.work, move_one);
    }
    for (const auto& [buffer, bytes] : packed) plan_.buffer(buffer).bytes = bytes;
  }

 private:
  void keep(const Region& region) {
    const auto found = kept_.find(region.buffer);
    if (found == kept_.end()) return;
    const int64_t bytes = plan_.bytes(region);
    if (bytes > 0) found->second.add({region.offset, region.offset + bytes});
  }

  void move(Region& region) {
    const auto found = kept_.find(region.buffer);
    if (found != kept_.end()) region = found->second.moved(region, plan_.bytes(region));
  }
  void move(std::vector<Region>& regions) {
    for (Region& region : regions) move(region);
  }

  Plan& plan_;
  std::map<int, Kept> kept_;
};

}  // namespace

void pack_buffers(Plan& plan, const std::vector<int>& buffers) {
  Packing(plan, buffers).pack();
}

}  // namespace tandem
