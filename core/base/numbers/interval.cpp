#include "core/base/numbers/interval.h"

#include <algorithm>
#include <iterator>

namespace tandem {

Interval share(int64_t count, int parts, int index) {
  const int64_t smallest = count / parts, larger = count % parts;
  const int64_t begin = index * smallest + std::min<int64_t>(index, larger);
  return {begin, begin + smallest + (index < larger ? 1 : 0)};
}

void IntervalSet::add(Interval interval) {
  if (interval.is_empty()) return;
  auto next = ends_.upper_bound(interval.begin);
  if (next != ends_.begin() && std::prev(next)->second >= interval.begin) --next;
  while (next != ends_.end() && next->first <= interval.end) {
    interval.begin = std::min(interval.begin, next->first);
    interval.end = std::max(interval.end, next->second);
    next = ends_.erase(next);
  }
  ends_[interval.begin] = interval.end;
}

Interval IntervalSet::find(int64_t number) const {
  const auto next = ends_.upper_bound(number);
  if (next == ends_.begin()) return {};
  const auto& [begin, end] = *std::prev(next);
  return number < end ? Interval{begin, end} : Interval{};
}

bool IntervalSet::contains(const Interval& interval) const {
  return interval.is_empty() || find(interval.begin).contains(interval);
}

}  // namespace tandem
