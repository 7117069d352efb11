// Pad on the cpu, in every layout: a pixel is a block of channels.
#include <algorithm>

#include "layers/pad/pad.h"
#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/layout.h"
#include "plugins/cpu/team.h"

namespace {

using namespace tandem::cpu;
using namespace tandem::sdk;
using namespace tandem::layers;

class PadCpu {
 public:
  PadCpu(const Binding& binding, const Call&)
      : settings_(binding.attributes, binding.input(0).shape),
        dtype_(binding.input(0).dtype),
        block_(block_of(named_as(binding.input(0), binding.output(0)).layout,
                        binding.input(0).shape.c)),
        planes_(binding.input(0).shape.n * (binding.input(0).shape.c / block_)) {}

  static constexpr uint32_t dtypes = float32_and_bfloat16;

  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }

  void forward(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* x = pass.input<T>(0);
      T* y = pass.output<T>(0);
      const PadAxis &h = settings_.h, &w = settings_.w;
      T value;
      store(settings_.value, value);
      for_items(call.threads, planes_ * h.padded(), w.padded() * block_,
                [&](int64_t begin, int64_t end) {
                  for (int64_t line = begin; line < end; ++line) {
                    const int64_t row = h.source(line % h.padded());
                    const T* from = x + (line / h.padded() * h.extent + row) * w.extent * block_;
                    pad_line(row < 0 ? nullptr : from, y + line * w.padded() * block_, value);
                  }
                });
    });
  }

  void backward_data(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      const T* dy = pass.output_gradient<T>(0);
      T* dx = pass.input_gradient<T>(0);
      const PadAxis &h = settings_.h, &w = settings_.w;
      for_items(call.threads, planes_ * h.extent, w.extent * block_,
                [&](int64_t begin, int64_t end) {
                  for (int64_t line = begin; line < end; ++line) {
                    const int64_t plane = line / h.extent;
                    sum_line(dy + plane * h.padded() * w.padded() * block_, line % h.extent,
                             dx + line * w.extent * block_);
                  }
                });
    });
  }

 private:
  // `from`: null for a line of the constant.
  template <class T>
  void pad_line(const T* from, T* to, T value) const {
    const PadAxis& w = settings_.w;
    if (from == nullptr) {
      std::fill_n(to, w.padded() * block_, value);
      return;
    }
    const auto pad = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t source = w.source(i);
        if (source < 0) {
          std::fill_n(to + i * block_, block_, value);
        } else {
          std::copy_n(from + source * block_, block_, to + i * block_);
        }
      }
    };
    pad(0, w.before);
    std::copy_n(from, w.extent * block_, to + w.before * block_);
    pad(w.before + w.extent, w.padded());
  }

  // The sum of all copies of row `row`.
  template <class T>
  void sum_line(const T* plane, int64_t row, T* to) const {
    const PadAxis &h = settings_.h, &w = settings_.w;
    std::copy_n(plane + ((row + h.before) * w.padded() + w.before) * block_, w.extent * block_, to);
    if (h.mode == PadAxis::constant) return;
    for (int64_t column = 0; column < w.extent; ++column) {
      for (int64_t c = 0; c < block_; ++c) {
        float sum = 0;
        for (int i = 0; i < 3; ++i) {
          const PadAxis::Range rows = h.copies(row, i);
          for (int64_t r = rows.begin; r < rows.end; ++r) {
            for (int k = 0; k < 3; ++k) {
              const PadAxis::Range columns = w.copies(column, k);
              for (int64_t s = columns.begin; s < columns.end; ++s) {
                sum += load(plane[(r * w.padded() + s) * block_ + c]);
              }
            }
          }
        }
        store(sum, to[column * block_ + c]);
      }
    }
  }

  PadSettings settings_;
  int32_t dtype_;
  int64_t block_, planes_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "pad", "1.0").layer<Pad>().kernel<Pad, PadCpu>("cpu").table();
}
