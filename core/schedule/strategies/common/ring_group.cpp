#include "core/schedule/strategies/common/ring_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/schedule/strategies/common/buckets.h"

namespace tandem {
namespace {

constexpr int64_t min_piece = 16 << 10;  // smaller ones are not cut off: latency counts

}  // namespace

RingGroup::RingGroup(PlanBuilder& builder, std::vector<int> members, int pieces)
    : builder_(builder), members_(std::move(members)), pieces_(pieces) {}

int RingGroup::pieces(Interval range) const {
  return static_cast<int>(
      std::clamp<int64_t>(range.count() / size() / min_piece, 1, int64_t{pieces_}));
}

Interval RingGroup::slice(Interval range, int part, int piece) const {
  return slice_of(slice_of(range, part, size()), piece, pieces(range));
}

std::string RingGroup::part_name(int part, int piece) {
  return fmt::format("part {}{}", part,
                     piece == 0   ? ""
                     : piece == 1 ? "b"
                                  : fmt::format("b{}", piece));
}

// The sum so far of a part goes to the next member, which adds its own.
void RingGroup::emit_ring_step(const Label& label, Interval range, int part, int piece, int from) {
  const Interval bytes = slice(range, part, piece);
  if (bytes.is_empty()) return;
  const int source = member(from), target = member(from + 1);
  const Region received = builder_.arriving_gradients(target, "received gradients", bytes);
  const std::string what = label.name + " " + part_name(part, piece);
  builder_.emit_transfer("reduce " + what, label.stage, label.layer, source, target,
                         {{builder_.gradients(source, bytes), received}}, When::last_micro_batch,
                         full_duplex);
  builder_.emit_add(fmt::format("add {} @{}", what, target), label.adding,
                    {target, StreamKind::update}, builder_.gradients(target, bytes), {received},
                    When::last_micro_batch);
}

void RingGroup::emit_reduce_scatter(const Label& label, Interval range) {
  // Round by round, so that all parts are under way at once; a part ends at its owner.
  for (int round = 0; round + 1 < size(); ++round) {
    for (int piece = 0; piece < pieces(range); ++piece) {
      for (int from = 0; from < size(); ++from) {
        emit_ring_step(label, range, (from + size() - round - 1) % size(), piece, from);
      }
    }
  }
}

void RingGroup::emit_all_gather(const Label& label, Interval range,
                                PlanRegions::WeightsOrGradients array) {
  for (int round = 0; round + 1 < size(); ++round) {
    for (int piece = 0; piece < pieces(range); ++piece) {
      for (int from = 0; from < size(); ++from) {
        const int part = (from + size() - round) % size();
        const Interval bytes = slice(range, part, piece);
        if (bytes.is_empty()) continue;
        const int source = member(from), target = member(from + 1);
        builder_.emit_transfer(fmt::format("all-gather {} {}", label.name, part_name(part, piece)),
                               label.stage, label.layer, source, target,
                               builder_.copies(array, source, target, {bytes}),
                               When::last_micro_batch, full_duplex);
      }
    }
  }
}

void RingGroup::emit_all_reduce(const Label& label, const std::vector<Interval>& ranges) {
  if (size() < 2) return;
  Label one = label;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.size() > 1) one.name = fmt::format("{}, range {},", label.name, i);
    emit_reduce_scatter(one, ranges[i]);
    emit_all_gather(one, ranges[i], &PlanRegions::gradients);
  }
}

}  // namespace tandem
