#include "core/schedule/plan/packing.h"

#include <algorithm>
#include <map>
#include <variant>

#include "core/schedule/plan/memory_plan.h"

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
    for (PlanBinding& use : plan_.bindings) move(use);
    for (Task& task : plan_.tasks) {
      move(task.reads);
      move(task.writes);
      std::visit([this](auto& work) { move(work); }, task.work);
    }
    for (const auto& [buffer, bytes] : packed) plan_.buffers[size_t(buffer)].bytes = bytes;
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
  void move(PlanBinding& use) {
    for (auto* regions : {&use.inputs, &use.outputs, &use.weights, &use.input_gradients,
                          &use.output_gradients, &use.weight_gradients}) {
      move(*regions);
    }
    move(use.addend);
  }
  void move(LayerWork&) {}
  void move(CheckWork& work) { move(work.values); }
  void move(ConvertWork&) {}
  void move(RankMessage& work) { move(work.regions); }
  void move(CopyWork& work) {
    for (CopySegment& segment : work.segments) {
      move(segment.source);
      move(segment.target);
    }
  }
  void move(AddWork& work) {
    move(work.target);
    move(work.sources);
  }
  void move(MergeWork& work) {
    move(work.target);
    move(work.sources);
  }
  void move(NormWork& work) {
    for (ArrayNorms& array : work.arrays) {
      move(array.values);
      move(array.gradient);
    }
  }
  void move(UpdateWork& work) {
    for (ArrayUpdate& array : work.arrays) {
      move(array.weights);
      move(array.gradient);
      move(array.state);
    }
  }

  Plan& plan_;
  std::map<int, Kept> kept_;
};

}  // namespace

void pack_buffers(Plan& plan, const std::vector<int>& buffers) {
  Packing(plan, buffers).pack();
}

}  // namespace tandem
