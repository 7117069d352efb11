// Convolution by Winograd's F(4x4, 3x3) on the cpu (Lavin, Gray: Fast Algorithms for Convolutional
// Neural Networks, 2016). It needs 36 multiplications where direct convolution needs 144. It uses
// oneDNN's kernels, on blocks of the batch, so that the working memory stays small, and on one
// group at a time, since the kernels do not support groups. oneDNN has them before version 3.2
// only; with a newer one such convolutions are direct. docs/reports/performance.md has its
// accuracy.
#pragma once

#include <memory>
#include <vector>

#include "layers/convolution/convolution.h"
#include "plugins/cpu/onednn.h"

namespace tandem::layers {

class WinogradPasses;

class WinogradConvolution : public sdk::Needs {
 public:
  // Whether Winograd's algorithm is faster for this convolution, by its extents and the machine.
  // The number of rows matters only if it is very small.
  static bool suits(const sdk::Binding& binding);
  // Null if oneDNN has no such kernels for these extents.
  static std::unique_ptr<WinogradConvolution> make(const sdk::Binding& binding);
  ~WinogradConvolution();

  void forward(const sdk::Call& call, const sdk::Pass& pass);
  void backward_data(const sdk::Call& call, const sdk::Pass& pass);
  void backward_weights(const sdk::Call& call, const sdk::Pass& pass);

 private:
  // Inputs or outputs: the floats of one group in a row, and those of a whole row.
  struct Side {
    int64_t group_row = 0, row = 0;
  };
  // A block of rows of one group.
  struct Block {
    WinogradPasses& passes;
    int64_t group, row;
    // The first block with this number of rows in its group: it prepares what does not depend on
    // the rows.
    bool is_first_of_size;
    bool is_first;  // of its group
  };

  explicit WinogradConvolution(const sdk::Binding& binding);
  bool divide(const sdk::Binding& binding);
  template <class Body>
  void for_blocks(const Body& body);
  // The block's elements as one tensor: in `tensor` itself, or copied to `scratch`.
  const float* gather(const sdk::Call& call, const Block& block, const Side& side,
                      const float* tensor, float* scratch) const;
  // Where a pass writes the block's elements, and the copy from there to `tensor`.
  float* target(const Block& block, const Side& side, float* tensor, float* scratch) const;
  void scatter(const sdk::Call& call, const Block& block, const Side& side, const float* scratch,
               float* tensor) const;

  dnnl::engine engine_ = cpu::cpu_engine();
  int64_t rows_, groups_;
  int64_t outputs_, weights_;  // of one group
  bool bias_;
  Side input_, output_;
  std::vector<WinogradPasses> passes_;  // one for each number of rows
  std::vector<size_t> block_passes_;    // for each block of the batch, its index in passes_
};

}  // namespace tandem::layers
