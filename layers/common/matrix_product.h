// A product of plain float32 matrices, c = a b or c += a b, by vectors of columns of b and c. Some
// columns and rows of b are copied at a time, so that a panel's vectors follow each other, and
// multiplied by all rows of a block of a. The value of an element depends on its row of a and its
// column of b only: neither on the number of threads nor on the extents of c.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layers/common/vector_products.h"

namespace tandem::layers {

class MatrixProduct {
 public:
  // How far a value is from that of the next row and from that of the next column.
  struct Strides {
    int64_t row, column;
  };
  // a is m x k, b is k x n.
  struct Extents {
    int64_t m, n, k;
    Strides a, b, c;
  };
  // Of `count` matrices, each of which is in memory right behind the one before it. `threads`: the
  // most of a call.
  MatrixProduct(const Extents& extents, int32_t threads, int64_t count = 1);

  [[nodiscard]] int64_t scratch_bytes() const;
  [[nodiscard]] std::string name() const;
  // `adds`: to c. `scratch` has scratch_bytes().
  void run(int32_t threads, const float* a, const float* b, float* c, bool adds,
           float* scratch) const;

 private:
  struct Block {
    int64_t first_row, rows, first_panel, last_panel;
  };
  struct Columns {
    int64_t first, count, width;  // width: with those that only fill vectors
  };
  [[nodiscard]] int64_t panels() const;
  [[nodiscard]] Columns columns_of(int64_t panel) const;
  [[nodiscard]] int64_t panels_at_a_time() const;
  [[nodiscard]] int64_t block_columns() const;
  [[nodiscard]] int64_t slot_floats() const;
  void multiply(const Block& block, const float* a, const float* b, float* c, bool adds,
                float* slot) const;
  void copy(const Columns& columns, int64_t steps, const float* b, float* copied) const;
  void store(const Block& block, const float* sums, bool adds, float* c) const;

  const vector_products::Kernels* kernels_;
  Extents e_;
  int64_t slots_;  // threads at a time
  int64_t count_;
  std::vector<int64_t> rows_;  // where the rows of a block of a begin
};

}  // namespace tandem::layers
