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

#include "plugins/cuda/indexing.h"
#include "plugins/cuda/sums.h"
#include "plugins/cuda/teams.h"
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

// The constants of groups whose terms have none.
struct NoConstants {};

// Where the terms lie. Tiles of `pixels` lines of `width` elements follow each other; the lines
// begin `stride` elements apart. Element `column` of a line of tile t belongs to group
// (t % period) * width + column.
struct TermLayout {
  int64_t tiles, pixels, width, period, stride;

  [[nodiscard]] int64_t groups() const { return period * width; }
  [[nodiscard]] int64_t lines() const { return tiles / period * pixels; }  // of each group
  // Whether the terms of a group are lines of neighbours.
  [[nodiscard]] bool are_planes() const { return width == 1 && stride == 1 && pixels > 1; }
};

namespace detail {

constexpr int most_in_float = 32;

// How the groups are divided into blocks. `part` of all parts of a group has lines, or elements of
// planes, from part * length on.
struct SumParts {
  int64_t parts, length;
};

// Groups side by side: the threads of a block are rows of `columns` threads. A thread adds the
// elements of n groups in every so many lines.
template <class Value, class Terms, int n, bool aligned>
struct ColumnSums {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t block) const {
    const int64_t place = quotient(block, chunks), chunk = block - place * chunks;
    const int64_t part = quotient(place, period), position = place - part * period;
    const int rank = static_cast<int>(team.rank()), rows = static_cast<int>(team.size()) / columns;
    const int row = rank / columns;
    const int64_t column = (chunk * columns + (rank - row * columns)) * n;
    Value sums[n] = {};
    if (row < rows && column < width) add_lines(part, position, column, row, rows, sums);
    const int64_t first = position * width + chunk * columns * n;
    const int64_t end = (position + 1) * width;
    team.template sum_columns<n>(sums, columns, [&](int64_t at, const Value& sum) {
      if (first + at < end) scratch[(first + at) * parts.parts + part] = sum;
    });
  }
  TANDEM_HOST_DEVICE void add_lines(int64_t part, int64_t position, int64_t column, int row,
                                    int rows, Value (&sums)[n]) const {
    constexpr int ahead = n > 1 ? Terms::ahead : 2 * Terms::ahead;
    const int64_t end = (part + 1) * parts.length < lines ? (part + 1) * parts.length : lines;
    const auto groups = terms.template groups<n>(position * width + column);
    for (int64_t line = part * parts.length + row; line < end;) {
      InFloat<Value> short_sums[n] = {};
      for (int i = 0; i < most_in_float && line < end; i += ahead, line += ahead * rows) {
        decltype(terms.template read<n, aligned>(0)) reads[ahead];
        TANDEM_UNROLL
        for (int k = 0; k < ahead; ++k) {
          const int64_t own = line + k * rows < end ? line + k * rows : line;
          reads[k] = terms.template read<n, aligned>(element(position, own) + column);
        }
        TANDEM_UNROLL
        for (int k = 0; k < ahead; ++k) {
          if (line + k * rows >= end) break;
          TANDEM_UNROLL
          for (int lane = 0; lane < n; ++lane) {
            short_sums[lane] += terms.value(groups, lane, reads[k], lane);
          }
        }
      }
      TANDEM_UNROLL
      for (int lane = 0; lane < n; ++lane) sums[lane] += in_double(short_sums[lane]);
    }
  }
  // The first element of a line.
  [[nodiscard]] TANDEM_HOST_DEVICE int64_t element(int64_t position, int64_t line) const {
    if (period == 1) return line * stride;
    const int64_t repeat = quotient(line, pixels);
    return ((repeat * period + position) * pixels + (line - repeat * pixels)) * stride;
  }
  Terms terms;
  Value* scratch;
  Divisor chunks, period, pixels;
  int64_t width, stride, lines;
  SumParts parts;
  int columns;
};

// Planes: a block adds a part of the elements of one group, vectors of n of them.
template <class Value, class Terms, int n, bool aligned>
struct PlaneSums {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t block) const {
    const int64_t part = quotient(block, period), group = block - part * period;
    constexpr int ahead = n > 1 ? Terms::ahead : 2 * Terms::ahead;
    const int64_t size = team.size(), last = (part + 1) * parts.length;
    const int64_t end = last < vectors ? last : vectors;
    const auto groups = terms.template groups<1>(group);
    Value sum{};
    for (int64_t v = part * parts.length + team.rank(); v < end;) {
      InFloat<Value> short_sums[n] = {};
      for (int i = 0; i < most_in_float / n && v < end; i += ahead, v += ahead * size) {
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
    if (team.rank() == 0) scratch[group * parts.parts + part] = sum;
  }
  Terms terms;
  Value* scratch;
  Divisor period, plane;  // plane: vectors of a tile
  int64_t vectors;        // of a group
  SumParts parts;
};

}  // namespace detail

// Value: double or Pair.
template <class Value = double>
class TensorSums {
 public:
  TensorSums() = default;
  explicit TensorSums(const TermLayout& layout) : layout_(layout) {
    // Enough blocks to fill a GPU, with some work for each thread.
    constexpr int64_t most_blocks = 4096, lines_of_thread = 16, elements_of_thread = 64;
    if (layout.are_planes()) {
      const int64_t work = elements_of_thread * threads_of_block;
      parts_ = std::clamp<int64_t>(layout.lines() / work, 1,
                                   std::max<int64_t>(1, most_blocks / layout.period));
      return;
    }
    const Columns columns(layout.width, 8);
    const int64_t work = threads_of_block / columns.each * lines_of_thread;
    parts_ =
        std::clamp<int64_t>(layout.lines() / work, 1,
                            std::max<int64_t>(1, most_blocks / (columns.chunks * layout.period)));
  }

  [[nodiscard]] int64_t scratch_bytes() const {
    return (layout_.groups() * parts_ * static_cast<int64_t>(sizeof(Value)) + 15) / 16 * 16;
  }

  // Calls finish(group, sum) for all groups.
  template <class Terms, class Finish>
  void run(const sdk::Call& call, const Terms& terms, Value* scratch, const Finish& finish) const {
    constexpr int n = elements_at_once<typename Terms::Element>;
    // Decided by shapes, so that addresses do not change the order.
    const bool in_vectors = layout_.are_planes()
                                ? layout_.pixels % n == 0
                                : layout_.width % n == 0 && layout_.stride % n == 0;
    if (!in_vectors) {
      add<1, false>(call, terms, scratch);
    } else if (terms.are_aligned()) {
      add<n, true>(call, terms, scratch);
    } else {
      add<n, false>(call, terms, scratch);
    }
    detail::add_parts(call, layout_.groups(), parts_, scratch, finish);
  }

 private:
  // How `width` groups side by side are divided: chunks of `each` threads with n groups each.
  struct Columns {
    Columns(int64_t width, int n) {
      const int64_t threads = (width + n - 1) / n;
      const int64_t most = std::min<int64_t>(n > 1 ? 32 : 128, threads_of_block);
      chunks = (threads + most - 1) / most;
      each = static_cast<int>((threads + chunks - 1) / chunks);
    }
    int64_t chunks;
    int each;
  };

  template <int n, bool aligned, class Terms>
  void add(const sdk::Call& call, const Terms& terms, Value* scratch) const {
    const TermLayout& l = layout_;
    const auto part_of = [this](int64_t all) {
      return detail::SumParts{parts_, (all + parts_ - 1) / parts_};
    };
    if (l.are_planes()) {
      const int64_t vectors = l.lines() / n;
      for_blocks(call, l.period * parts_,
                 detail::PlaneSums<Value, Terms, n, aligned>{terms, scratch, l.period, l.pixels / n,
                                                             vectors, part_of(vectors)});
      return;
    }
    const Columns columns(l.width, n);
    for_blocks(call, columns.chunks * l.period * parts_,
               detail::ColumnSums<Value, Terms, n, aligned>{
                   terms, scratch, columns.chunks, l.period, l.pixels, l.width, l.stride, l.lines(),
                   part_of(l.lines()), columns.each});
  }

  TermLayout layout_{};
  int64_t parts_ = 1;
};

}  // namespace tandem::cuda
