#include "layers/convolution/tap_gradient.h"

#include <algorithm>

#include "layers/convolution/divide.h"
#include "plugins/cpu/layout.h"
#include "plugins/cpu/team.h"

namespace tandem::layers {

namespace {

// Of a part: the gradients of its pixels, a panel at a time, stay in the L1 cache.
constexpr int64_t part_pixels = 256;
// Taps that a thread sums up at a time: so few that threads have equal shares of few channels, and
// whole blocks of the products' rows.
constexpr int64_t unit_taps = 12;

// Channels that are next to each other in memory: all of them in images of one pixel.
int64_t block_of(const tandem_tensor& tensor) {
  const sdk::Shape& s = tensor.shape;
  return s.h * s.w == 1 ? s.c : cpu::block_of(tensor.layout, s.c);
}

// With few taps, to copy an image with its padding takes longer than is gained. oneDNN's kernels
// have no dilation.
bool is_worth_copying(const ConvolutionSettings& settings, const sdk::Shape& in) {
  const Window& w = settings.window;
  constexpr int64_t enough_taps = 64;
  return w.pad.h + w.pad.w == 0 || w.dilation.h > 1 || w.dilation.w > 1 ||
         in.c / settings.group * w.kernel.h * w.kernel.w >= enough_taps;
}

// With AVX-512 oneDNN's direct kernels are as fast, but it has none for weight gradients with
// dilations.
bool is_faster_than_library(const ConvolutionSettings& settings,
                            const vector_products::Kernels& kernels) {
  constexpr int64_t avx2_lanes = 8;
  const Window& w = settings.window;
  return kernels.lanes == avx2_lanes ||
         (kernels.lanes > avx2_lanes &&
          ((w.kernel.h > 1 && w.dilation.h > 1) || (w.kernel.w > 1 && w.dilation.w > 1)));
}

}  // namespace

std::unique_ptr<TapGradient> TapGradient::make(const sdk::Binding& binding, const sdk::Call& call) {
  const tandem_tensor &in = binding.input(0), &out = binding.output(0);
  const ConvolutionSettings settings(binding.attributes, in.shape);
  const vector_products::Kernels& kernels = vector_products::kernels();
  const int64_t block = block_of(out);
  // With fewer pixels, most of the time goes to the matrix itself.
  constexpr int64_t enough_pixels = 128;
  const bool suits = binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS) && in.dtype == TANDEM_FLOAT32 &&
                     is_faster_than_library(settings, kernels) &&
                     out.shape.n * out.shape.h * out.shape.w >= enough_pixels &&
                     is_worth_copying(settings, in.shape) &&
                     out.shape.c / settings.group % kernels.lanes == 0 &&
                     (block == kernels.lanes || block == out.shape.c);
  if (!suits) return nullptr;
  return std::unique_ptr<TapGradient>(new TapGradient(binding, settings, call));
}

TapGradient::TapGradient(const sdk::Binding& binding, const ConvolutionSettings& settings,
                         const sdk::Call& call)
    : kernels_(vector_products::kernels()),
      in_(binding.input(0).shape),
      out_(binding.output(0).shape),
      window_(settings.window),
      groups_(settings.group),
      bias_(settings.bias),
      in_block_(block_of(binding.input(0))),
      out_block_(block_of(binding.output(0))),
      slots_(std::max(1, call.threads)),
      taps_count_(in_.c / groups_ * window_.kernel.h * window_.kernel.w),
      chunks_(out_.c / groups_ / kernels_.lanes) {
  flatten();
  divide();
  place_taps();
}

// The pixels of a 1x1 kernel without stride and padding are one row, or as few as a part may have.
void TapGradient::flatten() {
  const Window& w = window_;
  if (w.kernel.h * w.kernel.w * w.stride.h * w.stride.w != 1 || is_copied()) return;
  const int64_t pixels = in_.h * in_.w;
  int64_t row = std::min(pixels, part_pixels);
  while (pixels % row != 0) --row;
  if (row < in_.w) return;
  in_.w = out_.w = row;
  in_.h = out_.h = pixels / row;
}

void TapGradient::divide() {
  const int64_t most = std::max<int64_t>(1, part_pixels / out_.w);
  is_of_images_ = out_.h == 1 && !is_copied();
  const int64_t lines = is_of_images_ ? in_.n : out_.h;
  parts_ = divide_up(lines, most);
  part_lines_ = divide_up(lines, parts_);
  parts_ = divide_up(lines, part_lines_);
  if (!is_copied()) {
    line_ = in_.w * in_block_;
    plane_ = in_.h * line_;
    return;
  }
  const Axes kernel = effective_kernel(window_);
  line_ = ((out_.w - 1) * window_.stride.w + kernel.w) * in_block_;
  plane_ = ((part_lines_ - 1) * window_.stride.h + kernel.h) * line_;
}

// In the order of the weights, of all groups.
void TapGradient::place_taps() {
  const Axes &kernel = window_.kernel, &dilation = window_.dilation;
  for (int64_t c = 0; c < in_.c; ++c) {
    for (int64_t h = 0; h < kernel.h; ++h) {
      for (int64_t w = 0; w < kernel.w; ++w) {
        taps_.push_back(c / in_block_ * plane_ + c % in_block_ + h * dilation.h * line_ +
                        w * dilation.w * in_block_);
      }
    }
  }
}

int64_t TapGradient::scratch_bytes() const {
  return (groups_ * sums() + out_.c + slots_ * copied_floats()) *
         static_cast<int64_t>(sizeof(float));
}

std::string TapGradient::name() const {
  return sdk::text("products of taps, ", kernels_.instructions);
}

TapGradient::Part TapGradient::part(int64_t index) const {
  const int64_t first = index % parts_ * part_lines_;
  if (is_of_images_) return {first, 0, std::min(part_lines_, in_.n - first)};
  return {index / parts_, first, std::min(part_lines_, out_.h - first)};
}

// Copies a row with its padding.
void TapGradient::copy_row(const float* source, float* target) const {
  const int64_t pixels = line_ / in_block_, left = window_.pad.w;
  const int64_t begin = std::min(left, pixels), end = std::min(in_.w + left, pixels);
  std::fill_n(target, begin * in_block_, 0.0F);
  if (begin < end) std::copy_n(source, (end - begin) * in_block_, target + begin * in_block_);
  std::fill(target + end * in_block_, target + line_, 0.0F);
}

// All channels of the input rows that the part's windows cover.
const float* TapGradient::input_of(const Part& part, const float* images, float* copied) const {
  const float* image = images + part.image * in_.c * in_.h * in_.w;
  if (!is_copied()) return image + part.row * window_.stride.h * line_;
  const int64_t rows = (part.lines - 1) * window_.stride.h + effective_kernel(window_).h;
  const int64_t top = part.row * window_.stride.h - window_.pad.h;
  for (int64_t block = 0; block < in_.c / in_block_; ++block) {
    for (int64_t i = 0; i < rows; ++i) {
      float* target = copied + block * plane_ + i * line_;
      if (top + i >= 0 && top + i < in_.h) {
        copy_row(image + (block * in_.h + top + i) * in_.w * in_block_, target);
      } else {
        std::fill_n(target, line_, 0.0F);
      }
    }
  }
  return copied;
}

int64_t TapGradient::chunk_stride() const {
  return out_block_ == out_.c ? kernels_.lanes : out_.h * out_.w * out_block_;
}

const float* TapGradient::gradient_of(const Part& part, const float* gradients,
                                      int64_t chunk) const {
  return gradients + part.image * out_.c * out_.h * out_.w + part.row * out_.w * out_block_ +
         chunk * chunk_stride();
}

// Brings the unit's share of what its panel reads of the part into the cache. Its first product
// would otherwise wait for the memory.
void TapGradient::fetch(const Part& part, const float* gradients, int64_t unit) const {
  constexpr int64_t cache_line = 16;
  const int64_t units = units_of_panel(), panel = unit / units % panels();
  const int64_t group = unit / units / panels(), share = unit % units;
  const int64_t line_floats = is_of_images_ ? out_.c * out_.h * out_.w : out_.w * out_block_;
  const int64_t step = std::max(cache_line, out_block_);
  for (int64_t chunk = first_chunk(panel); chunk < first_chunk(panel + 1); ++chunk) {
    const float* first = gradient_of(part, gradients, group * chunks_ + chunk);
    for (int64_t line = share * part.lines / units; line < (share + 1) * part.lines / units;
         ++line) {
      const float* values = first + line * line_floats;
      for (int64_t i = 0; i < out_.w * out_block_; i += step) __builtin_prefetch(values + i);
    }
  }
}

// A unit is some taps of a panel, which is as many chunks as a product takes.
void TapGradient::add(const Part& part, const float* input, const float* gradient, int64_t unit,
                      float* sums_of_all) const {
  const int64_t units = units_of_panel(), panel = unit / units % panels();
  const int64_t group = unit / units / panels(), tap = unit % units * unit_taps;
  const int64_t chunk = first_chunk(panel), width = first_chunk(panel + 1) - chunk;
  const int64_t image = out_.h * out_.w, lanes = kernels_.lanes;
  const int64_t first = group * chunks_ + chunk;  // of all groups' chunks
  const vector_products::Product product{
      input,
      is_of_images_ ? in_.c * in_.h * in_.w : window_.stride.h * line_,
      window_.stride.w * in_block_,
      taps_.data() + group * taps_count_ + tap,
      std::min(unit_taps, taps_count_ - tap),
      gradient_of(part, gradient, first),
      is_of_images_ ? out_.c * image : out_.w * out_block_,
      out_block_,
      chunk_stride(),
      part.lines,
      out_.w,
      width,
      sums_of_all + group * sums() + (chunk * taps_count_ + tap * width) * lanes,
      part.image > 0 || part.row > 0};
  kernels_.multiply(product);
  if (bias_ && tap == 0) {
    kernels_.sum_columns(product, sums_of_all + groups_ * sums() + first * lanes);
  }
}

void TapGradient::run(const sdk::Call& call, const sdk::Pass& pass) const {
  auto* sums_of_all = pass.scratch<float>();
  float* copies = sums_of_all + groups_ * sums() + out_.c;
  const int64_t units = groups_ * panels() * units_of_panel();
  const int64_t slots = std::min<int64_t>({slots_, call.threads, units});
  const int64_t parts = is_of_images_ ? parts_ : in_.n * parts_;
  cpu::for_parts(call.threads, slots, [&](int64_t slot) {
    float* copied = copies + slot * copied_floats();
    for (int64_t i = 0; i < parts; ++i) {
      const float* input = input_of(part(i), pass.input(0), copied);
      for (int64_t unit = slot * units / slots; unit < (slot + 1) * units / slots; ++unit) {
        if (i + 1 < parts) fetch(part(i + 1), pass.output_gradient(0), unit);
        add(part(i), input, pass.output_gradient(0), unit, sums_of_all);
      }
    }
  });
  store(call, pass, sums_of_all);
}

void TapGradient::store(const sdk::Call& call, const sdk::Pass& pass,
                        const float* sums_of_all) const {
  const bool adds = pass.accumulate();
  float* weights = pass.weight_gradient(0);
  const int64_t lanes = kernels_.lanes;
  cpu::for_parts(call.threads, groups_ * panels(), [&](int64_t part) {
    const int64_t group = part / panels(), chunk = first_chunk(part % panels());
    const int64_t channels = (first_chunk(part % panels() + 1) - chunk) * lanes;
    const float* source = sums_of_all + group * sums() + chunk * taps_count_ * lanes;
    float* target = weights + (group * chunks_ + chunk) * lanes * taps_count_;
    for (int64_t channel = 0; channel < channels; ++channel, target += taps_count_) {
      for (int64_t tap = 0; tap < taps_count_; ++tap) {
        const float sum = source[tap * channels + channel];
        target[tap] = adds ? target[tap] + sum : sum;
      }
    }
  });
  if (!bias_) return;
  const float* bias_sums = sums_of_all + groups_ * sums();
  float* bias = pass.weight_gradient(1);
  for (int64_t i = 0; i < out_.c; ++i) bias[i] = adds ? bias[i] + bias_sums[i] : bias_sums[i];
}

int64_t TapGradient::panels() const {
  return divide_up(chunks_, kernels_.panel);
}

int64_t TapGradient::units_of_panel() const {
  return divide_up(taps_count_, unit_taps);
}

}  // namespace tandem::layers
