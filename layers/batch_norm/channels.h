// Sums over the channels of a float32 or bfloat16 tensor in any layout, by a team: in float over
// short runs, in double over all, in an order that does not depend on the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/layout.h"
#include "plugins/cpu/team.h"

namespace tandem::layers {

// A tensor as samples x groups x pixels x block floats, where channel = group * block + index in
// the block. Images of 1x1 are one sample of many pixels.
struct Channels {
  explicit Channels(const tandem_tensor& tensor) {
    const tandem_shape& s = tensor.shape;
    const bool flat = s.h == 1 && s.w == 1;
    block = flat ? s.c : cpu::block_of(tensor.layout, s.c);
    samples = flat ? 1 : s.n;
    pixels = flat ? s.n : s.h * s.w;
    groups = s.c / block;
    count = s.c;
    chunk = std::min(pixels, std::max<int64_t>(32, 16384 / block));
    chunks = (pixels + chunk - 1) / chunk;
  }
  [[nodiscard]] int64_t units() const { return samples * groups * chunks; }
  [[nodiscard]] int64_t per_channel() const { return samples * pixels; }
  [[nodiscard]] int64_t first(int64_t channel) const {
    return channel / block * pixels * block + channel % block;
  }

  // Calls terms.add<Lanes>(offset, rows, stride, channel, step, more...) for units [begin, end):
  // rows of Lanes floats, `stride` apart, whose channels begin at `channel`, `step` apart.
  template <class Terms, class... More>
  void visit(int64_t begin, int64_t end, const Terms& terms, More... more) const {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t plane = unit / chunks, from = unit % chunks * chunk;
      const int64_t rows = std::min(chunk, pixels - from), channel = plane % groups * block;
      visit_unit((plane * pixels + from) * block, rows, channel, terms, more...);
    }
  }
  // All units, by a team, for terms that write only the results of the floats that they get.
  template <class Terms>
  void visit_all(int32_t threads, const Terms& terms) const {
    for_units(threads, [&](int64_t begin, int64_t end) { visit(begin, end, terms); });
  }
  // body(begin, end) for units [begin, end), by a team.
  template <class Body>
  void for_units(int32_t threads, const Body& body) const {
    const int64_t unit = chunk * block;
    cpu::for_ranges(threads, units() * unit, [&](int64_t begin, int64_t end) {
      body((begin + unit - 1) / unit, (end + unit - 1) / unit);
    });
  }

  int64_t samples, groups, pixels, block, count;
  int64_t chunk, chunks;  // pixels of a unit of work, and units in a plane

 private:
  template <class Terms, class... More>
  void visit_unit(int64_t offset, int64_t rows, int64_t channel, const Terms& terms,
                  More... more) const {
    if (block == 1) {
      const int64_t whole = rows / 16;
      terms.template add<16>(offset, whole, 16, channel, 0, more...);
      terms.template add<1>(offset + whole * 16, rows - whole * 16, 1, channel, 0, more...);
      return;
    }
    int64_t k = 0;
    for (; k + 16 <= block; k += 16) {
      terms.template add<16>(offset + k, rows, block, channel + k, 1, more...);
    }
    for (; k + 8 <= block; k += 8) {
      terms.template add<8>(offset + k, rows, block, channel + k, 1, more...);
    }
    for (; k + 4 <= block; k += 4) {
      terms.template add<4>(offset + k, rows, block, channel + k, 1, more...);
    }
    for (; k < block; ++k) {
      terms.template add<1>(offset + k, rows, block, channel + k, 1, more...);
    }
  }
};

constexpr int64_t run = 32;  // pixels summed in float

// Two sums per channel, of the deviations of x from `about` and of their squares; `about` holds a
// value near each channel's.
template <class T>
struct Moments {
  const T* x;
  const float* about;

  template <int Lanes>
  void add(int64_t offset, int64_t rows, int64_t stride, int64_t channel, int64_t step,
           double* first, double* second) const {
    for (int64_t begin = 0; begin < rows; begin += run) {
      const int64_t n = std::min(run, rows - begin);
      const T* at = x + offset + begin * stride;
      // Near the mean of the run, so that the squared deviations from it lose little precision.
      float centre[Lanes] = {}, rest[Lanes] = {}, squares[Lanes] = {};
      for (int64_t i = 0; i < n; ++i) {
        for (int k = 0; k < Lanes; ++k) centre[k] += cpu::load(at[i * stride + k]);
      }
      for (int k = 0; k < Lanes; ++k) centre[k] /= static_cast<float>(n);
      for (int64_t i = 0; i < n; ++i) {
        for (int k = 0; k < Lanes; ++k) {
          const float distance = cpu::load(at[i * stride + k]) - centre[k];
          rest[k] += distance;
          squares[k] += distance * distance;
        }
      }
      for (int k = 0; k < Lanes; ++k) {
        const int64_t c = channel + k * step;
        const double shift = static_cast<double>(centre[k]) - static_cast<double>(about[c]);
        const double more = rest[k], all = static_cast<double>(n) * shift;
        first[c] += all + more;
        second[c] += static_cast<double>(squares[k]) + shift * (all + 2 * more);
      }
    }
  }
};

// Sums of dy and of dy * y.
template <class T>
struct Products {
  const T* dy;
  const T* y;

  template <int Lanes>
  void add(int64_t offset, int64_t rows, int64_t stride, int64_t channel, int64_t step,
           double* first, double* second) const {
    for (int64_t begin = 0; begin < rows; begin += run) {
      const int64_t n = std::min(run, rows - begin), at = offset + begin * stride;
      float sums[Lanes] = {}, products[Lanes] = {};
      for (int64_t i = 0; i < n; ++i) {
        for (int k = 0; k < Lanes; ++k) {
          const float gradient = cpu::load(dy[at + i * stride + k]);
          sums[k] += gradient;
          products[k] += gradient * cpu::load(y[at + i * stride + k]);
        }
      }
      for (int k = 0; k < Lanes; ++k) {
        first[channel + k * step] += static_cast<double>(sums[k]);
        second[channel + k * step] += static_cast<double>(products[k]);
      }
    }
  }
};

class ChannelSums {
 public:
  explicit ChannelSums(const Channels& channels)
      : channels_(channels),
        parts_(std::clamp<int64_t>(channels.per_channel() * channels.count / 65536, 1,
                                   std::min<int64_t>(32, channels.units()))) {}

  // Working memory, in doubles.
  [[nodiscard]] int64_t scratch() const { return parts_ * 2 * channels_.count; }

  // Writes the two sums to scratch[0..count) and scratch[count..2 count).
  template <class Terms>
  void sum(int32_t threads, const Terms& terms, double* scratch) const {
    sum_units(threads, scratch, [&](int64_t begin, int64_t end, double* first, double* second) {
      channels_.visit(begin, end, terms, first, second);
    });
  }
  // The same with body(begin, end, first, second), which adds the sums of units [begin, end) to
  // those of each channel.
  template <class Body>
  void sum_units(int32_t threads, double* scratch, const Body& body) const {
    const int64_t both = 2 * channels_.count, units = channels_.units();
    cpu::for_parts(threads, parts_, [&](int64_t part) {
      double* mine = scratch + part * both;
      std::fill_n(mine, both, 0.0);
      body(part * units / parts_, (part + 1) * units / parts_, mine, mine + channels_.count);
    });
    for (int64_t part = 1; part < parts_; ++part) {
      for (int64_t i = 0; i < both; ++i) scratch[i] += scratch[part * both + i];
    }
  }

 private:
  Channels channels_;
  int64_t parts_;
};

}  // namespace tandem::layers
