// Upsample on the cpu, in every layout: a pixel is a block of channels. A plane of a gradient is
// summed by one thread, in the order of the output's pixels.
#include <algorithm>
#include <vector>

#include "layers/upsample/upsample.h"
#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/layout.h"
#include "plugins/cpu/team.h"

namespace {

using namespace tandem::cpu;
using namespace tandem::sdk;
using namespace tandem::layers;

class UpsampleCpu {
 public:
  UpsampleCpu(const Binding& binding, const Call&)
      : settings_(binding.attributes, binding.input(0).shape),
        dtype_(binding.input(0).dtype),
        block_(block_of(named_as(binding.input(0), binding.output(0)).layout,
                        binding.input(0).shape.c)),
        planes_(binding.input(0).shape.n * (binding.input(0).shape.c / block_)) {
    for (int64_t i = 0; i < settings_.h.output; ++i) rows_.push_back(settings_.h.source(i));
    for (int64_t i = 0; i < settings_.w.output; ++i) columns_.push_back(settings_.w.source(i));
  }

  static constexpr uint32_t dtypes = float32_and_bfloat16;

  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }

  void forward(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* x = pass.input<T>(0);
      T* y = pass.output<T>(0);
      const UpsampleAxis &h = settings_.h, &w = settings_.w;
      for_items(call.threads, planes_ * h.output, w.output * block_,
                [&](int64_t begin, int64_t end) {
                  for (int64_t line = begin; line < end; ++line) {
                    const T* plane = x + line / h.output * h.input * w.input * block_;
                    make_line(plane, rows_[static_cast<size_t>(line % h.output)],
                              y + line * w.output * block_);
                  }
                });
    });
  }

  void backward_data(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* dy = pass.output_gradient<T>(0);
      T* dx = pass.input_gradient<T>(0);
      const UpsampleAxis &h = settings_.h, &w = settings_.w;
      for_items(call.threads, planes_ * h.input, w.input * block_, [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line) {
          const T* plane = dy + line / h.input * h.output * w.output * block_;
          sum_line(plane, line % h.input, dx + line * w.input * block_);
        }
      });
    });
  }

 private:
  template <class T>
  void make_line(const T* plane, const UpsampleAxis::Source& row, T* to) const {
    const int64_t width = settings_.w.input * block_;
    const T *above = plane + row.first * width, *below = plane + row.second * width;
    for (const UpsampleAxis::Source& column : columns_) {
      const int64_t left = column.first * block_, right = column.second * block_;
      if (!settings_.w.is_linear) {
        to = std::copy_n(above + left, block_, to);
        continue;
      }
      const auto between = [&](const T* line, int64_t c) {
        const float a = load(line[left + c]), b = load(line[right + c]);
        return a + column.second_share * (b - a);
      };
      for (int64_t c = 0; c < block_; ++c) {
        const float a = between(above, c), b = between(below, c);
        store(a + row.second_share * (b - a), *to++);
      }
    }
  }

  // The gradient of a row of the input: of each pixel, the shares that it has.
  template <class T>
  void sum_line(const T* plane, int64_t row, T* to) const {
    const UpsampleAxis &h = settings_.h, &w = settings_.w;
    const UpsampleAxis::Range rows = h.targets(row);
    for (int64_t column = 0; column < w.input; ++column) {
      const UpsampleAxis::Range columns = w.targets(column);
      for (int64_t c = 0; c < block_; ++c) {
        float sum = 0;
        for (int64_t r = rows.begin; r < rows.end; ++r) {
          const float of_row = share(rows_[static_cast<size_t>(r)], row);
          if (of_row == 0) continue;
          float line = 0;
          for (int64_t k = columns.begin; k < columns.end; ++k) {
            const float of_column = share(columns_[static_cast<size_t>(k)], column);
            if (of_column != 0) line += of_column * load(plane[(r * w.output + k) * block_ + c]);
          }
          sum += of_row * line;
        }
        store(sum, to[column * block_ + c]);
      }
    }
  }

  static float share(const UpsampleAxis::Source& of, int64_t at) {
    return (of.first == at ? 1 - of.second_share : 0) + (of.second == at ? of.second_share : 0);
  }

  UpsampleSettings settings_;
  int32_t dtype_;
  int64_t block_, planes_;
  std::vector<UpsampleAxis::Source> rows_, columns_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "upsample", "1.0")
      .layer<Upsample>()
      .kernel<Upsample, UpsampleCpu>("cpu")
      .table();
}
