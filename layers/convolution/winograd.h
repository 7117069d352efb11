// Convolution by Winograd's F(4x4, 3x3) on the cpu (Lavin, Gray: Fast Algorithms for Convolutional
// Neural Networks, 2016), which does with 36 multiplications what direct convolution does with 144:
// oneDNN's kernels, over parts of the batch, so that their working memory stays small, and over one
// group at a time, since they know no groups. How exact it is: docs/reports/performance.md.
#pragma once

#include <memory>
#include <vector>

#include "layers/convolution/convolution.h"
#include "plugins/cpu/onednn.h"

namespace tandem::layers {

class WinogradPart;

class WinogradConvolution : public sdk::Needs {
 public:
  // Whether the layer is a convolution that Winograd's does faster, by its extents and the machine.
  // The rows count only where there are very few.
  static bool suits(const sdk::Binding& binding);
  // Null where oneDNN has no such kernels for these extents.
  static std::unique_ptr<WinogradConvolution> make(const sdk::Binding& binding);
  ~WinogradConvolution();

  void forward(const sdk::Call& call, const sdk::Pass& pass);
  void backward_data(const sdk::Call& call, const sdk::Pass& pass);
  void backward_weights(const sdk::Call& call, const sdk::Pass& pass);

 private:
  // Inputs or outputs: channels of one group, floats of one group's row and of a whole one.
  struct Side {
    int64_t group_row = 0, row = 0;
  };
  // Some rows of one group.
  struct Piece {
    WinogradPart& part;
    int64_t group, row;
    bool is_first_of_size;  // of its group: what depends on no row is still to be done
    bool is_first;          // of its group
  };

  explicit WinogradConvolution(const sdk::Binding& binding);
  bool divide(const sdk::Binding& binding);
  template <class Body>
  void for_pieces(const Body& body);
  // The piece's elements as one tensor: where they lie, or copied to `scratch`.
  const float* gather(const sdk::Call& call, const Piece& piece, const Side& side,
                      const float* tensor, float* scratch) const;
  // Where the piece's elements are to be made, and their way from there.
  float* place(const Piece& piece, const Side& side, float* tensor, float* scratch) const;
  void scatter(const sdk::Call& call, const Piece& piece, const Side& side, const float* scratch,
               float* tensor) const;

  dnnl::engine engine_ = cpu::cpu_engine();
  int64_t rows_, groups_;
  int64_t outputs_, weights_;  // of one group
  bool bias_;
  Side input_, output_;
  std::vector<WinogradPart> parts_;  // one of each number of rows
  std::vector<size_t> division_;     // of the batch's rows: the part of each piece
};

}  // namespace tandem::layers
