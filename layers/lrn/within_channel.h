// LRN within each channel on the cpu: y = x s^-beta with s = 1 + alpha / size^2 * S, where S is the
// sum of the squares over a size x size window of pixels, with zeros outside the image (Caffe
// composes it of a square, an average pooling and a power). It works in every layout: a window is
// summed over its rows, then over the columns, in contiguous runs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "plugins/cpu/layout.h"
#include "plugins/cpu/team.h"

namespace tandem::layers {

class WithinChannelLrn {
 public:
  WithinChannelLrn(const sdk::Attributes& attributes, const tandem_tensor& tensor)
      : elements_(sdk::count(tensor.shape)),
        height_(tensor.shape.h),
        block_(cpu::block_of(tensor.layout, tensor.shape.c)),
        line_(tensor.shape.w * block_),
        half_((attributes.integer("local_size") - 1) / 2),
        beta_(static_cast<float>(attributes.number("beta"))) {
    const auto size = static_cast<double>(attributes.integer("local_size"));
    scale_ = static_cast<float>(attributes.number("alpha") / (size * size));
  }

  // Elements of one tensor of the input's shape.
  [[nodiscard]] int64_t elements() const { return elements_; }

  // Writes s to `scales`, which has the size of the input.
  void forward(const sdk::Call& call, const float* x, float* y, float* scales) const {
    cpu::for_items(call.threads, elements_ / line_, line_, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        float* rows = y + line * line_;  // y holds them until the result is written
        float* s = scales + line * line_;
        add_rows(line, rows, [x](int64_t i) { return x[i] * x[i]; });
        add_columns(rows, s);
        for (int64_t i = 0; i < line_; ++i) s[i] = 1 + scale_ * s[i];
        multiply_by_power(x + line * line_, s, rows);
      }
    });
  }

  // dx = g s^-beta - 2 alpha beta / size^2 x T, where T is the sum over the window of g y / s.
  // `scratch` has twice the input's elements.
  void backward(const sdk::Call& call, const float* x, const float* g, const float* scales,
                float* scratch, float* dx) const {
    float* ratios = scratch;
    cpu::for_items(call.threads, elements_ / line_, line_, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t at = line * line_;
        multiply_by_power(x + at, scales + at, ratios + at);
        for (int64_t i = at; i < at + line_; ++i) ratios[i] *= g[i] / scales[i];
      }
    });
    const float factor = 2 * scale_ * beta_;
    cpu::for_items(call.threads, elements_ / line_, line_, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t at = line * line_;
        float* sums = scratch + elements_ + at;
        float* d = dx + at;
        add_rows(line, d, [ratios](int64_t i) { return ratios[i]; });
        add_columns(d, sums);
        multiply_by_power(g + at, scales + at, d);
        for (int64_t i = 0; i < line_; ++i) d[i] -= factor * x[at + i] * sums[i];
      }
    });
  }

 private:
  // For a line of a channel (or block of channels): sums[i] = the sum of value over the window's
  // rows.
  template <class Value>
  void add_rows(int64_t line, float* sums, const Value& value) const {
    const int64_t row = line % height_, top = line - row;
    const int64_t first = top + std::max<int64_t>(0, row - half_);
    const int64_t last = top + std::min(height_ - 1, row + half_);
    std::fill_n(sums, line_, 0.0F);
    for (int64_t other = first; other <= last; ++other) {
      const int64_t at = other * line_;
      for (int64_t i = 0; i < line_; ++i) sums[i] += value(at + i);
    }
  }
  // sums[i] = the sum of rows over the window's columns.
  void add_columns(const float* rows, float* sums) const {
    std::fill_n(sums, line_, 0.0F);
    for (int64_t column = -half_; column <= half_; ++column) {
      const int64_t shift = column * block_;
      const int64_t end = std::min(line_, line_ - shift);
      for (int64_t i = std::max<int64_t>(0, -shift); i < end; ++i) sums[i] += rows[i + shift];
    }
  }
  // y = x s^-beta. The usual exponent is computed by square roots, which are vectorized.
  void multiply_by_power(const float* x, const float* s, float* y) const {
    if (beta_ == 0.75F) {
      for (int64_t i = 0; i < line_; ++i) {
        const float root = std::sqrt(s[i]);
        y[i] = x[i] / (root * std::sqrt(root));
      }
    } else {
      for (int64_t i = 0; i < line_; ++i) y[i] = x[i] * std::pow(s[i], -beta_);
    }
  }

  int64_t elements_, height_, block_, line_, half_;
  float beta_, scale_ = 0;
};

}  // namespace tandem::layers
