// Sums over the elements of a tensor in a fixed order, one for each group of elements, such as a
// channel, near the speed of the memory. The order, and so every bit, depends on shapes and element
// types alone.
//
// A thread adds up to 32 terms in float32, then such sums in double: a GPU adds doubles up to 64
// times slower. So the error is at most 2^-19 of the sum of the terms' absolute values.
//
// Terms are a struct with
//   using Element = T;
//   static constexpr int ahead = 4;   elements, or vectors of them, that a thread reads at once
//   bool are_aligned() const;                                       on the host
//   template <int m> auto groups(int64_t group) const;              constants of m groups
//   template <int n, bool aligned> auto read(int64_t i) const;      elements i to i + n - 1
//   InFloat<Value> value(const auto& groups, int group, const auto& read, int lane) const;
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "plugins/cuda/indexing.h"
#include "plugins/cuda/sums.h"
#include "plugins/cuda/teams.h"
#include "plugins/cuda/tensor_groups.h"
#include "plugins/cuda/vectors.h"

namespace tandem::cuda {

struct FloatPair {
  float first, second;
  TANDEM_HOST_DEVICE FloatPair& operator+=(const FloatPair& other) {
    first += other.first;
    second += other.second;
    return *this;
  }
};
template <class Value>
using InFloat = std::conditional_t<std::is_same_v<Value, Pair>, FloatPair, float>;

TANDEM_HOST_DEVICE inline double in_double(float value) {
  return static_cast<double>(value);
}
TANDEM_HOST_DEVICE inline Pair in_double(const FloatPair& value) {
  return {static_cast<double>(value.first), static_cast<double>(value.second)};
}

namespace detail {

constexpr int max_in_float = 32;

// Groups side by side: the threads of a block are rows of `columns` threads. A thread adds the
// elements of n groups in every so many lines.
template <class Value, class Terms, int n, bool aligned>
struct ColumnSums {
  // Elements of vectors that are read one by one need more registers.
  static constexpr int ahead = n == 1    ? 2 * Terms::ahead
                               : aligned ? Terms::ahead
                                         : Terms::ahead / 2;
  struct Batch {
    decltype(std::declval<Terms>().template read<n, aligned>(0)) read[ahead];
  };
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t block) const {
    const int64_t place = quotient(block, chunks), chunk = block - place * chunks;
    const int64_t part = quotient(place, period), position = place - part * period;
    const int rank = static_cast<int>(team.rank()), rows = static_cast<int>(team.size()) / columns;
    const int row = rank / columns;
    const int64_t column = (chunk * columns + (rank - row * columns)) * n;
    const auto sums = team.template own_values<n, Value>();
    sums.clear();
    if (row < rows && column < width) add_lines(part, position, column, row, rows, sums);
    const int64_t first = position * width + chunk * columns * n;
    const int64_t end = (position + 1) * width;
    team.template sum_columns<n, Value>(columns, [&](int64_t at, const Value& sum) {
      if (first + at < end) scratch[part * period * width + first + at] = sum;
    });
  }
  template <class Sums>
  TANDEM_HOST_DEVICE void add_lines(int64_t part, int64_t position, int64_t column, int row,
                                    int rows, const Sums& sums) const {
    const int64_t end = (part + 1) * length < lines ? (part + 1) * length : lines;
    int64_t line = part * length + row;
    int left = lines_left(line, end, rows);
    if (left == 0) return;
    const auto groups = terms.template groups<n>(position * width + column);
    Batch next = read_ahead(position, column, line, rows, left);
    while (left > 0) {
      InFloat<Value> short_sums[n] = {};
      for (int i = 0; i < max_in_float && left > 0; i += ahead, left -= ahead) {
        const Batch batch = next;
        line += ahead * rows;
        // The next lines are on their way while these are added.
        if (left > ahead) next = read_ahead(position, column, line, rows, left - ahead);
        TANDEM_UNROLL
        for (int k = 0; k < ahead; ++k) {
          if (k >= left) break;
          TANDEM_UNROLL
          for (int lane = 0; lane < n; ++lane) {
            short_sums[lane] += terms.value(groups, lane, batch.read[k], lane);
          }
        }
      }
      sums.add([&](int lane) { return in_double(short_sums[lane]); });
    }
  }
  // Those of `ahead` lines of which `left` exist.
  [[nodiscard]] TANDEM_HOST_DEVICE Batch read_ahead(int64_t position, int64_t column, int64_t line,
                                                    int rows, int left) const {
    Batch result;
    TANDEM_UNROLL
    for (int k = 0; k < ahead; ++k) {
      const int64_t own = k < left ? line + k * rows : line;
      result.read[k] = terms.template read<n, aligned>(element(position, own) + column);
    }
    return result;
  }
  // The first element of a line.
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t element(int64_t position, int64_t line) const {
    if (n > 1 || period == 1) return line * stride;  // vectors are for one position
    const int64_t repeat = quotient(line, pixels);
    return ((repeat * period + position) * pixels + (line - repeat * pixels)) * stride;
  }
  Terms terms;
  Value* scratch;
  Divisor chunks, period, pixels;
  int64_t width, stride, lines;
  int64_t length;
  int columns;
};

// Planes: a block adds a part of the elements of one group, vectors of n of them.
template <class Value, class Terms, int n, bool aligned>
struct PlaneSums {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t block) const {
    const int64_t part = quotient(block, period), group = block - part * period;
    constexpr int ahead = n > 1 ? Terms::ahead : 2 * Terms::ahead;
    const int64_t size = team.size(), last = (part + 1) * length;
    const int64_t end = last < vectors ? last : vectors;
    const auto groups = terms.template groups<1>(group);
    Value sum{};
    for (int64_t v = part * length + team.rank(); v < end;) {
      InFloat<Value> short_sums[n] = {};
      for (int i = 0; i < max_in_float / n && v < end; i += ahead, v += ahead * size) {
        decltype(terms.template read<n, aligned>(0)) reads[ahead];
        TANDEM_UNROLL
        for (int k = 0; k < ahead; ++k) {
          const int64_t own = v + k * size < end ? v + k * size : v;
          const int64_t tile = quotient(own, plane);
          reads[k] = terms.template read<n, aligned>(
              ((tile * period + group) * plane + (own - tile * plane)) * n);
        }
        TANDEM_UNROLL
        for (int k = 0; k < ahead; ++k) {
          if (v + k * size >= end) break;
          TANDEM_UNROLL
          for (int lane = 0; lane < n; ++lane) {
            short_sums[lane] += terms.value(groups, 0, reads[k], lane);
          }
        }
      }
      TANDEM_UNROLL
      for (int lane = 1; lane < n; ++lane) short_sums[0] += short_sums[lane];
      sum += in_double(short_sums[0]);
    }
    sum = team.combine(sum, Add());
    if (team.rank() == 0) scratch[part * period + group] = sum;
  }
  Terms terms;
  Value* scratch;
  Divisor period, plane;  // plane: vectors of a tile
  int64_t vectors;        // of a group
  int64_t length;
};

// Adds the parts of `columns` groups, a power of two.
template <class Value, class Finish>
struct SumsOfParts {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t block) const {
    constexpr int together = 8;
    const int64_t rank = team.rank(), column = rank & (columns - 1);
    const int64_t group = block * columns + column, rows = quotient(team.size(), columns);
    Value sum{};
    if (group < groups) {
      for (int64_t part = quotient(rank, columns); part < parts; part += together * rows) {
        Value values[together];
        TANDEM_UNROLL
        for (int k = 0; k < together; ++k) {
          const int64_t own = part + k * rows;
          values[k] = scratch[(own < parts ? own : part) * groups + group];
        }
        TANDEM_UNROLL
        for (int k = 0; k < together; ++k) {
          if (part + k * rows < parts) sum += values[k];
        }
      }
    }
    sum = team.combine(sum, Add(), static_cast<unsigned>(columns));
    if (rank < columns && group < groups) finish(group, sum);
  }
  Finish finish;
  const Value* scratch;  // the groups of a part are neighbors
  int64_t groups, parts, columns;
};

}  // namespace detail

// Value: double or Pair.
template <class Value = double>
class TensorSums {
 public:
  TensorSums() = default;
  explicit TensorSums(const TermLayout& layout) : layout_(layout) {
    constexpr int64_t lines_of_thread = 16, elements_of_thread = 64;
    if (layout.are_planes()) {
      const int64_t work = elements_of_thread * threads_of_block;
      parts_ = parts_for(layout.lines() / work, layout.period);
      return;
    }
    const detail::GroupColumns columns(layout.width, 8);
    const int64_t work = threads_of_block / columns.each * lines_of_thread;
    parts_ = parts_for(layout.lines() / work, columns.chunks * layout.period);
  }

  [[nodiscard]] int64_t scratch_bytes() const {
    return (layout_.groups() * parts_ * static_cast<int64_t>(sizeof(Value)) + 15) / 16 * 16;
  }

  // Calls finish(group, sum) for all groups.
  template <class Terms, class Finish>
  void run(const sdk::Call& call, const Terms& terms, Value* scratch, const Finish& finish) const {
    constexpr int n = elements_at_once<typename Terms::Element>;
    // Decided by shapes, so that addresses do not change the order.
    const bool in_vectors = layout_.are_planes() ? layout_.pixels % n == 0
                                                 : layout_.period == 1 && layout_.width % n == 0 &&
                                                       layout_.stride % n == 0;
    if (!in_vectors) {
      add<1, false>(call, terms, scratch);
    } else if (terms.are_aligned()) {
      add<n, true>(call, terms, scratch);
    } else {
      add<n, false>(call, terms, scratch);
    }
    // Few columns where there are many parts, so that no thread adds many.
    const int64_t wanted = parts_ > 512 ? 2 : parts_ > 128 ? 4 : 16;
    const int64_t columns = std::min<int64_t>(wanted, threads_of_block), groups = layout_.groups();
    for_blocks(call, (groups + columns - 1) / columns,
               detail::SumsOfParts<Value, Finish>{finish, scratch, groups, parts_, columns});
  }

 private:
  // The parts of each group, at most `most`, for `blocks` blocks in each part. A large GPU runs 264
  // blocks at a time, so that there are whole rounds of blocks.
  static int64_t parts_for(int64_t most, int64_t blocks) {
    constexpr int64_t at_once = 264;
    int64_t wanted = 4 * at_once;
    while (wanted > at_once && most * blocks < wanted) wanted /= 2;
    return std::clamp<int64_t>(most, 1, std::max<int64_t>(1, wanted / blocks));
  }

  template <int n, bool aligned, class Terms>
  void add(const sdk::Call& call, const Terms& terms, Value* scratch) const {
    const TermLayout& l = layout_;
    const auto part_of = [this](int64_t all) { return (all + parts_ - 1) / parts_; };
    if (l.are_planes()) {
      const int64_t vectors = l.lines() / n;
      for_blocks(call, l.period * parts_,
                 detail::PlaneSums<Value, Terms, n, aligned>{terms, scratch, l.period, l.pixels / n,
                                                             vectors, part_of(vectors)});
      return;
    }
    const detail::GroupColumns columns(l.width, n);
    for_blocks(call, columns.chunks * l.period * parts_,
               detail::ColumnSums<Value, Terms, n, aligned>{
                   terms, scratch, columns.chunks, l.period, l.pixels, l.width, l.stride, l.lines(),
                   part_of(l.lines()), columns.each});
  }

  TermLayout layout_{};
  int64_t parts_ = 1;
};

}  // namespace tandem::cuda
