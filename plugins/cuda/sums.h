// Sums in a fixed order, in double: one per group of terms, or one of all terms. Terms are added in
// parts, whose number depends only on the shapes, and then the parts. A term may be anything; sums
// of the elements of tensors are faster with tensor_sums.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"

namespace tandem::cuda {

// Two sums side by side.
struct Pair {
  double first, second;
  TANDEM_HOST_DEVICE Pair& operator+=(const Pair& other) {
    first += other.first;
    second += other.second;
    return *this;
  }
};
struct Add {
  template <class Value>
  TANDEM_HOST_DEVICE Value operator()(Value a, const Value& b) const {
    return a += b;
  }
};

namespace detail {

// The sum of term(i) over every `stride`-th i from `begin` on, with several terms on their way from
// memory at any time.
template <class Value, class Term>
TANDEM_HOST_DEVICE Value sum_of_terms(int64_t begin, int64_t end, int64_t stride,
                                      const Term& term) {
  constexpr int together = 4;
  Value sums[together] = {};
  for (; begin + (together - 1) * stride < end; begin += together * stride) {
    for (int k = 0; k < together; ++k) sums[k] += term(begin + k * stride);
  }
  for (; begin < end; begin += stride) sums[0] += term(begin);
  sums[0] += sums[1];
  sums[2] += sums[3];
  return sums[0] += sums[2];
}

template <class Value, class Term>
struct PartialGroupSums {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t index) const {
    const int64_t part = quotient(index, groups), group = index - part * groups;
    const int64_t end = (part + 1) * count / parts;
    Value sum = sum_of_terms<Value>(part * count / parts + team.rank(), end, team.size(),
                                    [&](int64_t k) { return term(group, k); });
    sum = team.combine(sum, Add());
    if (team.rank() == 0) scratch[group * parts + part] = sum;
  }
  Term term;
  Value* scratch;
  Divisor groups;
  int64_t count, parts;
};
// A team adds the parts of a group.
template <class Value, class Finish>
struct SumOfParts {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t group) const {
    Value sum{};
    for (int64_t part = team.rank(); part < parts; part += team.size()) {
      sum += scratch[group * parts + part];
    }
    sum = team.combine(sum, Add());
    if (team.rank() == 0) finish(group, sum);
  }
  Finish finish;
  const Value* scratch;
  int64_t parts;
};
template <class Value, class Finish>
void add_parts(const sdk::Call& call, int64_t groups, int64_t parts, const Value* scratch,
               const Finish& finish) {
  // A team even for few parts: they would arrive one after another in a thread.
  const int64_t work = parts > 4 ? std::max<int64_t>(parts, 33) : parts;
  for_teams(call, {groups, work}, SumOfParts<Value, Finish>{finish, scratch, parts});
}

template <class Term>
struct PartialTotals {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t part) const {
    const int64_t end = (part + 1) * count / parts;
    const double sum =
        team.sum(sum_of_terms<double>(part * count / parts + team.rank(), end, team.size(), term));
    if (team.rank() == 0) scratch[part] = sum;
  }
  Term term;
  double* scratch;
  int64_t count, parts;
};
template <class Finish>
struct FinalTotal {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t) const {
    double sum = 0;
    for (int64_t part = team.rank(); part < parts; part += team.size()) sum += scratch[part];
    sum = team.sum(sum);
    if (team.rank() == 0) finish(sum);
  }
  Finish finish;
  const double* scratch;
  int64_t parts;
};

}  // namespace detail

// `groups` sums of `count` terms each. Value: double or Pair.
template <class Value = double>
class GroupSums {
 public:
  GroupSums() = default;
  // side_by_side: the same terms of neighboring groups are neighbors in memory.
  GroupSums(int64_t groups, int64_t count, bool side_by_side)
      : groups_(groups), count_(count), side_by_side_(side_by_side) {
    // Enough teams to fill a GPU, with at least 256 terms each.
    const int64_t wanted = std::max<int64_t>(1, (side_by_side ? 262144 : 2048) / groups);
    parts_ = std::clamp<int64_t>(count / 256, 1, wanted);
  }

  [[nodiscard]] int64_t scratch_bytes() const {
    return groups_ * parts_ * static_cast<int64_t>(sizeof(Value));
  }

  // Calls finish(group, sum), where sum is that of term(group, k) over k in [0, count).
  template <class Term, class Finish>
  void run(const sdk::Call& call, const Term& term, Value* scratch, const Finish& finish) const {
    const detail::PartialGroupSums<Value, Term> parts{term, scratch, groups_, count_, parts_};
    for_teams(call, {groups_ * parts_, count_ / parts_, side_by_side_}, parts);
    detail::add_parts(call, groups_, parts_, scratch, finish);
  }

 private:
  int64_t groups_ = 0, count_ = 0, parts_ = 1;
  bool side_by_side_ = false;
};

// One sum of many terms.
class Total {
 public:
  Total() = default;
  explicit Total(int64_t count)
      : count_(count), parts_(std::clamp<int64_t>(count / 2048, 1, 1024)) {}

  [[nodiscard]] int64_t scratch_bytes() const {
    return parts_ * static_cast<int64_t>(sizeof(double));
  }

  // Calls finish(sum) once, where sum is that of term(i) over i in [0, count).
  template <class Term, class Finish>
  void run(const sdk::Call& call, const Term& term, double* scratch, const Finish& finish) const {
    for_teams(call, {parts_, std::max<int64_t>(count_ / parts_, 33)},
              detail::PartialTotals<Term>{term, scratch, count_, parts_});
    for_teams(call, {1, std::max<int64_t>(parts_, 33)},
              detail::FinalTotal<Finish>{finish, scratch, parts_});
  }

 private:
  int64_t count_ = 0, parts_ = 1;
};

}  // namespace tandem::cuda
