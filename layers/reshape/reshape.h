// Reshape: gives its input other extents, as Caffe does: 0 keeps the input's extent, -1 is computed
// from the others. `axis` and `num_axes` select the axes that are replaced. The result has at most
// four axes, and rows stay rows. Elements keep their N,C,H,W order, so that nothing is computed.
#pragma once

#include <string>
#include <vector>

#include "layers/common/axes.h"

namespace tandem::layers {

class ReshapedExtents {
 public:
  // Throws Refusal for extents that do not fit.
  ReshapedExtents(const sdk::Attributes& attributes, const sdk::Shape& input)
      : input_(input), extents_(extents_of(input)), dims_(attributes.integers("dim")) {
    find_range(attributes);
    if (begin_ == 0) require_rows();
    std::vector<int64_t> result(extents_.begin(), extents_.begin() + begin_);
    for (size_t i = 0; i < dims_.size(); ++i) result.push_back(extent(i));
    result.insert(result.end(), extents_.begin() + end_, extents_.end());
    infer(result);
    while (result.size() > 4 && result.back() == 1) result.pop_back();
    if (result.size() > 4) {
      throw sdk::unsupported("the result would have ", result.size(), " axes, ", text_of(result),
                             ", but only N, C, H, W are supported");
    }
    result.resize(4, 1);
    output_ = {result[0], result[1], result[2], result[3]};
    require_same_count(result);
  }

  [[nodiscard]] const sdk::Shape& output() const { return output_; }

 private:
  void find_range(const sdk::Attributes& attributes) {
    // Counted from the end, -1 is the position after the last axis.
    const int64_t axis = attributes.integer("axis");
    const int64_t replaced = attributes.integer("num_axes");
    begin_ = axis >= 0                    ? axis
             : axis == -1 && input_.w > 1 ? 4
                                          : static_cast<int64_t>(canonical_axis(axis, input_)) + 1;
    end_ = replaced == -1 ? 4 : begin_ + replaced;
    if (end_ > 4) {
      throw sdk::invalid("axis ", begin_, " and the ", replaced,
                         " axes from it on exceed N, C, H, W");
    }
  }
  void require_rows() const {
    if (!dims_.empty() && (dims_[0] == 0 || dims_[0] == -1)) return;
    throw sdk::unsupported("dim ", dims_.empty() ? "is missing" : sdk::text(dims_[0]),
                           " for the batch axis, which is divided over the devices: begin with "
                           "dim: 0, or write axis: 1");
  }
  [[nodiscard]] int64_t extent(size_t i) const {
    if (dims_[i] != 0) return dims_[i];
    const size_t from = static_cast<size_t>(begin_) + i;
    if (from < extents_.size()) return extents_[from];
    throw sdk::invalid("dim ", i,
                       " is 0, which keeps the input's extent, but the input has no axis ", from);
  }
  void infer(std::vector<int64_t>& result) const {
    int64_t known = 1, unknown = 0;
    for (const int64_t extent : result) {
      if (extent == -1) {
        ++unknown;
      } else {
        known *= extent;
      }
    }
    if (unknown == 0) return;
    if (unknown > 1) throw sdk::invalid("dim -1 can be written only once");
    if (sdk::count(input_) % known != 0) {
      throw sdk::invalid("the input's ", sdk::count(input_), " elements (", sdk::text_of(input_),
                         ") are not divisible by ", known, ", so dim -1 has no value");
    }
    for (int64_t& extent : result) {
      if (extent == -1) extent = sdk::count(input_) / known;
    }
  }
  void require_same_count(const std::vector<int64_t>& result) const {
    if (output_.n == input_.n && sdk::count(output_) == sdk::count(input_)) return;
    throw sdk::invalid("the input has ", sdk::count(input_) / input_.n, " elements per row (",
                       sdk::text_of(input_), "), the result would be ", text_of(result));
  }
  static std::string text_of(const std::vector<int64_t>& extents) {
    std::string text;
    for (const int64_t extent : extents) {
      if (!text.empty()) text += 'x';
      text += std::to_string(extent);
    }
    return text;
  }

  const sdk::Shape& input_;
  Extents extents_;
  std::vector<int64_t> dims_;
  int64_t begin_ = 0, end_ = 4;  // the axes that are replaced
  sdk::Shape output_{};
};

struct Reshape : sdk::LayerType {
  const char* name() const override { return "Reshape"; }
  const char* help() const override { return "gives the elements other extents"; }
  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "reshape_param";
    return {
        sdk::integers("reshape_param.shape", "dim")
            .range(-1, 1e9)
            .help("extents; 0: the input's, -1: computed from the others"),
        sdk::integer(block, "axis").by_default("0").range(-4, 4).help("the first replaced axis"),
        sdk::integer(block, "num_axes")
            .by_default("-1")
            .range(-1, 4)
            .help("number of replaced axes; -1: all from axis on"),
    };
  }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_IN_PLACE | TANDEM_SAVES_NOTHING;
  }

  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    return {ReshapedExtents(query.attributes, query.input(0)).output()};
  }

  tandem_layer_cost cost(const sdk::Query& query) const override {
    const double bytes = 8 * static_cast<double>(sdk::count(query.input(0)));
    return make_cost(0, 0, 0, bytes, bytes, 0);
  }
};

}  // namespace tandem::layers
