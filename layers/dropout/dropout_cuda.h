// Dropout on NVIDIA GPUs, with the formula of the cpu: a thread takes one random block, or, where
// rows consist of whole blocks in the order of memory, as many as a vector has. Forward saves the
// mask as bytes, in the order of memory.
#pragma once

#include "layers/dropout/dropout.h"
#include "layers/dropout/dropout_formula.h"
#include "plugins/cuda/elements.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"

namespace tandem::layers {

template <class T>
struct DropoutElement {
  TANDEM_HOST_DEVICE void operator()(int64_t i, bool kept) const {
    cuda::store(kept ? scale * cuda::load(x[i]) : 0.0F, y[i]);
    if (mask != nullptr) mask[i] = kept ? 1 : 0;
  }
  float scale;
  const T* x;
  T* y;
  uint8_t* mask;  // nullptr without a backward pass
};

template <class T>
struct DropoutForward {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t row = cuda::quotient(i, blocks);
    formula.drop(*step, row, static_cast<uint32_t>(first + i - row * blocks), element);
  }
  DropoutFormula formula;
  int64_t first;
  cuda::Divisor blocks;
  const tandem_step* step;
  DropoutElement<T> element;
};

// A thread takes n elements of a row, which has whole random blocks.
template <class T, int n>
struct DropoutOfBlocks {
  TANDEM_HOST_DEVICE void operator()(int64_t vector) const {
    const int64_t i = vector * n, row = cuda::quotient(i, row_size);
    const auto block = static_cast<uint32_t>(first + (i - row * row_size) / 4);
    const auto own = cuda::read<n>(x + i);
    cuda::Values<n> values;
    cuda::Elements<uint8_t, n> kept;
    TANDEM_UNROLL
    for (int b = 0; b < n / 4; ++b) {
      const tandem_random4 random = formula.random_of(*step, row, block + static_cast<uint32_t>(b));
      TANDEM_UNROLL
      for (int lane = 0; lane < 4; ++lane) {
        const bool is_kept = formula.is_kept(random, lane);
        values.value[4 * b + lane] = is_kept ? scale * own[4 * b + lane] : 0.0F;
        kept.element[4 * b + lane] = is_kept ? 1 : 0;
      }
    }
    cuda::write(values, y + i);
    if (mask != nullptr) cuda::write(kept, mask + i);
  }
  DropoutFormula formula;
  int64_t first;
  cuda::Divisor row_size;
  const tandem_step* step;
  float scale;
  const T* x;
  T* y;
  uint8_t* mask;  // nullptr without a backward pass
};

template <class T>
struct DropoutBackward {
  static constexpr int at_once = cuda::elements_at_once<T>;
  [[nodiscard]] bool can_vectorize() const {
    return cuda::are_aligned(dy, dx) && cuda::are_aligned(mask);
  }
  template <int n>
  struct Read {
    cuda::Elements<uint8_t, n> mask;
    cuda::Elements<T, n> dy;
  };
  template <int n>
  [[nodiscard]] TANDEM_HOST_DEVICE Read<n> read(int64_t i) const {
    return {cuda::read<n>(mask + i), cuda::read<n>(dy + i)};
  }
  template <int n>
  TANDEM_HOST_DEVICE void write(int64_t i, const Read<n>& v) const {
    const auto value = [&](int lane) { return v.mask[lane] != 0 ? factor * v.dy[lane] : 0.0F; };
    cuda::write(cuda::each_lane<n>(value), dx + i);
  }
  float factor;
  const uint8_t* mask;
  const T* dy;
  T* dx;
};

class DropoutCuda : public sdk::Needs {
 public:
  DropoutCuda(const sdk::Binding& binding, const sdk::Call&)
      : formula_(binding),
        rows_(binding.input(0).shape.n),
        elements_(sdk::count(binding.input(0).shape)),
        dtype_(binding.input(0).dtype),
        training_(binding.training()) {
    if (training_ && binding.has(TANDEM_WANTS_BACKWARD_DATA)) saved_bytes = elements_;
  }

  static constexpr uint32_t dtypes = cuda::all_dtypes;

  static sdk::LayoutOptions layouts(const sdk::Binding&) { return cuda::plain_layouts(); }

  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* x = pass.input<T>(0).get();
      T* y = pass.output<T>(0).get();
      if (!training_) return cuda::copy(call, x, y, elements_);
      uint8_t* mask = saved_bytes > 0 ? pass.saved<uint8_t>().get() : nullptr;
      constexpr int n = cuda::elements_at_once<T>;
      const int64_t row_size = formula_.row_size();
      if (formula_.has_whole_blocks() && row_size % n == 0 && cuda::are_aligned(x, y) &&
          cuda::are_aligned(mask)) {
        return cuda::for_each(call, elements_ / n,
                              DropoutOfBlocks<T, n>{formula_, formula_.first_block(), row_size,
                                                    pass.raw.step, formula_.factor(), x, y, mask});
      }
      const int64_t blocks = formula_.blocks();
      cuda::for_each(call, rows_ * blocks,
                     DropoutForward<T>{formula_,
                                       formula_.first_block(),
                                       blocks,
                                       pass.raw.step,
                                       {formula_.factor(), x, y, mask}});
    });
  }

  void backward_data(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* dy = pass.output_gradient<T>(0).get();
      T* dx = pass.input_gradient<T>(0).get();
      if (!training_) return cuda::copy(call, dy, dx, elements_);
      cuda::for_each(
          call, elements_,
          DropoutBackward<T>{formula_.factor(), pass.saved<const uint8_t>().get(), dy, dx});
    });
  }

 private:
  DropoutFormula formula_;
  int64_t rows_, elements_;
  int32_t dtype_;
  bool training_;
};

}  // namespace tandem::layers
