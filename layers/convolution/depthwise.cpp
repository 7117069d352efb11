#include "layers/convolution/depthwise.h"

#include <algorithm>

#include "layers/convolution/divide.h"
#include "plugins/cpu/fused_relu.h"
#include "plugins/cpu/layout.h"
#include "plugins/cpu/onednn.h"
#include "plugins/cpu/team.h"

namespace tandem::layers {

using depthwise::Line;
using depthwise::Tap;

namespace {

// Also of negative numbers.
int64_t divide_down(int64_t count, int64_t by) {
  return count >= 0 ? count / by : -divide_up(-count, by);
}

// Sets the pixels that have all of the line's taps.
void find_inner_pixels(Line& line) {
  line.begin = 0;
  line.end = line.count;
  for (int64_t i = 0; i < line.tap_count; ++i) {
    const int64_t first = line.taps[i].first, last = line.source_width - 1 - first;
    line.begin = std::max(line.begin, -divide_down(first, line.source_step));
    line.end = std::min(line.end, divide_down(last, line.source_step) + 1);
  }
  line.end = std::clamp<int64_t>(line.end, 0, line.count);
  line.begin = std::min(line.begin, line.end);
}

}  // namespace

std::unique_ptr<DepthwiseConvolution> DepthwiseConvolution::make(const sdk::Binding& binding) {
  const tandem_tensor in = cpu::named_as(binding.input(0), binding.output(0));
  const tandem_tensor out = cpu::named_as(binding.output(0), binding.input(0));
  const ConvolutionSettings settings(binding.attributes, in.shape);
  if (settings.group == 1 || settings.group != in.shape.c || settings.group != out.shape.c) {
    return nullptr;
  }
  const int64_t block = cpu::block_of(in.layout, in.shape.c);
  const bool suits = in.dtype == TANDEM_FLOAT32 && block >= depthwise::fewest_channels &&
                     block == cpu::block_of(out.layout, out.shape.c);
  if (!suits) return nullptr;
  return std::unique_ptr<DepthwiseConvolution>(new DepthwiseConvolution(binding, settings, block));
}

DepthwiseConvolution::DepthwiseConvolution(const sdk::Binding& binding,
                                           const ConvolutionSettings& settings, int64_t block)
    : kernels_(depthwise::kernels()),
      in_(binding.input(0).shape),
      out_(binding.output(0).shape),
      window_(settings.window),
      bias_(settings.bias),
      fuses_relu_(binding.fuses_relu()),
      follows_relu_(binding.follows_relu()),
      block_(block),
      blocks_(in_.c / block),
      vectors_(divide_up(block, kernels_.lanes)) {
  constexpr int64_t enough_units = 16;
  parts_ = std::min(in_.n, divide_up(enough_units, blocks_ * vectors_));
  plan_forward();
  if (binding.has(TANDEM_WANTS_BACKWARD_DATA)) plan_backward();
  const int64_t sums = parts_ * blocks_ * vectors_ * sums_of_vector();
  scratch_bytes = std::max(sums, points() * in_.c) * static_cast<int64_t>(sizeof(float));
  algorithm = sdk::text("depthwise by vectors of channels, ", kernels_.instructions);
}

// The taps are in one vector, whose address is known when it is complete.
void DepthwiseConvolution::finish(Lines& lines, const std::vector<int64_t>& tap_counts) {
  const Tap* taps = lines.taps.data();
  for (size_t i = 0; i < lines.lines.size(); ++i) {
    Line& line = lines.lines[i];
    line.taps = taps;
    line.tap_count = tap_counts[i];
    taps += line.tap_count;
    find_inner_pixels(line);
  }
}

void DepthwiseConvolution::plan_forward() {
  const Window& w = window_;
  std::vector<int64_t> counts;
  forward_.at_once = 1;
  for (int64_t row = 0; row < out_.h; ++row) {
    const size_t before = forward_.taps.size();
    for (int64_t i = 0; i < points(); ++i) {
      const int64_t h = row * w.stride.h - w.pad.h + i / w.kernel.w * w.dilation.h;
      if (h < 0 || h >= in_.h) continue;
      forward_.taps.push_back({h * in_.w, i % w.kernel.w * w.dilation.w - w.pad.w, i});
    }
    counts.push_back(static_cast<int64_t>(forward_.taps.size() - before));
    forward_.lines.push_back({nullptr, 0, row * out_.w, 1, out_.w, w.stride.w, in_.w, 0, 0});
  }
  finish(forward_, counts);
}

// An input pixel has the outputs whose windows contain it. Pixels of a row that are a stride apart
// are at the same places in their windows: they are a line.
void DepthwiseConvolution::plan_backward() {
  const Window& w = window_;
  std::vector<int64_t> counts;
  backward_.at_once = std::min(w.stride.w, in_.w);
  for (int64_t row = 0; row < in_.h; ++row) {
    for (int64_t phase = 0; phase < backward_.at_once; ++phase) {
      const size_t before = backward_.taps.size();
      for (int64_t i = 0; i < points(); ++i) {
        const int64_t h = row + w.pad.h - i / w.kernel.w * w.dilation.h;
        const int64_t x = phase + w.pad.w - i % w.kernel.w * w.dilation.w;
        if (h < 0 || h % w.stride.h != 0 || h / w.stride.h >= out_.h) continue;
        if (x - divide_down(x, w.stride.w) * w.stride.w != 0) continue;
        backward_.taps.push_back({h / w.stride.h * out_.w, divide_down(x, w.stride.w), i});
      }
      counts.push_back(static_cast<int64_t>(backward_.taps.size() - before));
      backward_.lines.push_back({nullptr, 0, row * in_.w + phase, w.stride.w,
                                 divide_up(in_.w - phase, w.stride.w), 1, out_.w, 0, 0});
    }
  }
  finish(backward_, counts);
}

// To (block, kernel point, channel).
void DepthwiseConvolution::pack(const float* weights, float* packed) const {
  for (int64_t c = 0; c < in_.c; ++c) {
    for (int64_t i = 0; i < points(); ++i) {
      packed[(c / block_ * points() + i) * block_ + c % block_] = weights[c * points() + i];
    }
  }
}

void DepthwiseConvolution::convolve(const sdk::Call& call, const Lines& lines, int64_t source_plane,
                                    int64_t target_plane, const float* source, const float* weights,
                                    const Finish& finish, float* target) const {
  const auto count = static_cast<int64_t>(lines.lines.size());
  const int64_t rows = count / lines.at_once, row_floats = target_plane / rows;
  cpu::for_items(call.threads, in_.n * blocks_ * rows, target_plane * points() / rows,
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t plane = i / rows, block = plane % blocks_;
                     for (int64_t k = 0; k < lines.at_once; ++k) {
                       kernels_.convolve(
                           lines.lines[static_cast<size_t>(i % rows * lines.at_once + k)], block_,
                           source + plane * source_plane, weights + block * points() * block_,
                           finish.bias == nullptr ? nullptr : finish.bias + block * block_,
                           target + plane * target_plane);
                     }
                     float* row = target + i * row_floats;
                     if (finish.rectifies) cpu::rectify(row, row_floats);
                     if (finish.rectified == nullptr) continue;
                     cpu::pass_through_relu(finish.rectified + i * row_floats, row, row_floats);
                   }
                 });
}

void DepthwiseConvolution::forward(const sdk::Call& call, const sdk::Pass& pass) const {
  auto* packed = pass.scratch<float>();
  pack(pass.weight(0), packed);
  convolve(call, forward_, in_.h * in_.w * block_, out_.h * out_.w * block_, pass.input(0), packed,
           {bias_ ? pass.weight(1).data() : nullptr, fuses_relu_, nullptr}, pass.output(0));
}

void DepthwiseConvolution::backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
  auto* packed = pass.scratch<float>();
  pack(pass.weight(0), packed);
  convolve(call, backward_, out_.h * out_.w * block_, in_.h * in_.w * block_,
           pass.output_gradient(0), packed,
           {nullptr, false, follows_relu_ ? pass.input(0).data() : nullptr},
           pass.input_gradient(0));
}

// Of vectors that overlap, both sum up what they share.
int64_t DepthwiseConvolution::first_channel(int64_t vector) const {
  return std::min(vector % vectors_ * kernels_.lanes, block_ - kernels_.lanes);
}

// A part of the batch, for one vector of channels. `sums` are of points, then of the bias.
void DepthwiseConvolution::sum_part(int64_t vector, int64_t part, const sdk::Pass& pass,
                                    float* sums) const {
  const int64_t block = vector / vectors_, first = first_channel(vector);
  const int64_t source_plane = in_.h * in_.w * block_, plane = out_.h * out_.w * block_;
  std::fill_n(sums, sums_of_vector(), 0.0F);
  for (int64_t n = part * in_.n / parts_; n < (part + 1) * in_.n / parts_; ++n) {
    const float* x = pass.input(0).data() + (n * blocks_ + block) * source_plane + first;
    const float* dy = pass.output_gradient(0).data() + (n * blocks_ + block) * plane + first;
    for (const Line& line : forward_.lines) {
      kernels_.sum(line, block_, x, dy, sums);
      if (bias_) kernels_.sum_gradient(line, block_, dy, sums + points() * kernels_.lanes);
    }
  }
}

void DepthwiseConvolution::backward_weights(const sdk::Call& call, const sdk::Pass& pass) const {
  auto* sums = pass.scratch<float>();
  const int64_t vectors = blocks_ * vectors_, part_floats = vectors * sums_of_vector();
  cpu::for_parts(call.threads, parts_ * vectors, [&](int64_t unit) {
    sum_part(unit % vectors, unit / vectors, pass, sums + unit * sums_of_vector());
  });
  for (int64_t part = 1; part < parts_; ++part) {
    for (int64_t i = 0; i < part_floats; ++i) sums[i] += sums[part * part_floats + i];
  }
  store(pass, sums);
}

void DepthwiseConvolution::store(const sdk::Pass& pass, const float* sums) const {
  const auto put = [adds = pass.accumulate()](float& target, float sum) {
    target = adds ? target + sum : sum;
  };
  float* weights = pass.weight_gradient(0);
  float* bias = bias_ ? pass.weight_gradient(1).data() : nullptr;
  for (int64_t c = 0; c < in_.c; ++c) {
    const int64_t vector = c / block_ * vectors_ + c % block_ / kernels_.lanes;
    const float* source = sums + vector * sums_of_vector() + c % block_ - first_channel(vector);
    for (int64_t i = 0; i < points(); ++i)
      put(weights[c * points() + i], source[i * kernels_.lanes]);
    if (bias_) put(bias[c], source[points() * kernels_.lanes]);
  }
}

}  // namespace tandem::layers
