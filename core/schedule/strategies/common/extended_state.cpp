#include "core/schedule/strategies/common/extended_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/schedule/plan/buffers.h"
#include "core/schedule/plan/memory_plan.h"

namespace tandem {

static constexpr Stage load_state{19, "load_state", "#e5c494"};

// A quarter of the largest array, so that two windows are less than it, and what takes a copy much
// longer than its begin.
int64_t ExtendedState::window_bytes() const {
  constexpr int64_t most = int64_t{4} << 20;
  int64_t largest = 0;
  for (const WeightArray& array : builder_.net().weights) {
    largest = std::max(largest, buffers::bytes_of(array).count());
  }
  return std::clamp(aligned(largest / 4), memory_alignment, most);
}

void ExtendedState::emit_update(const std::string& what, Stage stage, int device,
                                const std::vector<int>& weights) {
  const int64_t window = window_bytes();
  int number = 0;
  for (const Interval& range : weight_ranges(builder_.net(), weights)) {
    for (int64_t begin = range.begin; begin < range.end; begin += window) {
      const std::vector<WeightSlice> parts =
          slices_in(builder_.net(), weights, {begin, std::min(begin + window, range.end)});
      if (parts.empty()) continue;
      emit_part(fmt::format("{} part {}", what, number++), stage, device, parts);
    }
  }
}

void ExtendedState::emit_part(const std::string& name, Stage stage, int device,
                              const std::vector<WeightSlice>& parts) {
  const Interval range = ranges_of(builder_.net(), parts).front();
  const int states = builder_.inputs().solver_states;
  const StateRegion kept = builder_.keep_state(device, range, true);
  const int64_t window = window_bytes();
  const int buffer = builder_.buffer({fmt::format("state window {}", parts_[device]++ % 2),
                                      device,
                                      BufferKind::transient,
                                      states * window,
                                      1,
                                      {}});
  const StateRegion here{{buffer, 0, range.count()}, window};
  std::vector<CopySegment> in, out;
  for (int i = 0; i < states; ++i) {
    const Region there{kept.first.buffer, kept.first.offset + i * kept.stride, range.count()};
    const Region inside{buffer, i * window, range.count()};
    in.push_back({there, inside});
    out.push_back({inside, there});
  }
  builder_.emit_copy(fmt::format("load state of {} @{}", name, device), load_state, -1,
                     {{device, StreamKind::copy}}, std::move(in), When::last_micro_batch);
  builder_.emit_update(fmt::format("update {} @{}", name, device), stage, device, parts,
                       StreamKind::update, &here);
  builder_.emit_copy(fmt::format("store state of {} @{}", name, device), Stage::store_state, -1,
                     {{device, StreamKind::copy}}, std::move(out), When::last_micro_batch);
}

}  // namespace tandem
