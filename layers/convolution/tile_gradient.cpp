#include "layers/convolution/tile_gradient.h"

#include <algorithm>
#include <utility>

#include "layers/convolution/divide.h"
#include "layers/convolution/tile_products.h"
#include "plugins/cpu/team.h"

namespace tandem::layers {

namespace {

using cpu::bfloat16;
using tile_products::block;
using tile_products::depth;

constexpr int64_t block_sums = block * block;

bool lies_by_pixels(const tandem_tensor& tensor) {
  const sdk::Shape& s = tensor.shape;
  return s.h * s.w == 1 || cpu::block_of(tensor.layout, s.c) == s.c;
}

// With fewer channels most of a tile would be empty, and so would it be with fewer pixels.
constexpr int64_t enough_channels = 16, enough_pixels = 16;

bool folds(const ConvolutionSettings& settings, const sdk::Shape& in) {
  const Window& w = settings.window;
  return settings.group == 1 && in.c < enough_channels && w.kernel.w > 1 && w.dilation.w == 1 &&
         w.stride.w <= w.kernel.w;
}

bool reads_single_pixels(const Window& w) {
  return w.kernel.h * w.kernel.w * w.stride.h * w.stride.w == 1 && w.pad.h + w.pad.w == 0;
}

// Measured: with few outputs, the copies of large images take longer than tiles save.
bool is_worth_copying(const ConvolutionSettings& settings, const sdk::Shape& in,
                      const sdk::Shape& out) {
  const Axes& kernel = settings.window.kernel;
  constexpr int64_t many_pixels = 784, many_outputs = 192;
  return folds(settings, in) || kernel.h * kernel.w == 1 || out.h * out.w < many_pixels ||
         out.c / settings.group >= many_outputs;
}

bool suits(const sdk::Binding& binding, const ConvolutionSettings& settings) {
  const tandem_tensor &in = binding.input(0), &out = binding.output(0);
  const int64_t inputs = in.shape.c / settings.group, outputs = settings.outputs / settings.group;
  return in.dtype == TANDEM_BFLOAT16 && binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS) &&
         tile_products::are_available() && lies_by_pixels(in) && lies_by_pixels(out) &&
         out.shape.h * out.shape.w >= enough_pixels && outputs >= enough_channels &&
         (inputs >= enough_channels || folds(settings, in.shape)) &&
         is_worth_copying(settings, in.shape, out.shape);
}

// The pixels of all images as those of one, whose rows are as long as a band may be.
void join(sdk::Shape& images) {
  constexpr int64_t most = 512;
  const int64_t pixels = images.n * images.h * images.w;
  int64_t row = std::min(pixels, most);
  while (pixels % row != 0) --row;
  if (row < images.w) return;
  images = {1, images.c, pixels / row, row};
}

}  // namespace

std::unique_ptr<TileGradient> TileGradient::make(const sdk::Binding& binding,
                                                 const sdk::Call& call) {
  sdk::Shape in = binding.input(0).shape, out = binding.output(0).shape;
  const ConvolutionSettings settings(binding.attributes, in);
  if (!suits(binding, settings)) return nullptr;
  if (reads_single_pixels(settings.window)) {
    join(in);
    join(out);
  }
  const Window& w = settings.window;
  const auto axis = [&](auto extent) {
    return PixelAxis::forward(w.kernel.*extent, w.stride.*extent, w.pad.*extent, w.dilation.*extent,
                              extent == &Axes::h ? in.h : in.w, extent == &Axes::h ? out.h : out.w);
  };
  TilePlanes planes = folds(settings, in) ? TilePlanes::folded(w, in, out, depth)
                                          : TilePlanes::of_channels(axis(&Axes::h), axis(&Axes::w),
                                                                    in.c / settings.group, depth);
  std::unique_ptr<TileGradient> made(
      new TileGradient(std::move(planes), settings, in, out, std::max(1, call.threads)));
  // A kernel or dilation that is large beside the image makes bands of mostly padding.
  constexpr int64_t max_values = int64_t{8} << 20, max_copies = 4;
  const int64_t tensors = sdk::count(in) + sdk::count(out);
  return made->copied_values() <= max_values + max_copies * tensors ? std::move(made) : nullptr;
}

TileGradient::TileGradient(TilePlanes input, const ConvolutionSettings& settings,
                           const sdk::Shape& in, const sdk::Shape& out, int64_t slots)
    : input_(std::move(input)),
      in_(in),
      out_(out),
      kernel_(settings.window.kernel),
      groups_(settings.group),
      inputs_(in.c / settings.group),
      outputs_(out.c / settings.group),
      bias_(settings.bias),
      slots_(slots),
      pixels_(input_.planes.vectors_of(0, depth) * depth),
      output_blocks_(divide_up(outputs_, block)),
      input_blocks_(divide_up(depths(), block)),
      bands_(in.n * input_.planes.bands) {
  const std::vector<TilePlanes::Tap> taps = input_.taps(kernel_);
  const auto is_odd = [](const TilePlanes::Tap& tap) { return tap.place % 2 != 0; };
  shifted_ = std::any_of(taps.begin(), taps.end(), is_odd) ? 2 : 1;
  pairs_values_ = input_.planes.source_floats * input_.depth;
  for (const TilePlanes::Tap& tap : taps) {
    const int64_t pairs = tap.plane * shifted_ + (is_odd(tap) ? 1 : 0);
    taps_.push_back({tap.point, pairs * pairs_values_ + tap.place / 2 * 2 * input_.depth});
  }
  input_values_ = input_.planes.source_phases() * shifted_ * pairs_values_;
  gradient_values_ = output_blocks_ * block * pixels_;
  // Two more pixels are behind the pairs that begin with the last one.
  plane_values_ =
      std::max(input_.values() + 2 * input_.pixel + block, pixels_ * output_blocks_ * block);
  plane_values_ = divide_up(plane_values_, block) * block;
  constexpr int64_t enough_values = int64_t{1} << 20;
  bands_at_once_ = std::clamp<int64_t>(enough_values / band_values(), 1, bands_);
  bands_at_once_ = divide_up(bands_, divide_up(bands_, bands_at_once_));
}

int64_t TileGradient::group_units() const {
  return static_cast<int64_t>(taps_.size()) * input_blocks_ + (bias_ ? 1 : 0);
}

TileGradient::Unit TileGradient::unit(int64_t index) const {
  const int64_t in_block = index % group_units(), of_block = index / group_units();
  const auto taps = static_cast<int64_t>(taps_.size());
  const Tap* tap = in_block < taps * input_blocks_ ? &taps_[size_t(in_block % taps)] : nullptr;
  return {of_block / output_blocks_, of_block % output_blocks_ * block, in_block / taps * block,
          tap};
}

int64_t TileGradient::scratch_bytes() const {
  const int64_t values =
      copied_values() + slots_ * plane_values_ + pixels_ * tile_products::columns;
  return values * static_cast<int64_t>(sizeof(bfloat16)) +
         units() * block_sums * static_cast<int64_t>(sizeof(float));
}

// ---- operands

// To pairs of pixels that begin with the even ones, and with the odd ones.
void TileGradient::load_input(int64_t index, int64_t group, const sdk::Pass& pass, bfloat16* plane,
                              bfloat16* target) const {
  const int64_t band = index % input_.planes.bands, image = index / input_.planes.bands;
  const TileImage from{pass.input<bfloat16>(0) + image * in_.h * in_.w * in_.c + group * inputs_,
                       inputs_, in_.c};
  const int64_t pixel = input_.pixel;
  for (int64_t i = 0; i < input_.planes.source_phases(); ++i) {
    input_.load(i, band, from, plane);
    std::fill(plane + input_.values(), plane + plane_values_, bfloat16{});
    for (int64_t shift = 0; shift < shifted_; ++shift, target += pairs_values_) {
      for (int64_t k = 0; k < input_.planes.source_floats / 2; ++k) {
        const bfloat16* first = plane + (2 * k + shift) * pixel;
        tile_products::interleave(first, first + pixel, input_.depth,
                                  target + k * 2 * input_.depth);
      }
    }
  }
}

// To the pixels of each channel.
void TileGradient::load_gradient(int64_t index, int64_t group, const sdk::Pass& pass,
                                 bfloat16* plane, bfloat16* target) const {
  const int64_t band = index % input_.planes.bands, image = index / input_.planes.bands;
  const int64_t channels = output_blocks_ * block;
  const TileImage from{
      pass.output_gradient<bfloat16>(0) + image * out_.h * out_.w * out_.c + group * outputs_,
      outputs_, out_.c};
  load_tile_target(input_.planes, band, from, channels, pixels_ * channels, plane);
  for (int64_t channel = 0; channel < channels; channel += tile_products::rows) {
    for (int64_t pixel = 0; pixel < pixels_; pixel += depth) {
      tile_products::transpose(plane + pixel * channels + channel, channels,
                               target + channel * pixels_ + pixel, pixels_);
    }
  }
}

void TileGradient::load(const sdk::Call& call, const sdk::Pass& pass, int64_t first, int64_t count,
                        bfloat16* planes, bfloat16* bands) const {
  const int64_t parts = count * groups_ * 2;
  const int64_t slots = std::min<int64_t>({slots_, std::max(1, call.threads), parts});
  cpu::for_parts(call.threads, slots, [&](int64_t slot) {
    bfloat16* plane = planes + slot * plane_values_;
    for (int64_t part = slot * parts / slots; part < (slot + 1) * parts / slots; ++part) {
      const int64_t group = part / 2 % groups_, band = part / 2 / groups_;
      bfloat16* to = bands + band * band_values() + group * (input_values_ + gradient_values_);
      if (part % 2 == 0) {
        load_input(first + band, group, pass, plane, to);
      } else {
        load_gradient(first + band, group, pass, plane, to + input_values_);
      }
    }
  });
}

// ---- sums

void TileGradient::add(int64_t index, int64_t count, const bfloat16* bands, const bfloat16* ones,
                       float* sums) const {
  const Unit what = unit(index);
  const bfloat16* of_group = bands + what.group * (input_values_ + gradient_values_);
  const auto tiles = [](int64_t channels) {
    return std::min<int64_t>(2, divide_up(channels, tile_products::columns));
  };
  const bool is_bias = what.tap == nullptr;
  const bfloat16* b = is_bias ? ones : of_group + what.tap->pairs + 2 * what.input;
  tile_products::correlate(
      {of_group + input_values_ + what.output * pixels_, pixels_, band_values(), b,
       is_bias ? 2 * tile_products::columns : 2 * input_.depth, is_bias ? 0 : band_values(), count,
       pixels_ / depth, sums + index * block_sums},
      {tiles(outputs_ - what.output), is_bias ? 1 : tiles(depths() - what.input)});
}

void TileGradient::run(const sdk::Call& call, const sdk::Pass& pass) const {
  auto* sums = pass.scratch<float>();
  auto* bands = reinterpret_cast<bfloat16*>(sums + units() * block_sums);
  bfloat16* planes = bands + bands_at_once_ * band_values();
  bfloat16* ones = planes + slots_ * plane_values_;
  std::fill_n(sums, units() * block_sums, 0.0F);
  bfloat16 one{};
  cpu::store(1.0F, one);
  std::fill_n(ones, pixels_ * tile_products::columns, one);
  const int64_t slots = std::min<int64_t>({slots_, std::max(1, call.threads), units()});
  for (int64_t first = 0; first < bands_; first += bands_at_once_) {
    const int64_t count = std::min(bands_at_once_, bands_ - first);
    load(call, pass, first, count, planes, bands);
    cpu::for_parts(call.threads, slots, [&](int64_t slot) {
      const tile_products::Session session;
      for (int64_t i = slot * units() / slots; i < (slot + 1) * units() / slots; ++i) {
        add(i, count, bands, ones, sums);
      }
    });
  }
  store(call, pass, sums);
}

// ---- the result

void TileGradient::store_block(const sdk::Pass& pass, const Unit& what, const float* sums) const {
  const bool adds = pass.accumulate();
  const auto put = [adds](float& target, float value) { target = adds ? target + value : value; };
  const int64_t rows = std::min(block, outputs_ - what.output), points = kernel_.h * kernel_.w;
  const int64_t first = what.group * outputs_ + what.output;
  for (int64_t row = 0; row < rows; ++row, sums += block) {
    if (what.tap == nullptr) {
      put(pass.weight_gradient(1)[first + row], sums[0]);
      continue;
    }
    float* weights = pass.weight_gradient(0) + (first + row) * inputs_ * points;
    for (int64_t i = 0; i < block; ++i) {
      const int64_t at = what.input + i;  // a channel, or if it folds a point of a channel
      const int64_t channel = input_.folds ? at % inputs_ : at;
      const int64_t column = input_.folds ? at / inputs_ : 0;
      if (channel >= inputs_ || column >= (input_.folds ? kernel_.w : 1)) break;
      const int64_t point = input_.folds ? what.tap->point * kernel_.w + column : what.tap->point;
      put(weights[channel * points + point], sums[i]);
    }
  }
}

void TileGradient::store(const sdk::Call& call, const sdk::Pass& pass, const float* sums) const {
  cpu::for_parts(call.threads, groups_ * output_blocks_, [&](int64_t part) {
    for (int64_t i = part * group_units(); i < (part + 1) * group_units(); ++i) {
      store_block(pass, unit(i), sums + i * block_sums);
    }
  });
}

}  // namespace tandem::layers
