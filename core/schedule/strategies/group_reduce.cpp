#include "core/schedule/strategies/group_reduce.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::group {

namespace {

// Below this a message's latency costs more than its bytes.
constexpr int64_t smallest_part = 16384;
constexpr int64_t alignment = 64;

// Part `part` of `parts`, on aligned bounds.
WeightRange part_of(const WeightRange& range, int64_t part, int64_t parts) {
  const auto bound = [&](int64_t p) {
    if (p == parts) return range.bytes;
    return std::min(range.bytes, (range.bytes * p / parts + alignment - 1) / alignment * alignment);
  };
  const int64_t begin = bound(part);
  return {range.offset + begin, bound(part + 1) - begin};
}

class Ring {
 public:
  Ring(PlanBuilder& builder, const std::vector<int>& members, const Reduction& reduction)
      : builder_(builder), members_(members), reduction_(reduction) {}

  void reduce(const WeightRange& range, const std::string& name) {
    const size_t parts = range.bytes < smallest_part * size() ? 1 : members_.size();
    // Hop by hop, so that all parts are under way at once.
    for (size_t hop = 0; hop + 1 < members_.size(); ++hop) {
      for (size_t part = 0; part < parts; ++part) {
        add(hop, part, part_of(range, int64_t(part), int64_t(parts)), named(name, part, parts));
      }
    }
    for (size_t hop = 0; hop + 1 < members_.size(); ++hop) {
      for (size_t part = 0; part < parts; ++part) {
        hand_on(hop, part, part_of(range, int64_t(part), int64_t(parts)), named(name, part, parts));
      }
    }
  }

 private:
  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(members_.size()); }
  [[nodiscard]] int member(size_t number) const { return members_[number % members_.size()]; }
  static std::string named(const std::string& name, size_t part, size_t parts) {
    return parts == 1 ? name : fmt::format("{} part {}", name, part);
  }

  // A part's sum begins behind the member that it ends at: part p at member p.
  void add(size_t hop, size_t part, const WeightRange& bytes, const std::string& name) {
    if (bytes.bytes == 0) return;
    const int from = member(part + 1 + hop), to = member(part + 2 + hop);
    const Region received = builder_.received_gradients(from, bytes, to);
    builder_.emit_transfer("send " + name, reduction_.sending, reduction_.layer, from, to,
                           {{builder_.gradients(from, bytes), received}}, When::last_batch);
    builder_.emit_add(fmt::format("add {} @{}", name, to), reduction_.adding,
                      {to, StreamKind::communication}, builder_.gradients(to, bytes), {received},
                      When::last_batch);
  }

  void hand_on(size_t hop, size_t part, const WeightRange& bytes, const std::string& name) {
    if (bytes.bytes == 0) return;
    const int from = member(part + hop), to = member(part + 1 + hop);
    builder_.emit_transfer("return " + name, reduction_.sending, reduction_.layer, from, to,
                           {{builder_.gradients(from, bytes), builder_.gradients(to, bytes)}},
                           When::last_batch);
  }

  PlanBuilder& builder_;
  const std::vector<int>& members_;
  const Reduction& reduction_;
};

}  // namespace

void emit_all_reduce(PlanBuilder& builder, const std::vector<int>& members,
                     const Reduction& reduction, const std::vector<WeightRange>& ranges) {
  if (members.size() < 2) return;
  Ring ring(builder, members, reduction);
  for (size_t i = 0; i < ranges.size(); ++i) {
    ring.reduce(ranges[i], ranges.size() > 1 ? fmt::format("{}, range {}", reduction.what, i)
                                             : reduction.what);
  }
}

}  // namespace tandem::group
