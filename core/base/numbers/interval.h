// Half-open intervals of whole numbers (rows, bytes, elements): what every piece of a batch, of a
// buffer or of a weight array is described with. An interval whose end is not after its begin is
// empty.
#pragma once

#include <cstdint>
#include <map>

namespace tandem {

struct Interval {
  int64_t begin = 0, end = 0;  // end is the first that does not belong to it

  [[nodiscard]] int64_t count() const { return end - begin; }
  [[nodiscard]] bool is_empty() const { return end <= begin; }
  [[nodiscard]] bool contains(const Interval& other) const {
    return begin <= other.begin && other.end <= end;
  }
  [[nodiscard]] bool overlaps(const Interval& other) const {
    return begin < other.end && other.begin < end;
  }
  friend bool operator==(const Interval&, const Interval&) = default;
};

// Empty where they do not overlap; then count() may be negative.
[[nodiscard]] inline Interval intersection(const Interval& a, const Interval& b) {
  return {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

// Part `index` of [0, count) divided into `parts`, in order: parts differ by at most one, the
// larger ones come first.
[[nodiscard]] Interval share(int64_t count, int parts, int index);

// An interval on a device (of rows or bytes: its owner says which).
struct Placement {
  int device = 0;
  Interval interval;
  friend bool operator==(const Placement&, const Placement&) = default;
};

// A set of numbers as the fewest intervals that hold it.
class IntervalSet {
 public:
  void add(Interval interval);
  [[nodiscard]] bool contains(const Interval& interval) const;
  // The interval of the set that holds this number; an empty one if none does.
  [[nodiscard]] Interval find(int64_t number) const;
  // Ends by begin.
  [[nodiscard]] const std::map<int64_t, int64_t>& intervals() const { return ends_; }

 private:
  std::map<int64_t, int64_t> ends_;
};

}  // namespace tandem
