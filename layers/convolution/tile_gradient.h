// The weight gradient of a direct convolution in tiles of bfloat16 (AMX): a matrix of output
// channels and taps, whose elements are sums over the pixels of all images. Bands of images are
// copied to planes (tile_planes.h), of the output's gradient with the pixels of a channel next to
// each other, of the input in pairs of pixels. All threads work on the same bands, and how many
// these are depends on extents only: so do the bits of the result. A NaN or infinity in an image
// makes the gradients of all taps NaN that are multiplied beside it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "layers/convolution/convolution.h"
#include "layers/convolution/tile_planes.h"

namespace tandem::layers {

class TileGradient {
 public:
  // Null where oneDNN's kernels are faster, by extents, layouts and instruction set, or where no
  // weight gradient is wanted.
  static std::unique_ptr<TileGradient> make(const sdk::Binding& binding, const sdk::Call& call);

  [[nodiscard]] int64_t scratch_bytes() const;
  [[nodiscard]] std::string name() const { return "products of tiles, AMX"; }
  // backward_weights, in the pass's scratch memory.
  void run(const sdk::Call& call, const sdk::Pass& pass) const;

 private:
  // `input`: of the forward pass, with whole tiles of depths for pixels. `slots`: threads at a
  // time.
  TileGradient(TilePlanes input, const ConvolutionSettings& settings, const sdk::Shape& in,
               const sdk::Shape& out, int64_t slots);
  // Of a tap of the kernel: the pairs of pixels that it begins with.
  struct Tap {
    int64_t point, pairs;
  };
  // Some rows of tiles of the matrix, for one tap.
  struct Unit {
    int64_t group, output, input;  // of a group: the first channels, or the first depth
    const Tap* tap;                // null: the bias
  };
  // Of a tap, without those that fill a tile.
  [[nodiscard]] int64_t depths() const { return input_.folds ? kernel_.w * inputs_ : inputs_; }
  [[nodiscard]] int64_t units() const { return groups_ * output_blocks_ * group_units(); }
  [[nodiscard]] int64_t group_units() const;  // of a block of output channels
  [[nodiscard]] Unit unit(int64_t index) const;
  // Of the bands that all threads work on.
  [[nodiscard]] int64_t copied_values() const { return bands_at_once_ * band_values(); }
  [[nodiscard]] int64_t band_values() const { return groups_ * (input_values_ + gradient_values_); }
  void load_input(int64_t index, int64_t group, const sdk::Pass& pass, cpu::bfloat16* plane,
                  cpu::bfloat16* target) const;
  void load_gradient(int64_t index, int64_t group, const sdk::Pass& pass, cpu::bfloat16* plane,
                     cpu::bfloat16* target) const;
  void load(const sdk::Call& call, const sdk::Pass& pass, int64_t first, int64_t count,
            cpu::bfloat16* planes, cpu::bfloat16* bands) const;
  void add(int64_t index, int64_t count, const cpu::bfloat16* bands, const cpu::bfloat16* ones,
           float* sums) const;
  void store(const sdk::Call& call, const sdk::Pass& pass, const float* sums) const;
  void store_block(const sdk::Pass& pass, const Unit& what, const float* sums) const;

  TilePlanes input_;
  sdk::Shape in_, out_;
  Axes kernel_;
  int64_t groups_, inputs_, outputs_;  // channels of a group
  bool bias_;
  int64_t slots_;
  int64_t pixels_;                        // of a band, in whole tiles of depths
  int64_t output_blocks_, input_blocks_;  // of a group; of the depths of a tap
  int64_t shifted_;                       // 1, or 2 where taps begin at odd pixels, too
  int64_t pairs_values_;                  // of the pairs of a plane
  int64_t input_values_, gradient_values_, plane_values_;
  int64_t bands_, bands_at_once_;
  std::vector<Tap> taps_;
};

}  // namespace tandem::layers
