// Permute: gives the axes of its input another order: output axis i is the input's axis `order[i]`,
// as in SSD's branch of Caffe. `dim` divides a row into other axes first, of which there may be up
// to twelve; of more than three axes of the result, the last ones become one. Rows stay rows. It
// only moves memory; the gradient moves back.
#pragma once

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "layers/common/axes.h"
#include "plugins/sdk.h"

namespace tandem::layers {

// How a row's elements move: the axes of the result, from the last one, each with its extent and
// the distance of its neighbors in the input. Axes that stay together are one.
struct Permutation {
  static constexpr int most = 12;
  struct Axis {
    int64_t extent, stride;
  };
  int count = 0;
  std::array<Axis, most> axes{};

  [[nodiscard]] int64_t elements() const {
    int64_t result = 1;
    for (int i = 0; i < count; ++i) result *= axes[static_cast<size_t>(i)].extent;
    return result;
  }
};

class PermuteSettings {
 public:
  // Throws Refusal for axes that do not fit the input.
  PermuteSettings(const sdk::Attributes& attributes, const sdk::Shape& input)
      : dims_(attributes.integers("dim")), order_(attributes.integers("order")) {
    if (dims_.empty()) dims_ = {input.c, input.h, input.w};
    if (order_.empty()) {
      order_.resize(dims_.size() + 1);
      std::iota(order_.begin(), order_.end(), 0);
    }
    require_dims(input);
    require_order();
    Extents extents{input.n, 1, 1, 1};
    for (size_t i = 1; i < order_.size(); ++i) extents[std::min<size_t>(i, 3)] *= extent(i);
    output_ = shape_of(extents);
  }

  [[nodiscard]] const sdk::Shape& output() const { return output_; }

  // From the input to the output.
  [[nodiscard]] Permutation forward() const {
    std::vector<int64_t> strides(dims_.size(), 1);
    for (size_t i = dims_.size(); i-- > 1;) strides[i - 1] = strides[i] * dims_[i];
    Permutation result;
    for (size_t i = order_.size(); i-- > 1;) {
      push(result, {extent(i), strides[static_cast<size_t>(order_[i]) - 1]});
    }
    return result;
  }
  // From the output's gradient to the input's.
  [[nodiscard]] Permutation backward() const {
    std::vector<int64_t> strides(dims_.size(), 1);
    int64_t stride = 1;
    for (size_t i = order_.size(); i-- > 1;) {
      strides[static_cast<size_t>(order_[i]) - 1] = stride;
      stride *= extent(i);
    }
    Permutation result;
    for (size_t i = dims_.size(); i-- > 0;) push(result, {dims_[i], strides[i]});
    return result;
  }

 private:
  [[nodiscard]] int64_t extent(size_t i) const { return dims_[static_cast<size_t>(order_[i]) - 1]; }
  static void push(Permutation& permutation, const Permutation::Axis& axis) {
    if (axis.extent == 1) return;
    const auto next = static_cast<size_t>(permutation.count);
    if (next > 0) {
      Permutation::Axis& last = permutation.axes[next - 1];
      if (last.extent * last.stride == axis.stride) {
        last.extent *= axis.extent;
        return;
      }
    }
    permutation.axes[next] = axis;
    ++permutation.count;
  }
  void require_dims(const sdk::Shape& input) const {
    int64_t left = input.c * input.h * input.w;
    for (const int64_t dim : dims_) left = left % dim == 0 ? left / dim : 0;
    if (dims_.size() <= Permutation::most && left == 1) return;
    throw sdk::invalid("dim must be up to ", Permutation::most,
                       " extents whose product is that of a row of the input, ",
                       sdk::text_of(input));
  }
  void require_order() const {
    std::vector<int64_t> sorted = order_;
    std::sort(sorted.begin(), sorted.end());
    bool is_order = sorted.size() == dims_.size() + 1 && order_[0] == 0;
    for (size_t i = 0; is_order && i < sorted.size(); ++i) {
      is_order = sorted[i] == static_cast<int64_t>(i);
    }
    if (is_order) return;
    throw sdk::invalid("order must begin with 0, the batch, and name each of the axes 1 to ",
                       dims_.size(), " once");
  }

  std::vector<int64_t> dims_, order_;
  sdk::Shape output_{};
};

struct Permute : sdk::LayerType {
  const char* name() const override { return "Permute"; }
  const char* help() const override { return "gives the axes another order"; }
  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "permute_param";
    return {
        sdk::integers(block, "order")
            .range(0, Permutation::most)
            .help("the input's axis for each axis of the output; 0, the batch, first; default: as "
                  "they are"),
        sdk::integers(block, "dim")
            .range(1, 1e9)
            .help("extents that divide a row first; default: channels, height, width"),
    };
  }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING; }

  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    return {PermuteSettings(query.attributes, query.input(0)).output()};
  }

  tandem_layer_cost cost(const sdk::Query& query) const override {
    const double bytes = 8 * static_cast<double>(sdk::count(query.input(0)));
    return make_cost(0, 0, 0, bytes, bytes, 0);
  }
};

}  // namespace tandem::layers
