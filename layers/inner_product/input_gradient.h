// The input gradient of InnerProduct, dx = dy W, where oneDNN's product of plain matrices is slow:
// batches of tens to hundreds of rows, with weights whose rows are a multiple of 2 KiB apart
// (docs/reports/performance.md). Some columns of the weights are copied at a time and multiplied by
// all rows of dy. The order of the sums does not depend on the number of threads.
#pragma once

#include <memory>
#include <vector>

#include "layers/common/vector_products.h"
#include "layers/inner_product/product_extents.h"
#include "plugins/sdk.h"

namespace tandem::layers {

class InputGradient {
 public:
  // Null where oneDNN's product is used, by extents and instruction set. `threads`: the most of a
  // call.
  static std::unique_ptr<InputGradient> make(const ProductExtents& extents, int32_t threads);

  [[nodiscard]] int64_t scratch_bytes() const;
  [[nodiscard]] std::string name() const;
  // Float32, of rows that lie as in the extents; dx is contiguous and overwritten. `scratch` has
  // scratch_bytes().
  void run(int32_t threads, const float* dy, const float* weights, float* dx, float* scratch) const;

 private:
  struct Panels {
    int64_t begin, end;
  };
  InputGradient(const ProductExtents& extents, int32_t threads);
  [[nodiscard]] int64_t panels() const;
  [[nodiscard]] int64_t first_column(int64_t panel) const;
  [[nodiscard]] int64_t block_columns() const;
  void copy_weights(const float* weights, int64_t outputs, const Panels& panels,
                    float* copied) const;
  void multiply(const Panels& panels, const float* dy, const float* weights, float* dx,
                float* scratch) const;
  void store(const Panels& panels, const float* sums, float* dx) const;

  const vector_products::Kernels& kernels_;
  ProductExtents e_;
  int64_t slots_;              // threads at a time
  std::vector<int64_t> rows_;  // where the rows of dy begin
};

}  // namespace tandem::layers
