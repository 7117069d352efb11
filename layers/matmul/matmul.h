// MatMul: y = a b for each channel of each row, matrices of height x width, as ONNX computes it for
// two tensors. `transpose_a` and `transpose_b` take the transpose of the matrices instead.
#pragma once

#include <vector>

#include "plugins/sdk.h"

namespace tandem::layers {

// a is m x k, b is k x n, as they are multiplied; `count` of them in the batch.
struct MatMulExtents {
  bool transpose_a, transpose_b;
  int64_t m, k, n, count;

  // Throws Refusal for inputs that cannot be multiplied.
  MatMulExtents(const sdk::Attributes& attributes, const sdk::Shape& a, const sdk::Shape& b)
      : transpose_a(attributes.boolean("transpose_a")),
        transpose_b(attributes.boolean("transpose_b")),
        m(transpose_a ? a.w : a.h),
        k(transpose_a ? a.h : a.w),
        n(transpose_b ? b.h : b.w),
        count(a.n * a.c) {
    if (a.n == b.n && a.c == b.c && k == (transpose_b ? b.w : b.h)) return;
    throw sdk::invalid("inputs of ", sdk::text_of(a), " and ", sdk::text_of(b),
                       transpose_a ? ", the first transposed," : "",
                       transpose_b ? ", the second transposed," : "",
                       " cannot be multiplied: rows and channels must be the same, and the width "
                       "of the first the height of the second");
  }
};

struct MatMul : sdk::LayerType {
  const char* name() const override { return "MatMul"; }
  const char* help() const override { return "the product of two inputs, a matrix per channel"; }
  std::vector<sdk::Parameter> parameters() const override {
    const char* block = "matmul_param";
    return {
        sdk::boolean(block, "transpose_a").by_default("false").help("transpose the first input"),
        sdk::boolean(block, "transpose_b").by_default("false").help("transpose the second input"),
    };
  }
  sdk::Inputs inputs() const override { return {sdk::Input("a"), sdk::Input("b")}; }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_BACKWARD_READS_INPUTS | TANDEM_SAVES_NOTHING;
  }
  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    const sdk::Shape& a = query.input(0);
    const MatMulExtents extents(query.attributes, a, query.input(1));
    return {{a.n, a.c, extents.m, extents.n}};
  }
  tandem_layer_cost cost(const sdk::Query& query) const override {
    const MatMulExtents e(query.attributes, query.input(0), query.input(1));
    const double flops = 2 * static_cast<double>(e.count * e.m) * static_cast<double>(e.k * e.n);
    const double bytes =
        4 * static_cast<double>(e.count) * static_cast<double>(e.m * e.k + e.k * e.n + e.m * e.n);
    return make_cost(flops, 2 * flops, 0, bytes, 2 * bytes, 0);
  }
};

}  // namespace tandem::layers
