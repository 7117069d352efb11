// The kernel of images whose pixels are made of pixels of the input (mapped_image.h), on the cpu,
// in every layout: a pixel is a block of channels. A gradient is summed by one thread, in the order
// of the output's pixels.
#pragma once

#include <algorithm>
#include <vector>

#include "layers/common/mapped_image.h"
#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/layout.h"
#include "plugins/cpu/team.h"

namespace tandem::layers {

template <class Settings>
class MappedImageCpu {
 public:
  MappedImageCpu(const sdk::Binding& binding, const sdk::Call&)
      : settings_(binding.attributes, binding.input(0).shape),
        dtype_(binding.input(0).dtype),
        block_(cpu::block_of(cpu::named_as(binding.input(0), binding.output(0)).layout,
                             binding.input(0).shape.c)),
        planes_(binding.input(0).shape.n * (binding.input(0).shape.c / block_)) {
    for (int64_t i = 0; i < settings_.h.output; ++i) rows_.push_back(settings_.h.source(i));
    for (int64_t i = 0; i < settings_.w.output; ++i) {
      const PixelSource source = settings_.w.source(i);
      columns_.push_back(source);
      mixes_ = mixes_ || source.second_share != 0;
      const bool goes_on = !runs_.empty() && source.first >= 0 && runs_.back().from >= 0 &&
                           source.first == runs_.back().from + runs_.back().count;
      if (!goes_on) runs_.push_back({source.first, 0});
      ++runs_.back().count;
    }
    for (const PixelSource& row : rows_) mixes_ = mixes_ || row.second_share != 0;
    row_targets_ = targets_of(settings_.h);
    column_targets_ = targets_of(settings_.w);
  }

  static constexpr uint32_t dtypes = cpu::float32_and_bfloat16;

  static sdk::LayoutOptions layouts(const sdk::Binding& binding) {
    return sdk::any_layout(binding.input(0).shape.c);
  }

  void forward(const sdk::Call& call, const sdk::Pass& pass) const {
    cpu::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* x = pass.input<T>(0);
      T* y = pass.output<T>(0);
      const auto &h = settings_.h, &w = settings_.w;
      cpu::for_items(call.threads, planes_ * h.output, w.output * block_,
                     [&](int64_t begin, int64_t end) {
                       for (int64_t line = begin; line < end; ++line) {
                         const T* plane = x + line / h.output * h.input * w.input * block_;
                         make_line(plane, rows_[static_cast<size_t>(line % h.output)],
                                   y + line * w.output * block_);
                       }
                     });
    });
  }

  void backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
    cpu::with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* dy = pass.output_gradient<T>(0);
      T* dx = pass.input_gradient<T>(0);
      const auto &h = settings_.h, &w = settings_.w;
      cpu::for_items(call.threads, planes_ * h.input, w.input * block_,
                     [&](int64_t begin, int64_t end) {
                       for (int64_t line = begin; line < end; ++line) {
                         const T* plane = dy + line / h.input * h.output * w.output * block_;
                         sum_line(plane, line % h.input, dx + line * w.input * block_);
                       }
                     });
    });
  }

 private:
  // All ranges of each pixel of the input, one after the other.
  template <class Axis>
  static std::vector<PixelRange> targets_of(const Axis& axis) {
    std::vector<PixelRange> result;
    for (int64_t at = 0; at < axis.input; ++at) {
      for (int i = 0; i < Axis::ranges; ++i) result.push_back(axis.targets(at, i));
    }
    return result;
  }

  // Neighboring pixels of the output that are neighbors in the input. from: -1 for none
  struct Run {
    int64_t from, count;
  };

  template <class T>
  void make_line(const T* plane, const PixelSource& row, T* to) const {
    const int64_t width = settings_.w.input * block_;
    const T *above = plane + row.first * width, *below = plane + row.second * width;
    if (mixes_) {
      for (const PixelSource& column : columns_) {
        const T *left = above + column.first * block_, *right = above + column.second * block_;
        const T *lower_left = below + column.first * block_,
                *lower_right = below + column.second * block_;
        for (int64_t c = 0; c < block_; ++c) {
          const float a = between(left[c], right[c], column.second_share);
          const float b = between(lower_left[c], lower_right[c], column.second_share);
          cpu::store(a + row.second_share * (b - a), *to++);
        }
      }
      return;
    }
    T value;
    cpu::store(settings_.value, value);
    for (const Run& run : runs_) {
      const int64_t count = run.count * block_;
      to = row.first < 0 || run.from < 0 ? std::fill_n(to, count, value)
                                         : std::copy_n(above + run.from * block_, count, to);
    }
  }
  template <class T>
  static float between(T first, T second, float second_share) {
    const float a = cpu::load(first);
    return a + second_share * (cpu::load(second) - a);
  }

  // The gradient of a row of the input: of each pixel, the shares that it has.
  template <class T>
  void sum_line(const T* plane, int64_t row, T* to) const {
    const auto &h = settings_.h, &w = settings_.w;
    const int64_t top = h.only_copy(), left = w.only_copy();
    if (top >= 0 && left >= 0) {
      std::copy_n(plane + ((top + row) * w.output + left) * block_, w.input * block_, to);
      return;
    }
    for (int64_t column = 0; column < w.input; ++column) {
      for (int64_t c = 0; c < block_; ++c) {
        float sum = 0;
        for (int i = 0; i < h.ranges; ++i) {
          const PixelRange rows = row_targets_[static_cast<size_t>(row * h.ranges + i)];
          for (int64_t r = rows.begin; r < rows.end; ++r) {
            const float share = rows_[static_cast<size_t>(r)].share(row);
            if (share != 0) sum += share * of_line(plane + r * w.output * block_ + c, column);
          }
        }
        cpu::store(sum, to[column * block_ + c]);
      }
    }
  }
  template <class T>
  [[nodiscard]] float of_line(const T* line, int64_t column) const {
    float sum = 0;
    for (int i = 0; i < settings_.w.ranges; ++i) {
      const PixelRange columns =
          column_targets_[static_cast<size_t>(column * settings_.w.ranges + i)];
      for (int64_t k = columns.begin; k < columns.end; ++k) {
        const float share = columns_[static_cast<size_t>(k)].share(column);
        if (share != 0) sum += share * cpu::load(line[k * block_]);
      }
    }
    return sum;
  }

  Settings settings_;
  int32_t dtype_;
  int64_t block_, planes_;
  std::vector<PixelSource> rows_, columns_;
  std::vector<Run> runs_;
  std::vector<PixelRange> row_targets_, column_targets_;
  bool mixes_ = false;
};

}  // namespace tandem::layers
