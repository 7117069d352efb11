// Sums over the rows of a batch by a team on a cpu, in an order that does not depend on the team's
// size.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plugins/cpu/team.h"

namespace tandem::layers {

constexpr int64_t max_parts = 32;
constexpr int64_t row_sum_bytes = max_parts * 8;  // of scratch

namespace detail {
// The number of parts for `count` items of about `work` floats each.
inline int64_t parts_for(int64_t count, int64_t work) {
  constexpr int64_t worth_a_part = 8192;
  return std::clamp<int64_t>(count * work / worth_a_part, 1,
                             std::min(max_parts, std::max<int64_t>(count, 1)));
}
}  // namespace detail

// The sum of body(i) for i in [0, count). `work`: about how many floats one call reads.
template <class Body>
double sum_of(int32_t threads, int64_t count, int64_t work, double* scratch, const Body& body) {
  const int64_t parts = detail::parts_for(count, work);
  cpu::for_parts(threads, parts, [&](int64_t part) {
    double sum = 0;
    for (int64_t i = part * count / parts; i < (part + 1) * count / parts; ++i) sum += body(i);
    scratch[part] = sum;
  });
  double sum = 0;
  for (int64_t part = 0; part < parts; ++part) sum += scratch[part];
  return sum;
}

// body(i) for i in [0, count), which must be independent of each other.
template <class Body>
void for_rows(int32_t threads, int64_t count, int64_t work, const Body& body) {
  const int64_t parts = detail::parts_for(count, work);
  cpu::for_parts(threads, parts, [&](int64_t part) {
    for (int64_t i = part * count / parts; i < (part + 1) * count / parts; ++i) body(i);
  });
}

// The sum of term(i) over the values of a row, in eight interleaved sums.
template <class Term>
double sum_of_terms(int64_t count, const Term& term) {
  constexpr int64_t lanes = 8;
  double sums[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (int64_t k = 0; k < lanes; ++k) sums[k] += static_cast<double>(term(i + k));
  }
  for (; i < count; ++i) sums[0] += static_cast<double>(term(i));
  double sum = 0;
  for (const double lane : sums) sum += lane;
  return sum;
}

// The squared distance of two rows.
inline double squared_distance(int64_t count, const float* a, const float* b) {
  return sum_of_terms(count, [=](int64_t i) {
    const double distance = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    return distance * distance;
  });
}

}  // namespace tandem::layers
