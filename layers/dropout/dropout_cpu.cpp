// Dropout on the cpu: forward draws the mask and saves it as bytes, in the order of memory, so that
// backward is one cheap pass.
#include "layers/dropout/dropout.h"

#include "layers/vector_math.h"
#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/layout.h"
#include "plugins/cpu/team.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::cpu;
using tandem::layers::Dropout;

class DropoutCpu : public Needs {
 public:
  DropoutCpu(const Binding& binding, const Call&)
      : placement_(binding.input(0)),
        elements_(count(binding.input(0).shape)),
        dtype_(binding.input(0).dtype),
        ratio_(static_cast<float>(binding.attributes.number("dropout_ratio"))),
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
  void copy(const Call& call, const T* from, T* to) const {
    if (from == to) return;
    for_ranges(call.threads, elements_, [=](int64_t begin, int64_t end) {
      std::copy(from + begin, from + end, to + begin);
    });
  }

  template <class T>
  void forward_of(const Call& call, const Pass& pass) const {
    const T* x = input<T>(pass, 0);
    T* y = output<T>(pass, 0);
    if (!training_) return copy(call, x, y);
    auto* mask = saved_bytes > 0 ? pass.saved<uint8_t>() : nullptr;
    // The random blocks that hold any of the slice's elements.
    const int64_t first = first_element_ / 4;
    const int64_t blocks = (first_element_ + placement_.row_size() + 3) / 4 - first;
    for_ranges(call.threads, placement_.shape.n * blocks, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        drop(pass.step(), i / blocks, static_cast<uint32_t>(first + i % blocks), x, y, mask);
      }
    });
  }

  template <class T>
  void backward_of(const Call& call, const Pass& pass) const {
    const T* dy = output_gradient<T>(pass, 0);
    T* dx = input_gradient<T>(pass, 0);
    if (!training_) return copy(call, dy, dx);
    const auto* mask = pass.saved<uint8_t>();
    const float factor = 1 / (1 - ratio_);
    for_ranges(call.threads, elements_, [=](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        store(tandem::layers::select(mask[i] != 0, factor * load(dy[i]), 0), dx[i]);
      }
    });
  }

  // The four elements of one random block.
  template <class T>
  void drop(const tandem_step& step, int64_t row, uint32_t block, const T* x, T* y,
            uint8_t* mask) const {
    const float factor = 1 / (1 - ratio_);
    const int64_t row_size = placement_.row_size();
    const tandem_random4 random =
        tandem_random_block(step.seed, step.step, layer_,
                            first_row_ + static_cast<uint64_t>(step.first_row + row), block);
    const int64_t first = int64_t{block} * 4 - first_element_;
    const int64_t last = std::min<int64_t>(4, row_size - first);
    for (int64_t lane = std::max<int64_t>(0, -first); lane < last; ++lane) {
      const int64_t i = row * row_size + place(first + lane);
      const bool kept = tandem_uniform(random.value[lane]) >= ratio_;
      store(kept ? factor * load(x[i]) : 0.0F, y[i]);
      if (mask != nullptr) mask[i] = kept ? 1 : 0;
    }
  }

  // Where the row's element number `element`, counted in C,H,W order, lies.
  [[nodiscard]] int64_t place(int64_t element) const {
    if (placement_.block == 1) return element;
    const Shape& s = placement_.shape;
    return placement_.offset(element / (s.h * s.w), element / s.w % s.h, element % s.w);
  }

  Placement placement_;
  int64_t elements_;
  int32_t dtype_;
  float ratio_;
  bool training_;
  uint32_t layer_;
  uint64_t first_row_;
  int64_t first_element_;  // of the slice in the whole row
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "dropout", "1.0").layer<Dropout>().kernel<Dropout, DropoutCpu>("cpu").table();
}
