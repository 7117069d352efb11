// A product of matrices of which one is read value by value, so that it may have any layout and
// strides, and the other in vectors. Convolution's weight gradients are such sums, and the input
// gradients of InnerProduct. Everything runs on the calling thread and allocates nothing.
#pragma once

#include <cstdint>

namespace tandem::layers::vector_products {

// c = a b, or c += a b, summed over `lines` of `steps` each. The value of a row and a step is at
// a + rows[row] + line * a_line + step * a_step, the vector of a chunk of columns at
// b + line * b_line + step * b_step + chunk * b_chunk. c has `chunks` vectors for each row.
struct Product {
  const float* a;
  int64_t a_line, a_step;
  const int64_t* rows;
  int64_t row_count;
  const float* b;
  int64_t b_line, b_step, b_chunk;
  int64_t lines, steps, chunks;
  float* c;
  bool adds;
};

struct Kernels {
  const char* instructions;  // such as "AVX2"
  int64_t lanes;
  int64_t panel;  // the most chunks of a product
  void (*multiply)(const Product& product);
  // sums[chunk], or += : of b's vectors over all steps. `a`, `rows` and `c` are not used.
  void (*sum_columns)(const Product& product, float* sums);
};

// The best that this CPU has and ONEDNN_MAX_CPU_ISA does not exclude.
[[nodiscard]] const Kernels& kernels();

}  // namespace tandem::layers::vector_products
