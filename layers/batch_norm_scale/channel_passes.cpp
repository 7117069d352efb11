// Compiled once for each of Highway's targets (plugins/cpu/highway.h). No lambdas: clang would not
// compile them for the target.
#include "layers/batch_norm_scale/channel_passes.h"

#include <algorithm>

#include "plugins/cpu/highway.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "layers/batch_norm_scale/channel_passes.cpp"
#include <hwy/foreach_target.h>
// After the targets.
#include <hwy/highway.h>

#include "plugins/cpu/bfloat16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::layers::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using cpu::bfloat16;

using cpu::HWY_NAMESPACE::load;

template <class D>
HWY_INLINE hn::Vec<D> relu(D d, hn::Vec<D> value) {
  return hn::IfThenElse(hn::Lt(value, hn::Zero(d)), hn::Zero(d), value);  // a NaN stays
}

// The ReLU is applied to the rounded value.
template <bool FusesRelu, class D, class T>
HWY_INLINE void store(D d, hn::Vec<D> value, T* to) {
  const auto kept = cpu::HWY_NAMESPACE::rounded<T>(d, value);
  cpu::HWY_NAMESPACE::store_rounded(d, FusesRelu ? relu(d, kept) : kept, to);
}

// The gradient of the ReLU of a value that is stored as a T: dy, or 0. Half of the smallest
// bfloat16 is rounded to 0, all above is not.
template <class T, class D>
HWY_INLINE hn::Vec<D> through_relu(D d, hn::Vec<D> value, hn::Vec<D> dy) {
  constexpr float none = sizeof(T) == sizeof(float) ? 0.0F : 0x1p-134F;
  return hn::IfThenElseZero(hn::Gt(value, hn::Set(d, none)), dy);
}

// The rows of a unit that a pass gets are `Lanes` elements wide: vectors of D, side by side.
template <int Lanes>
using Tag = hn::CappedTag<float, Lanes>;
template <int Lanes>
constexpr int vector_lanes = static_cast<int>(hn::MaxLanes(Tag<Lanes>()));
template <int Lanes>
constexpr int vectors = Lanes / vector_lanes<Lanes>;

// The values of the channels of a row: of one channel if step is 0, of neighbors if it is 1.
template <class D>
HWY_INLINE hn::Vec<D> load_values(D d, const float* values, int64_t channel, int64_t step) {
  return step == 0 ? hn::Set(d, values[channel]) : hn::LoadU(d, values + channel);
}
template <int Lanes>
struct RowValues {
  HWY_INLINE RowValues(const float* values, int64_t channel, int64_t step) {
    for (int i = 0; i < vectors<Lanes>; ++i) {
      v[i] = load_values(Tag<Lanes>(), values, channel + i * vector_lanes<Lanes> * step, step);
    }
  }
  hn::Vec<Tag<Lanes>> v[vectors<Lanes>];
};

template <class T>
struct MomentTerms {
  const T* x;
  const float* about;

  template <int Lanes>
  void add(int64_t offset, int64_t rows, int64_t stride, int64_t channel, int64_t step,
           double* first, double* second) const {
    for (int64_t begin = 0; begin < rows; begin += run) {
      const int64_t n = std::min(run, rows - begin);
      const T* at = x + offset + begin * stride;
      for (int v = 0; v < vectors<Lanes>; ++v) {
        add_run<Lanes>(at + v * vector_lanes<Lanes>, n, stride,
                       channel + v * vector_lanes<Lanes> * step, step, first, second);
      }
    }
  }

  // Near the mean of the run, so that the squared deviations from it lose little precision.
  template <int Lanes>
  void add_run(const T* at, int64_t rows, int64_t stride, int64_t channel, int64_t step,
               double* first, double* second) const {
    constexpr int lanes = vector_lanes<Lanes>;
    const Tag<Lanes> d;
    auto centre = hn::Zero(d), rest = hn::Zero(d), squares = hn::Zero(d);
    for (int64_t i = 0; i < rows; ++i) centre = hn::Add(centre, load(d, at + i * stride));
    centre = hn::Div(centre, hn::Set(d, static_cast<float>(rows)));
    for (int64_t i = 0; i < rows; ++i) {
      const auto distance = hn::Sub(load(d, at + i * stride), centre);
      rest = hn::Add(rest, distance);
      squares = hn::MulAdd(distance, distance, squares);
    }
    float centres[lanes], rests[lanes], all_squares[lanes];
    hn::StoreU(centre, d, centres);
    hn::StoreU(rest, d, rests);
    hn::StoreU(squares, d, all_squares);
    for (int k = 0; k < lanes; ++k) {
      const int64_t c = channel + k * step;
      const double shift = static_cast<double>(centres[k]) - static_cast<double>(about[c]);
      const double more = rests[k], all = static_cast<double>(rows) * shift;
      first[c] += all + more;
      second[c] += static_cast<double>(all_squares[k]) + shift * (all + 2 * more);
    }
  }
};

template <class T, bool Adds, bool FusesRelu>
struct NormaliseTerms {
  const T *x, *addend;
  T* y;
  const NormValues& values;

  template <int Lanes>
  void add(int64_t offset, int64_t rows, int64_t stride, int64_t channel, int64_t step) const {
    const Tag<Lanes> d;
    const RowValues<Lanes> high(values.high, channel, step), low(values.low, channel, step),
        factor(values.factor, channel, step), bias(values.bias, channel, step);
    for (int64_t row = 0; row < rows; ++row) {
      for (int i = 0; i < vectors<Lanes>; ++i) {
        const int64_t at = offset + row * stride + i * vector_lanes<Lanes>;
        const auto distance = hn::Sub(hn::Sub(load(d, x + at), high.v[i]), low.v[i]);
        auto value = hn::MulAdd(distance, factor.v[i], bias.v[i]);
        if constexpr (Adds) {
          value = hn::Add(cpu::HWY_NAMESPACE::rounded<T>(d, value), load(d, addend + at));
        }
        store<FusesRelu>(d, value, y + at);
      }
    }
  }
};

template <class T, bool FusesRelu>
struct ProductTerms {
  const T *x, *dy;
  const NormValues& values;

  template <int Lanes>
  void add(int64_t offset, int64_t rows, int64_t stride, int64_t channel, int64_t step,
           double* first, double* second) const {
    for (int64_t begin = 0; begin < rows; begin += run) {
      const int64_t n = std::min(run, rows - begin), at = offset + begin * stride;
      for (int v = 0; v < vectors<Lanes>; ++v) {
        add_run<Lanes>(at + v * vector_lanes<Lanes>, n, stride,
                       channel + v * vector_lanes<Lanes> * step, step, first, second);
      }
    }
  }

  template <int Lanes>
  void add_run(int64_t at, int64_t rows, int64_t stride, int64_t channel, int64_t step,
               double* first, double* second) const {
    constexpr int lanes = vector_lanes<Lanes>;
    const Tag<Lanes> d;
    const auto high = load_values(d, values.high, channel, step);
    const auto low = load_values(d, values.low, channel, step);
    const auto factor = FusesRelu ? load_values(d, values.factor, channel, step) : hn::Zero(d);
    const auto bias = FusesRelu ? load_values(d, values.bias, channel, step) : hn::Zero(d);
    auto sum = hn::Zero(d), product = hn::Zero(d);
    for (int64_t i = 0; i < rows; ++i) {
      auto gradient = load(d, dy + at + i * stride);
      const auto distance = hn::Sub(hn::Sub(load(d, x + at + i * stride), high), low);
      if constexpr (FusesRelu) {
        gradient = through_relu<T>(d, hn::MulAdd(distance, factor, bias), gradient);
      }
      sum = hn::Add(sum, gradient);
      product = hn::MulAdd(gradient, distance, product);
    }
    float sums[lanes], products[lanes];
    hn::StoreU(sum, d, sums);
    hn::StoreU(product, d, products);
    for (int k = 0; k < lanes; ++k) {
      first[channel + k * step] += static_cast<double>(sums[k]);
      second[channel + k * step] += static_cast<double>(products[k]);
    }
  }
};

template <class T, bool FusesRelu>
struct GradientTerms {
  const T *x, *dy;
  T* dx;
  const NormValues& values;

  template <int Lanes>
  void add(int64_t offset, int64_t rows, int64_t stride, int64_t channel, int64_t step) const {
    const Tag<Lanes> d;
    const RowValues<Lanes> high(values.high, channel, step), low(values.low, channel, step),
        mean(values.mean, channel, step), slope(values.slope, channel, step),
        factor(values.factor, channel, step),
        bias(FusesRelu ? values.bias : values.factor, channel, step);
    for (int64_t row = 0; row < rows; ++row) {
      for (int i = 0; i < vectors<Lanes>; ++i) {
        const int64_t at = offset + row * stride + i * vector_lanes<Lanes>;
        const auto distance = hn::Sub(hn::Sub(load(d, x + at), high.v[i]), low.v[i]);
        auto gradient = load(d, dy + at);
        if constexpr (FusesRelu) {
          gradient = through_relu<T>(d, hn::MulAdd(distance, factor.v[i], bias.v[i]), gradient);
        }
        const auto rest = hn::NegMulAdd(distance, slope.v[i], hn::Sub(gradient, mean.v[i]));
        store<false>(d, hn::Mul(rest, factor.v[i]), dx + at);
      }
    }
  }
};

template <class T>
void moments(const Channels& channels, int64_t begin, int64_t end, const T* x, const float* about,
             double* first, double* second) {
  channels.visit(begin, end, MomentTerms<T>{x, about}, first, second);
}

template <class T, bool Adds>
void normalise_or_add(const Channels& channels, int64_t begin, int64_t end, const T* x,
                      const T* addend, T* y, const NormValues& values, bool fuses_relu) {
  if (fuses_relu) {
    channels.visit(begin, end, NormaliseTerms<T, Adds, true>{x, addend, y, values});
  } else {
    channels.visit(begin, end, NormaliseTerms<T, Adds, false>{x, addend, y, values});
  }
}

template <class T>
void normalize(const Channels& channels, int64_t begin, int64_t end, const T* x, const T* addend,
               T* y, const NormValues& values, bool fuses_relu) {
  if (addend == nullptr) {
    normalise_or_add<T, false>(channels, begin, end, x, addend, y, values, fuses_relu);
  } else {
    normalise_or_add<T, true>(channels, begin, end, x, addend, y, values, fuses_relu);
  }
}

template <class T>
void products(const Channels& channels, int64_t begin, int64_t end, const T* x, const T* dy,
              const NormValues& values, bool fuses_relu, double* first, double* second) {
  if (fuses_relu) {
    channels.visit(begin, end, ProductTerms<T, true>{x, dy, values}, first, second);
  } else {
    channels.visit(begin, end, ProductTerms<T, false>{x, dy, values}, first, second);
  }
}

template <class T>
void gradient(const Channels& channels, int64_t begin, int64_t end, const T* x, const T* dy, T* dx,
              const NormValues& values, bool fuses_relu) {
  if (fuses_relu) {
    channels.visit(begin, end, GradientTerms<T, true>{x, dy, dx, values});
  } else {
    channels.visit(begin, end, GradientTerms<T, false>{x, dy, dx, values});
  }
}

template <class T>
constexpr ChannelPasses<T> passes{moments<T>, normalize<T>, products<T>, gradient<T>};

const ChannelKernels* table() {
  static const ChannelKernels kernels{hwy::TargetName(HWY_TARGET), passes<float>, passes<bfloat16>};
  return &kernels;
}

}  // namespace
}  // namespace tandem::layers::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::layers {

HWY_EXPORT(table);

const ChannelKernels& channel_kernels() {
  cpu::cap_highway();
  return *HWY_DYNAMIC_DISPATCH(table)();
}

}  // namespace tandem::layers
#endif
