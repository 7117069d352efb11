// Vectors of elements, groups of them and sums over tensors with threads of the host: the same bits
// with and without vectors, for all counts and addresses.
#include "plugins/cuda/vectors.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "plugins/cuda/tensor_sums.h"

namespace tandem::cuda {
namespace {

int stream_object;
const tandem_call call{sizeof(tandem_call), 0, 0, &stream_object, nullptr, nullptr};

// Elements whose first is `offset` elements behind an aligned address.
template <class T>
class Tensor {
 public:
  Tensor(int64_t count, int64_t offset)
      : memory_(static_cast<size_t>(count + offset) * sizeof(T) / 16 + 1), offset_(offset) {}
  T* get() { return reinterpret_cast<T*>(memory_.data()) + offset_; }

 private:
  struct alignas(16) Unit {
    std::array<uint8_t, 16> bytes;
  };
  std::vector<Unit> memory_;
  int64_t offset_;
};

template <class T>
struct Tripled {
  static constexpr int at_once = elements_at_once<T>;
  bool can_vectorize() const { return are_aligned(x, y); }
  template <int n>
  auto read(int64_t i) const {
    return cuda::read<n>(x + i);
  }
  template <int n>
  void write(int64_t i, const Elements<T, n>& v) const {
    cuda::write(each_lane<n>([&](int lane) { return 3 * v[lane] + 0.1F; }), y + i);
  }
  const T* x;
  T* y;
};

template <class T>
void triple(int64_t count, int64_t offset) {
  Tensor<T> x(count, offset), y(count + 1, offset);
  for (int64_t i = 0; i < count; ++i) store(0.37F * static_cast<float>(i % 1000), x.get()[i]);
  store(7.0F, y.get()[count]);
  for_each(sdk::Call(call), count, Tripled<T>{x.get(), y.get()});
  for (int64_t i = 0; i < count; ++i) {
    T expected;
    store(3 * load(x.get()[i]) + 0.1F, expected);
    ASSERT_EQ(load(y.get()[i]), load(expected)) << i << " of " << count << " from " << offset;
  }
  EXPECT_EQ(load(y.get()[count]), 7.0F) << count;
}

TEST(Vectors, HaveTheBitsOfElements) {
  for (const int64_t offset : {0, 1}) {
    for (const int64_t count : {7, 8, 5003}) {
      triple<float>(count, offset);
      triple<bfloat16>(count, offset);
      triple<float16>(count, offset);
    }
  }
}

// Two sums of different values, one after another in the same block.
struct ColumnsTwice {
  template <class Team>
  void operator()(const Team& team, int64_t) const {
    for (int round = 0; round < 2; ++round) {
      const double own = static_cast<double>(team.rank() + round);
      const auto values = team.template own_values<2, double>();
      values.clear();
      values.add([&](int lane) { return (1 + lane) * own; });
      team.template sum_columns<2, double>(
          columns, [&](int64_t at, double sum) { results[round * 2 * columns + at] = sum; });
    }
  }
  int columns;
  double* results;
};

TEST(Teams, SumColumnsSeveralTimesInOneBlock) {
  for (const int columns : {1, 6, 200}) {
    std::vector<double> results(static_cast<size_t>(4 * columns));
    for_blocks(sdk::Call(call), 1, ColumnsTwice{columns, results.data()});
    const int rows = threads_of_block / columns;
    for (int round = 0; round < 2; ++round) {
      for (int at = 0; at < 2 * columns; ++at) {
        double expected = 0;
        for (int row = 0; row < rows; ++row) expected += row * columns + at / 2 + round;
        EXPECT_EQ(results[static_cast<size_t>(round * 2 * columns + at)], (1 + at % 2) * expected);
      }
    }
  }
}

template <class T>
struct ElementsAndSquares {
  using Element = T;
  static constexpr int ahead = 2;
  bool are_aligned() const { return cuda::are_aligned(x); }
  template <int m>
  NoConstants groups(int64_t) const {
    return {};
  }
  template <int n, bool aligned>
  auto read(int64_t i) const {
    return cuda::read<n, aligned>(x + i);
  }
  template <int n>
  FloatPair value(NoConstants, int, const Elements<T, n>& v, int lane) const {
    return {v[lane], v[lane] * v[lane]};
  }
  const T* x;
};
struct StorePair {
  void operator()(int64_t group, const Pair& sum) const { results[group] = sum; }
  Pair* results;
};

// The sums; those of whole numbers are exact.
template <class T>
std::vector<Pair> sums_of(const TermLayout& layout, int64_t offset, float scale) {
  const int64_t lines = layout.tiles * layout.pixels;
  Tensor<T> x(lines * layout.stride, offset);
  for (int64_t line = 0; line < lines; ++line) {
    for (int64_t c = 0; c < layout.width; ++c) {
      store(scale * static_cast<float>((line * 7 + c) % 13), x.get()[line * layout.stride + c]);
    }
  }
  const TensorSums<Pair> sums(layout);
  std::vector<Pair> scratch(static_cast<size_t>(sums.scratch_bytes()) / sizeof(Pair));
  std::vector<Pair> results(static_cast<size_t>(layout.groups()));
  sums.run(sdk::Call(call), ElementsAndSquares<T>{x.get()}, scratch.data(),
           StorePair{results.data()});
  return results;
}

template <class T>
void check_sums(const TermLayout& layout) {
  std::vector<Pair> expected(static_cast<size_t>(layout.groups()));
  for (int64_t line = 0; line < layout.tiles * layout.pixels; ++line) {
    const int64_t position = line / layout.pixels % layout.period;
    for (int64_t c = 0; c < layout.width; ++c) {
      const auto term = static_cast<double>((line * 7 + c) % 13);
      expected[static_cast<size_t>(position * layout.width + c)] += {term, term * term};
    }
  }
  const std::vector<Pair> found = sums_of<T>(layout, 0, 1);
  for (size_t group = 0; group < expected.size(); ++group) {
    ASSERT_EQ(found[group].first, expected[group].first) << group;
    ASSERT_EQ(found[group].second, expected[group].second) << group;
  }
}

// Inexact sums show their order.
template <class T>
void check_order(const TermLayout& layout) {
  const std::vector<Pair> aligned = sums_of<T>(layout, 0, 0.1F);
  const std::vector<Pair> unaligned = sums_of<T>(layout, 1, 0.1F);
  for (size_t group = 0; group < aligned.size(); ++group) {
    ASSERT_EQ(aligned[group].first, unaligned[group].first) << group;
    ASSERT_EQ(aligned[group].second, unaligned[group].second) << group;
  }
}

TEST(TensorSums, AreThoseOfTheirTerms) {
  const TermLayout layouts[] = {
      {3, 500, 5, 1, 5},     // channels side by side, no vectors
      {2, 300, 64, 1, 64},   // and with vectors
      {1, 40, 264, 1, 264},  // several chunks of channels
      {33, 1, 16, 1, 24},    // columns of a matrix
      {12, 49, 1, 3, 1},     // planes without vectors
      {12, 64, 1, 3, 1},     // and with vectors
      {2, 40000, 1, 1, 1},   // several parts
      {6, 4, 8, 3, 8},       // several positions
  };
  for (const TermLayout& layout : layouts) {
    check_sums<float>(layout);
    check_sums<bfloat16>(layout);
  }
}

TEST(TensorSums, HaveTheSameBitsForAllAddresses) {
  check_order<bfloat16>({2, 300, 64, 1, 64});
  check_order<float>({12, 64, 1, 3, 1});
}

// In place: y = x * factor of the group.
template <class T>
struct TimesFactor {
  using Element = T;
  static constexpr int ahead = 3;
  static constexpr int resident = 2;
  bool are_aligned() const { return cuda::are_aligned(y); }
  template <int m>
  auto groups(int64_t group) const {
    return constants<m>(factors + group);
  }
  template <int n>
  auto read(int64_t i) const {
    return cuda::read<n>(y + i);
  }
  template <int m, int n>
  float value(const Values<m>& factor, int group, const Elements<T, n>& v, int lane) const {
    return v[lane] * factor[group];
  }
  template <int n>
  void write(int64_t i, const Values<n>& values) const {
    cuda::write(values, y + i);
  }
  const float* factors;
  T* y;
};

// Calls run(body) and checks what it does to a tensor.
template <class T, class Run>
void check_factors(const TermLayout& layout, int64_t offset, const Run& run) {
  const int64_t count = layout.tiles * layout.pixels * layout.width;
  Tensor<T> y(count, offset);
  Tensor<float> factors(layout.groups(), offset);
  for (int64_t i = 0; i < count; ++i) store(static_cast<float>(i % 11), y.get()[i]);
  for (int64_t g = 0; g < layout.groups(); ++g) factors.get()[g] = static_cast<float>(g % 7 + 1);
  run(TimesFactor<T>{factors.get(), y.get()});
  for (int64_t i = 0; i < count; ++i) {
    const int64_t position = i / layout.width / layout.pixels % layout.period;
    const int64_t group = position * layout.width + i % layout.width;
    ASSERT_EQ(load(y.get()[i]), static_cast<float>(i % 11 * (group % 7 + 1)))
        << i << " of " << layout.width << " x " << layout.pixels << " from " << offset;
  }
}

TEST(TensorGroups, ReachEveryElementOnceWithItsConstants) {
  const TermLayout layouts[] = {
      {3, 50, 5, 1, 5},      // channels side by side, no vectors
      {2, 300, 64, 1, 64},   // and with vectors
      {1, 70, 264, 1, 264},  // several chunks of channels
      {1, 3, 64, 1, 64},     // few lines
      {12, 49, 1, 3, 1},     // planes that end within vectors
      {6, 512, 1, 3, 1},     // planes of whole vectors
      {1, 40000, 1, 1, 1},   // one group
      {6, 4, 8, 3, 8},       // several positions
  };
  for (const TermLayout& layout : layouts) {
    const auto run = [&](const auto& body) { for_groups(sdk::Call(call), layout, body); };
    for (const int64_t offset : {0, 1}) {
      check_factors<float>(layout, offset, run);
      check_factors<bfloat16>(layout, offset, run);
    }
  }
}

// What only large tensors have.
TEST(TensorGroups, AThreadReadsSeveralTimes) {
  const TermLayout columns{2, 1000, 40, 1, 40}, planes{6, 8000, 1, 3, 1};
  check_factors<bfloat16>(columns, 0, [&](const TimesFactor<bfloat16>& body) {
    constexpr int64_t length = 51 * 8;
    for_blocks(sdk::Call(call), 5,
               detail::ColumnsOfGroups<8, TimesFactor<bfloat16>>{body, 1, 40, 2000, length, 5, 5});
  });
  check_factors<bfloat16>(planes, 0, [&](const TimesFactor<bfloat16>& body) {
    constexpr int64_t length = 256 * 5;
    for_blocks(sdk::Call(call), 3 * 2,
               detail::PlanesOfGroups<8, TimesFactor<bfloat16>>{body, 3, 1000, 2000, length, 6});
  });
}

}  // namespace
}  // namespace tandem::cuda
