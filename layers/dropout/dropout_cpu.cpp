// Dropout on the cpu: forward draws the mask and saves it as bytes, in the order of memory, so that
// the backward pass is one fast loop.
#include "layers/dropout/dropout.h"

#include "layers/common/vector_math.h"
#include "layers/dropout/random_blocks.h"
#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/layout.h"
#include "plugins/cpu/team.h"
#include "plugins/cpu/vector.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::cpu;
using tandem::layers::Dropout;
using tandem::layers::RandomBlocks;

// Whether each element of the random blocks from `first` on is kept, one byte each.
TANDEM_CPU_VECTOR void draw(const RandomBlocks& random, uint64_t row, uint32_t first, float ratio,
                            bool is_per_image, uint8_t* keep) {
  constexpr int elements = 4 * RandomBlocks::width;
  uint32_t bits[elements];
  random.draw(row, is_per_image ? 0 : first, bits);
  if (is_per_image) std::fill_n(bits + 1, elements - 1, bits[0]);
  // Equals tandem_uniform(): its 24 bits also fit a signed integer, whose conversion can be
  // vectorized.
  for (int i = 0; i < elements; ++i) {
    const float uniform = static_cast<float>(static_cast<int32_t>(bits[i] >> 8)) / 16777216.0F;
    keep[i] = uniform >= ratio ? 1 : 0;
  }
}

class DropoutCpu : public Needs {
 public:
  DropoutCpu(const Binding& binding, const Call&)
      : placement_(binding.input(0)),
        elements_(count(binding.input(0).shape)),
        dtype_(binding.input(0).dtype),
        ratio_(static_cast<float>(binding.attributes.number("dropout_ratio"))),
        is_per_image_(binding.attributes.boolean("per_image")),
        training_(binding.training()),
        layer_(binding.raw.layer_index),
        first_row_(static_cast<uint64_t>(binding.raw.batch_begin)),
        first_element_(binding.raw.slice_begin * placement_.shape.h * placement_.shape.w) {
    if (training_ && binding.has(TANDEM_WANTS_BACKWARD_DATA)) saved_bytes = elements_;
  }

  static constexpr uint32_t dtypes = float32_and_bfloat16;
  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }

  void forward(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) { forward_of<decltype(element)>(call, pass); });
  }
  void backward_data(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) { backward_of<decltype(element)>(call, pass); });
  }

 private:
  template <class T>
  void forward_of(const Call& call, const Pass& pass) const {
    const T* x = pass.input<T>(0);
    T* y = pass.output<T>(0);
    if (!training_) return copy(call.threads, x, y, elements_);
    auto* mask = saved_bytes > 0 ? pass.saved<uint8_t>() : nullptr;
    // The random blocks that contain elements of the slice.
    const int64_t first = first_element_ / 4;
    const int64_t blocks = (first_element_ + placement_.row_size() + 3) / 4 - first;
    const RandomBlocks random(pass.step(), layer_);
    for_ranges(call.threads, placement_.shape.n * blocks, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end;) {
        const int64_t row = i / blocks, from = i % blocks;
        const int64_t drawn = std::min({int64_t{RandomBlocks::width}, blocks - from, end - i});
        uint8_t keep[4 * RandomBlocks::width];
        draw(random, first_row_ + static_cast<uint64_t>(pass.step().first_row + row),
             static_cast<uint32_t>(first + from), ratio_, is_per_image_, keep);
        const int64_t element = (first + from) * 4 - first_element_;
        const int64_t from_element = std::max<int64_t>(0, element);
        const int64_t to_element = std::min(placement_.row_size(), element + drawn * 4);
        const int64_t at = row * placement_.row_size();
        drop(keep + (from_element - element), from_element, to_element, x + at, y + at,
             mask == nullptr ? nullptr : mask + at);
        i += drawn;
      }
    });
  }

  template <class T>
  void backward_of(const Call& call, const Pass& pass) const {
    const T* dy = pass.output_gradient<T>(0);
    T* dx = pass.input_gradient<T>(0);
    if (!training_) return copy(call.threads, dy, dx, elements_);
    const auto* mask = pass.saved<uint8_t>();
    const float factor = 1 / (1 - ratio_);
    for_ranges(call.threads, elements_, [=](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        store(tandem::layers::select(mask[i] != 0, factor * load(dy[i]), 0), dx[i]);
      }
    });
  }

  // The elements [begin, end) of a row in C,H,W order; `keep` has one byte for each.
  template <class T>
  void drop(const uint8_t* keep, int64_t begin, int64_t end, const T* x, T* y,
            uint8_t* mask) const {
    const float factor = 1 / (1 - ratio_);
    const int64_t size = end - begin;
    if (placement_.block == 1) {
      const T* from = x + begin;
      T* to = y + begin;
#pragma omp simd
      for (int64_t k = 0; k < size; ++k) {
        store(tandem::layers::select(keep[k] != 0, factor * load(from[k]), 0), to[k]);
      }
      if (mask != nullptr) std::copy_n(keep, size, mask + begin);
      return;
    }
    for (int64_t k = 0; k < size; ++k) {
      const int64_t i = offset(begin + k);
      store(keep[k] != 0 ? factor * load(x[i]) : 0.0F, y[i]);
      if (mask != nullptr) mask[i] = keep[k];
    }
  }

  // The offset of the row's element number `element`, counted in C,H,W order.
  [[nodiscard]] int64_t offset(int64_t element) const {
    const Shape& s = placement_.shape;
    return placement_.offset(element / (s.h * s.w), element / s.w % s.h, element % s.w);
  }

  Placement placement_;
  int64_t elements_;
  int32_t dtype_;
  float ratio_;
  bool is_per_image_, training_;
  uint32_t layer_;
  uint64_t first_row_;
  int64_t first_element_;  // of the slice in the whole row
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "dropout", "1.0").layer<Dropout>().kernel<Dropout, DropoutCpu>("cpu").table();
}
