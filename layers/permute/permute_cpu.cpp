// Permute on the cpu. Where the last axis stays, runs of it are copied; else squares of the two
// axes that are the last ones of input and output, so that both are read and written in lines.
#include "layers/permute/permute.h"
#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/team.h"

namespace {

using namespace tandem::cpu;
using namespace tandem::sdk;
using namespace tandem::layers;

class Mover {
 public:
  Mover(const Permutation& permutation, int64_t rows) : rows_(rows), moved_(permutation) {
    elements_ = moved_.elements();
    int64_t stride = 1;
    for (int i = 0; i < moved_.count; ++i) {
      const auto axis = static_cast<size_t>(i);
      targets_[axis] = stride;
      stride *= moved_.axes[axis].extent;
      if (moved_.axes[axis].stride == 1) across_ = axis;
    }
  }

  template <class T>
  void run(const Call& call, const T* source, T* target) const {
    if (moved_.count == 0) return copy(call.threads, source, target, rows_ * elements_);
    if (across_ == 0) return copy_runs(call, source, target);
    const Permutation::Axis& along = moved_.axes[0];
    const Permutation::Axis& across = moved_.axes[across_];
    const int64_t bands = (across.extent + side - 1) / side;
    const int64_t planes = rows_ * elements_ / (along.extent * across.extent);
    for_items(call.threads, planes * bands, side * along.extent, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t first = item % bands * side;
        const Place at = place(item / bands, across_);
        const T* from = source + at.source + first;
        T* to = target + at.target + first * targets_[across_];
        transpose(from, along.stride, to, targets_[across_], along.extent,
                  std::min(side, across.extent - first));
      }
    });
  }

 private:
  static constexpr int64_t side = 16;
  struct Place {
    int64_t source, target;
  };

  // Of the plane, without axis 0 and axis `without`.
  [[nodiscard]] Place place(int64_t plane, size_t without) const {
    Place at{0, 0};
    for (int i = 1; i < moved_.count; ++i) {
      const auto axis = static_cast<size_t>(i);
      if (axis == without) continue;
      const int64_t extent = moved_.axes[axis].extent, index = plane % extent;
      plane /= extent;
      at.source += index * moved_.axes[axis].stride;
      at.target += index * targets_[axis];
    }
    return {at.source + plane * elements_, at.target + plane * elements_};
  }

  template <class T>
  void copy_runs(const Call& call, const T* source, T* target) const {
    const int64_t run = moved_.axes[0].extent;
    for_items(call.threads, rows_ * elements_ / run, run, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Place at = place(i, 0);
        std::copy_n(source + at.source, run, target + at.target);
      }
    });
  }

  // to[i, k] = from[k, i] for k < `along`, i < `across`.
  template <class T>
  static void transpose(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t along,
                        int64_t across) {
    for (int64_t k = 0; k < along; k += side) {
      const int64_t end = std::min(along, k + side);
      for (int64_t i = 0; i < across; ++i) {
        for (int64_t j = k; j < end; ++j) to[i * to_stride + j] = from[j * from_stride + i];
      }
    }
  }

  int64_t rows_, elements_ = 1;
  Permutation moved_;
  std::array<int64_t, Permutation::most> targets_{};  // strides in the target
  size_t across_ = 0;                                 // the axis that is the source's last one
};

class PermuteCpu {
 public:
  PermuteCpu(const Binding& binding, const Call&)
      : dtype_(binding.input(0).dtype),
        forward_(settings(binding).forward(), binding.input(0).shape.n),
        backward_(settings(binding).backward(), binding.input(0).shape.n) {}

  static constexpr uint32_t dtypes = float32_and_bfloat16;

  static LayoutOptions layouts(const Binding&) { return {{TANDEM_NCHW, TANDEM_NCHW, 0}}; }

  void forward(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      forward_.run(call, pass.input<T>(0).data(), pass.output<T>(0).data());
    });
  }
  void backward_data(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) {
      using T = decltype(element);
      backward_.run(call, pass.output_gradient<T>(0).data(), pass.input_gradient<T>(0).data());
    });
  }

 private:
  static PermuteSettings settings(const Binding& binding) {
    return {binding.attributes, binding.input(0).shape};
  }

  int32_t dtype_;
  Mover forward_, backward_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "permute", "1.0").layer<Permute>().kernel<Permute, PermuteCpu>("cpu").table();
}
