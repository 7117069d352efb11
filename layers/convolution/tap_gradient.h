// The weight gradient of a direct convolution, where oneDNN's kernels are slow: a matrix of taps of
// the kernel and output channels, whose elements are sums over the pixels of all images
// (vector_products.h). An image is read where it lies; with padding, bands of its rows are copied
// with their zeros. Each element is summed by one thread, part by part of the batch, and the parts
// depend on extents only: so do the bits of the result. For any window, groups and number of input
// channels, in float32.
#pragma once

#include <memory>
#include <vector>

#include "layers/common/vector_products.h"
#include "layers/convolution/convolution.h"

namespace tandem::layers {

class TapGradient {
 public:
  // Null where oneDNN's kernels are faster, by extents, layouts and instruction set, or where no
  // weight gradient is wanted.
  static std::unique_ptr<TapGradient> make(const sdk::Binding& binding, const sdk::Call& call);

  [[nodiscard]] int64_t scratch_bytes() const;
  [[nodiscard]] std::string name() const;
  // backward_weights, in the pass's scratch memory.
  void run(const sdk::Call& call, const sdk::Pass& pass) const;

 private:
  // Some rows of an image, or the only row of some images.
  struct Part {
    int64_t image, row, lines;
  };
  TapGradient(const sdk::Binding& binding, const ConvolutionSettings& settings,
              const sdk::Call& call);
  void flatten();
  void divide();
  void place_taps();
  [[nodiscard]] bool is_copied() const { return window_.pad.h > 0 || window_.pad.w > 0; }
  [[nodiscard]] int64_t copied_floats() const {
    return is_copied() ? in_.c / in_block_ * plane_ : 0;
  }
  [[nodiscard]] int64_t units_of_panel() const;
  [[nodiscard]] int64_t panels() const;
  [[nodiscard]] int64_t first_chunk(int64_t panel) const { return panel * chunks_ / panels(); }
  [[nodiscard]] int64_t sums() const { return taps_count_ * chunks_ * kernels_.lanes; }
  [[nodiscard]] Part part(int64_t index) const;
  const float* input_of(const Part& part, const float* images, float* copied) const;
  void copy_row(const float* source, float* target) const;
  [[nodiscard]] int64_t chunk_stride() const;
  [[nodiscard]] const float* gradient_of(const Part& part, const float* gradients,
                                         int64_t chunk) const;
  void fetch(const Part& part, const float* gradients, int64_t unit) const;
  void add(const Part& part, const float* input, const float* gradient, int64_t unit,
           float* sums_of_all) const;
  void store(const sdk::Call& call, const sdk::Pass& pass, const float* sums_of_all) const;

  const vector_products::Kernels& kernels_;
  sdk::Shape in_, out_;
  Window window_;
  int64_t groups_;
  bool bias_;
  int64_t in_block_, out_block_;
  int64_t slots_;               // threads at a time
  bool is_of_images_;           // parts are some images, or some rows of one
  int64_t part_lines_, parts_;  // parts_: of an image, or of all images
  int64_t line_, plane_;        // floats of an input row, and of a plane of all rows, copied or not
  int64_t taps_count_, chunks_;  // of a group
  std::vector<int64_t> taps_;    // of all groups: where they are in an image
};

}  // namespace tandem::layers
