// The groups of a tensor's elements, such as channels, and how blocks of threads divide them.
// Groups lie side by side, as the channels of NHWC, or are planes, as those of NCHW.
//
// for_groups calls a body for all elements, near the speed of the memory: a thread keeps the
// constants of its groups in registers and reads several vectors before it writes. A body has
//   using Element = T;
//   static constexpr int ahead = 4;   vectors of elements that a thread reads at once
//   static constexpr int resident = 2;                       as in for_blocks
//   bool are_aligned() const;                                on the host
//   template <int m> auto groups(int64_t group) const;       constants of m neighboring groups
//   template <int n> auto read(int64_t i) const;             elements i to i + n - 1
//   float value(const auto& groups, int group, const auto& read, int lane) const;
//   template <int n> void write(int64_t i, const Values<n>& values) const;
// With m > 1, group is a multiple of m. An element has the same bits in whichever way it is
// reached.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"
#include "plugins/cuda/vectors.h"

namespace tandem::cuda {

// The constants of groups that have none.
struct NoConstants {};

// Those of m groups that are neighbors in memory, at any address.
template <int m, class V>
TANDEM_HOST_DEVICE inline Values<m> constants(const V* source) {
  if constexpr (m * sizeof(V) >= 16) {
    if (reinterpret_cast<uintptr_t>(source) % 16 == 0) {
      const Elements<V, m> all = read<m>(source);
      return each_lane<m>([&](int lane) { return all[lane]; });
    }
  }
  return each_lane<m>([&](int lane) { return load(source[lane]); });
}

// Where the elements lie. Tiles of `pixels` lines of `width` elements follow each other; the lines
// begin `stride` elements apart. Element `column` of a line of tile t belongs to group
// (t % period) * width + column.
struct TermLayout {
  int64_t tiles, pixels, width, period, stride;

  [[nodiscard]] int64_t groups() const { return period * width; }
  [[nodiscard]] int64_t lines() const { return tiles / period * pixels; }  // of each group
  // Whether the terms of a group are lines of neighbors.
  [[nodiscard]] bool are_planes() const { return width == 1 && stride == 1 && pixels > 1; }
};

namespace detail {

// How `width` groups side by side are divided: chunks of `each` threads with n groups each.
struct GroupColumns {
  GroupColumns(int64_t width, int n) {
    const int64_t threads = (width + n - 1) / n;
    const int64_t most = std::min<int64_t>(n > 1 ? 32 : 128, threads_of_block);
    chunks = (threads + most - 1) / most;
    each = static_cast<int>((threads + chunks - 1) / chunks);
  }
  int64_t chunks;
  int each;
};

// The number of every `stride`-th line from `first` on that is before `end`, of those of a block.
TANDEM_HOST_DEVICE inline int lines_left(int64_t first, int64_t end, int stride) {
  if (first >= end) return 0;
  return static_cast<int>((static_cast<uint32_t>(end - first) + stride - 1) / stride);
}

// Vectors that a thread reads before it writes the first of them. place(k) is the first element of
// vector k; `left` of them exist.
template <int n, class Body>
struct VectorsAhead {
  template <class Place>
  TANDEM_HOST_DEVICE void read(const Body& body, int left, const Place& place) {
    TANDEM_UNROLL
    for (int k = 0; k < Body::ahead; ++k) reads[k] = body.template read<n>(place(k < left ? k : 0));
  }
  template <int m, class Groups, class Place>
  TANDEM_HOST_DEVICE void write(const Body& body, const Groups& groups, int left,
                                const Place& place) const {
    TANDEM_UNROLL
    for (int k = 0; k < Body::ahead; ++k) {
      if (k >= left) break;
      body.template write<n>(place(k), each_lane<n>([&](int lane) {
                               return body.value(groups, m == 1 ? 0 : lane, reads[k], lane);
                             }));
    }
  }
  decltype(std::declval<Body>().template read<n>(0)) reads[Body::ahead];
};

// All vectors of a thread; place(k) is now that of any k below `count`. The constants arrive
// together with the first vectors.
template <int n, int m, class Body, class Place>
TANDEM_HOST_DEVICE inline void apply_to_vectors(const Body& body, int64_t group, int count,
                                                const Place& place) {
  if (count == 0) return;
  VectorsAhead<n, Body> vectors;
  int done = 0;
  const auto from_here = [&](int k) { return place(done + k); };
  vectors.read(body, count, from_here);
  const auto groups = body.template groups<m>(group);
  while (true) {
    vectors.template write<m>(body, groups, count - done, from_here);
    done += Body::ahead;
    if (done >= count) return;
    vectors.read(body, count - done, from_here);
  }
}

// The blocks begin at the tensor's end, which the sums or the layer before have just read or
// written: it may still be in the cache. The next layer begins where these end.

// Groups side by side: the threads of a block are rows of `columns` threads, and each has n groups
// in every so many lines.
template <int n, class Body>
struct ColumnsOfGroups {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t number) const {
    const int64_t block = blocks - 1 - number;
    const int64_t part = quotient(block, chunks), chunk = block - part * chunks;
    const int rank = static_cast<int>(team.rank()), rows = static_cast<int>(team.size()) / columns;
    const int row = rank / columns;
    const int64_t column = (chunk * columns + (rank - row * columns)) * n;
    if (row >= rows || column >= width) return;
    const int64_t first = part * length + row;
    const int64_t end = (part + 1) * length < lines ? (part + 1) * length : lines;
    apply_to_vectors<n, n>(body, column, lines_left(first, end, rows),
                           [&](int k) { return (first + int64_t{k} * rows) * width + column; });
  }
  Body body;
  Divisor chunks;
  int64_t width, lines, length;  // length: lines of a block
  int64_t blocks;
  int columns;
};

// Planes: a block has vectors of one group.
template <int n, class Body>
struct PlanesOfGroups {
  template <class Team>
  TANDEM_HOST_DEVICE void operator()(const Team& team, int64_t number) const {
    const int64_t block = blocks - 1 - number;
    const int64_t part = quotient(block, period), group = block - part * period;
    const int64_t first = part * length + team.rank();
    const int64_t end = (part + 1) * length < vectors ? (part + 1) * length : vectors;
    const int size = static_cast<int>(team.size());
    apply_to_vectors<n, 1>(body, group, lines_left(first, end, size), [&](int k) {
      const int64_t own = first + int64_t{k} * size, tile = quotient(own, plane);
      return ((tile * period + group) * plane + (own - tile * plane)) * n;
    });
  }
  Body body;
  Divisor period, plane;    // plane: vectors of a tile
  int64_t vectors, length;  // of a group, of a block
  int64_t blocks;
};

// Any layout without gaps, as a body of for_each: the constants are loaded for every vector.
template <class Body>
struct ElementsOfGroups {
  static constexpr int at_once = elements_at_once<typename Body::Element>;
  [[nodiscard]] bool can_vectorize() const {
    return body.are_aligned() && (width == 1 ? pixels >= at_once : width % at_once == 0);
  }
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE auto read(int64_t i) const {
    return body.template read<n>(i);
  }
  template <int n, class Read>
  TANDEM_HOST_DEVICE void write(int64_t i, const Read& read) const {
    const int64_t line = quotient(i, width), tile = quotient(line, pixels);
    const int64_t position = tile - quotient(tile, period) * period;
    const int64_t group = position * width + (i - line * width);
    if (n > 1 && width > 1) {
      const auto groups = body.template groups<n>(group);
      const auto value = [&](int lane) { return body.value(groups, lane, read, lane); };
      return body.template write<n>(i, each_lane<n>(value));
    }
    const auto groups = body.template groups<1>(group);
    auto values = each_lane<n>([&](int lane) { return body.value(groups, 0, read, lane); });
    const int64_t left = (tile + 1) * pixels - i;  // the other lanes are in the next plane
    if (n > 1 && left < n) {
      const auto next = body.template groups<1>(position + 1 < period ? position + 1 : 0);
      values = each_lane<n>(
          [&](int lane) { return lane < left ? values[lane] : body.value(next, 0, read, lane); });
    }
    body.template write<n>(i, values);
  }
  Body body;
  Divisor pixels, width, period;
};

// Elements, or lines of them, for each of a block's threads: few for small tensors, so that there
// are blocks for the whole GPU, and enough in large ones to load constants rarely.
template <class Body>
int64_t vectors_of_thread(int64_t vectors) {
  const int64_t wanted = vectors / (1056 * threads_of_block) / Body::ahead * Body::ahead;
  return std::clamp<int64_t>(wanted, Body::ahead, 8 * Body::ahead);
}

}  // namespace detail

// Calls the body for all elements; the layout has no gaps.
template <class Body>
void for_groups(const sdk::Call& call, const TermLayout& l, const Body& body) {
  constexpr int n = elements_at_once<typename Body::Element>;
  constexpr int64_t min_lines = 64;  // so that threads have several
  constexpr int64_t min_plane = 32;  // vectors; shorter lines of a warp are slower
  const int64_t lines = l.tiles * l.pixels, vectors = lines * l.width / n;
  const int64_t each = detail::vectors_of_thread<Body>(vectors);
  if (l.period == 1 && l.width % n == 0 && lines >= min_lines && body.are_aligned()) {
    const detail::GroupColumns columns(l.width, n);
    const int64_t length = threads_of_block / columns.each * each;
    const int64_t blocks = columns.chunks * ((lines + length - 1) / length);
    for_blocks<Body::resident>(
        call, blocks,
        detail::ColumnsOfGroups<n, Body>{body, columns.chunks, l.width, lines, length, blocks,
                                         columns.each});
  } else if (l.are_planes() && l.pixels % n == 0 && l.pixels >= n * min_plane &&
             body.are_aligned()) {
    const int64_t of_group = l.lines() / n, length = threads_of_block * each;
    const int64_t blocks = l.period * ((of_group + length - 1) / length);
    for_blocks<Body::resident>(
        call, blocks,
        detail::PlanesOfGroups<n, Body>{body, l.period, l.pixels / n, of_group, length, blocks});
  } else {
    for_each(call, lines * l.width,
             detail::ElementsOfGroups<Body>{body, l.pixels, l.width, l.period});
  }
}

}  // namespace tandem::cuda
