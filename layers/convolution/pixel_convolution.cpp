#include "layers/convolution/pixel_convolution.h"

#include <algorithm>
#include <utility>

#include "layers/convolution/divide.h"
#include "plugins/cpu/onednn.h"
#include "plugins/cpu/team.h"

namespace tandem::layers {
namespace {

// Not where most of a plane would be padding, most phases would have no point of the kernel, or a
// row of all channels would not fit a cache.
bool fits_planes(const Window& window, const sdk::Shape& in, int64_t channels) {
  constexpr int64_t max_stride = 8, max_row_floats = int64_t{512} << 10;
  const Axes kernel = effective_kernel(window), &stride = window.stride;
  const Axes padded{in.h + 2 * window.pad.h, in.w + 2 * window.pad.w};
  return padded.h * padded.w <= 4 * in.h * in.w && padded.w * channels <= max_row_floats &&
         stride.h <= std::min(kernel.h, max_stride) && stride.w <= std::min(kernel.w, max_stride);
}

}  // namespace

bool PixelConvolution::suits(const sdk::Binding& binding) {
  const tandem_tensor& in = binding.input(0);
  const ConvolutionSettings settings(binding.attributes, in.shape);
  const sdk::Shape out = settings.output_shape(in.shape);
  const int64_t inputs = in.shape.c / settings.group, outputs = out.c / settings.group;
  const int64_t most = std::max(inputs, outputs);
  const Axes &kernel = settings.window.kernel, &stride = settings.window.stride;
  // Products of plain matrices are as fast for kernels of one point, for few pixels, for groups of
  // many channels, and for few outputs where few points of a kernel use an input value. With
  // AVX-512, too, oneDNN is as fast for groups of 8 channels.
  constexpr int64_t min_lanes = 8, enough_pixels = 49, max_of_group = 32, block = 8;
  const bool is_fast =
      cpu::has_own_kernels_only(in.dtype) || pixel_products::kernels().lanes >= min_lanes;
  const bool can = in.dtype == TANDEM_FLOAT32 && is_fast && kernel.h * kernel.w > 1 &&
                   out.h * out.w >= enough_pixels && fits_planes(settings.window, in.shape, most);
  if (!can) return false;
  if (settings.group == 1) {
    return outputs < block && kernel.h * kernel.w >= 2 * stride.h * stride.w;
  }
  return most <= max_of_group && (inputs % block != 0 || outputs % block != 0);
}

sdk::LayoutOptions PixelConvolution::layouts(const sdk::Binding& binding) {
  const sdk::Shape& in = binding.input(0).shape;
  const ConvolutionSettings settings(binding.attributes, in);
  const int32_t blocked = cpu::blocked_layout(TANDEM_FLOAT32);
  const int64_t block = cpu::block_of(blocked, 0);
  const bool blocks_in = in.c % block == 0, blocks_out = settings.outputs % block == 0;
  if (settings.group == 1) {
    sdk::LayoutOptions options{{TANDEM_NCHW, TANDEM_NCHW, 0}, {TANDEM_NHWC, TANDEM_NHWC, 0}};
    if (blocks_in) options.insert(options.begin(), {blocked, TANDEM_NCHW, 0});
    return options;
  }
  // Copying a group reads few cache lines of blocks or planes, and those of all groups of NHWC.
  const auto bytes =
      4 * static_cast<double>(sdk::count(in) + sdk::count(settings.output_shape(in)));
  sdk::LayoutOptions options{{TANDEM_NCHW, TANDEM_NCHW, bytes},
                             {TANDEM_NHWC, TANDEM_NHWC, 3 * bytes}};
  if (blocks_in && blocks_out) options.insert(options.begin(), {blocked, blocked, 0});
  return options;
}

std::unique_ptr<PixelConvolution> PixelConvolution::make(const sdk::Binding& binding,
                                                         const sdk::Call& call) {
  if (!suits(binding)) return nullptr;
  const ConvolutionSettings settings(binding.attributes, binding.input(0).shape);
  return std::unique_ptr<PixelConvolution>(new PixelConvolution(binding, settings, call));
}

PixelConvolution::Images::Images(PixelPlanes all_planes, const Channels& all_channels,
                                 const Axes& kernel)
    : planes(std::move(all_planes)), channels(all_channels) {
  constexpr int64_t part_floats = int64_t{32} << 10;  // half of an L2 cache of 256 KiB
  const int64_t channel = planes.source_phases() * planes.source_floats;
  part_channels = std::clamp<int64_t>(part_floats / channel, 1, channels.sources);
  const int64_t parts = divide_up(channels.sources, part_channels);
  part_channels = divide_up(channels.sources, parts);
  for (int64_t phase = 0; phase < planes.target_phases(); ++phase) {
    std::vector<int64_t> here, places;
    for (int64_t i = 0; i < kernel.h * kernel.w; ++i) {
      const PixelAxis::Tap& row = planes.h.taps[static_cast<size_t>(i / kernel.w)];
      const PixelAxis::Tap& column = planes.w.taps[static_cast<size_t>(i % kernel.w)];
      if (row.target_phase * planes.w.target.phases + column.target_phase != phase) continue;
      here.push_back(i);
    }
    for (int64_t c = 0; c < part_channels; ++c) {
      for (const int64_t i : here) {
        places.push_back(c * channel +
                         planes.place(planes.h.taps[static_cast<size_t>(i / kernel.w)],
                                      planes.w.taps[static_cast<size_t>(i % kernel.w)]));
      }
    }
    points.push_back(std::move(here));
    terms.push_back(std::move(places));
  }
}

int64_t PixelConvolution::Images::parts() const {
  return divide_up(channels.sources, part_channels);
}

int64_t PixelConvolution::Images::channels_of(int64_t part) const {
  return std::min(part_channels, channels.sources - part * part_channels);
}

int64_t PixelConvolution::Images::source_floats() const {
  return part_channels * planes.source_phases() * planes.source_floats;
}

int64_t PixelConvolution::Images::phase_floats() const {
  return channels.targets * planes.target_floats;
}

int64_t PixelConvolution::Images::slot_floats() const {
  return source_floats() + planes.target_phases() * phase_floats();
}

PixelConvolution::PixelConvolution(const sdk::Binding& binding, const ConvolutionSettings& settings,
                                   const sdk::Call& call)
    : kernels_(pixel_products::kernels()),
      in_(cpu::named_as(binding.input(0), binding.output(0))),
      out_(cpu::named_as(binding.output(0), binding.input(0))),
      window_(settings.window),
      groups_(settings.group),
      inputs_(in_.shape.c / settings.group),
      outputs_(out_.shape.c / settings.group),
      bias_(settings.bias),
      slots_(std::max(1, call.threads)) {
  const Window& w = window_;
  const auto planes = [&](auto make_axis) {
    return PixelPlanes(
        make_axis(w.kernel.h, w.stride.h, w.pad.h, w.dilation.h, in_.shape.h, out_.shape.h),
        make_axis(w.kernel.w, w.stride.w, w.pad.w, w.dilation.w, in_.shape.w, out_.shape.w),
        kernels_.lanes);
  };
  forward_ =
      std::make_unique<Images>(planes(PixelAxis::forward),
                               Channels{inputs_, outputs_, points(), inputs_ * points()}, w.kernel);
  int64_t floats = weights() + slots_ * forward_->slot_floats();
  if (binding.has(TANDEM_WANTS_BACKWARD_DATA)) {
    backward_ = std::make_unique<Images>(planes(PixelAxis::backward),
                                         Channels{outputs_, inputs_, inputs_ * points(), points()},
                                         w.kernel);
    floats = std::max(floats, weights() + slots_ * backward_->slot_floats());
  }
  constexpr int64_t enough_units = 16, max_floats = int64_t{4} << 20;
  parts_ = std::min(std::max<int64_t>(1, in_.shape.n) * forward_->planes.bands,
                    divide_up(enough_units, groups_));
  parts_ = std::clamp<int64_t>(max_floats / (weights() + out_.shape.c), 1, parts_);
  if (binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS)) {
    floats =
        std::max(floats, parts_ * (weights() + out_.shape.c) + slots_ * gradient_slot_floats());
  }
  scratch_bytes = floats * static_cast<int64_t>(sizeof(float));
  algorithm = sdk::text("direct by vectors of pixels, ", kernels_.instructions);
}

// ---- images

// To (target phase, group, part of the source channels, block of target channels, source channel,
// point, target channel).
void PixelConvolution::pack(const Images& images, const float* weights, float* packed) const {
  const Channels& c = images.channels;
  for (const std::vector<int64_t>& of_phase : images.points) {
    for (int64_t group = 0; group < groups_; ++group) {
      const float* of_group = weights + group * outputs_ * inputs_ * points();
      for (int64_t part = 0; part < images.parts(); ++part) {
        const int64_t first = part * images.part_channels, last = first + images.channels_of(part);
        for (int64_t block = 0; block < c.targets; block += pixel_products::channels_at_once) {
          const int64_t end = std::min(block + pixel_products::channels_at_once, c.targets);
          for (int64_t source = first; source < last; ++source) {
            for (const int64_t point : of_phase) {
              for (int64_t target = block; target < end; ++target) {
                *packed++ = of_group[source * c.source_stride + target * c.target_stride + point];
              }
            }
          }
        }
      }
    }
  }
}

// A unit is a band of a group of an image.
void PixelConvolution::convolve(const sdk::Call& call, const sdk::Pass& pass, const Images& images,
                                const cpu::Placement& from, const float* source,
                                const cpu::Placement& to, const float* bias, float* target) const {
  auto* packed = pass.scratch<float>();
  pack(images, pass.weight(0), packed);
  const int64_t units = in_.shape.n * groups_ * images.planes.bands;
  const int64_t slots = std::min<int64_t>({slots_, std::max(1, call.threads), units});
  cpu::for_parts(call.threads, slots, [&](int64_t slot) {
    float* planes = packed + weights() + slot * images.slot_floats();
    for (int64_t unit = slot * units / slots; unit < (slot + 1) * units / slots; ++unit) {
      convolve_band(images, unit, from, source, packed, to, bias, target, planes);
    }
  });
}

void PixelConvolution::convolve_band(const Images& images, int64_t unit, const cpu::Placement& from,
                                     const float* source, const float* packed,
                                     const cpu::Placement& to, const float* bias, float* target,
                                     float* slot) const {
  const PixelPlanes& planes = images.planes;
  const Channels& channels = images.channels;
  const int64_t band = unit % planes.bands, group = unit / planes.bands % groups_;
  const int64_t image = unit / planes.bands / groups_;
  float* targets = slot + images.source_floats();
  for (int64_t part = 0; part < images.parts(); ++part) {
    const int64_t first = part * images.part_channels, count = images.channels_of(part);
    load_source(planes, band, {from, group * channels.sources + first, count},
                source + image * from.row_size(), slot);
    const float* weights = packed;
    for (size_t phase = 0; phase < images.points.size(); ++phase) {
      const auto points = static_cast<int64_t>(images.points[phase].size());
      const int64_t group_floats = channels.sources * points * channels.targets;
      kernels_.convolve({slot, images.terms[phase].data(), count * points,
                         weights + group * group_floats + first * points * channels.targets,
                         channels.targets,
                         targets + static_cast<int64_t>(phase) * images.phase_floats(),
                         planes.target_floats, planes.vectors_of(band, kernels_.lanes), part > 0});
      weights += groups_ * group_floats;
    }
  }
  store_target(planes, band, {to, group * channels.targets, channels.targets}, targets,
               images.phase_floats(), bias, target + image * to.row_size());
}

void PixelConvolution::forward(const sdk::Call& call, const sdk::Pass& pass) const {
  convolve(call, pass, *forward_, in_, pass.input(0), out_, bias_ ? pass.weight(1).data() : nullptr,
           pass.output(0));
}

void PixelConvolution::backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
  convolve(call, pass, *backward_, out_, pass.output_gradient(0), in_, nullptr,
           pass.input_gradient(0));
}

// ---- weight gradients

int64_t PixelConvolution::gradient_slot_floats() const {
  return forward_->source_floats() + outputs_ * forward_->planes.target_floats;
}

void PixelConvolution::sum_band(int64_t group, int64_t image, int64_t band, const sdk::Pass& pass,
                                float* slot, float* sums) const {
  const PixelPlanes& planes = forward_->planes;
  const int64_t vectors = planes.vectors_of(band, kernels_.lanes);
  float* gradients = slot + forward_->source_floats();
  load_target(planes, band, {out_, group * outputs_, outputs_},
              pass.output_gradient(0).data() + image * out_.row_size(), gradients);
  for (int64_t i = 0; bias_ && i < outputs_; ++i) {
    sums[weights() + group * outputs_ + i] +=
        kernels_.sum(gradients + i * planes.target_floats, vectors);
  }
  for (int64_t part = 0; part < forward_->parts(); ++part) {
    const int64_t first = part * forward_->part_channels, count = forward_->channels_of(part);
    load_source(planes, band, {in_, group * inputs_ + first, count},
                pass.input(0).data() + image * in_.row_size(), slot);
    kernels_.correlate({slot, forward_->terms[0].data(), count * points(), gradients,
                        planes.target_floats, outputs_, vectors,
                        sums + group * outputs_ * inputs_ * points() + first * points(),
                        inputs_ * points()});
  }
}

// A unit is a part of all images' bands, for one group.
void PixelConvolution::sum_part(int64_t unit, const sdk::Pass& pass, float* slot,
                                float* sums) const {
  const int64_t group = unit % groups_, part = unit / groups_;
  float* of_part = sums + part * (weights() + out_.shape.c);
  const int64_t group_weights = outputs_ * inputs_ * points();
  std::fill_n(of_part + group * group_weights, group_weights, 0.0F);
  std::fill_n(of_part + weights() + group * outputs_, outputs_, 0.0F);
  const int64_t bands = forward_->planes.bands, all = in_.shape.n * bands;
  for (int64_t i = part * all / parts_; i < (part + 1) * all / parts_; ++i) {
    sum_band(group, i / bands, i % bands, pass, slot, of_part);
  }
}

void PixelConvolution::backward_weights(const sdk::Call& call, const sdk::Pass& pass) const {
  auto* sums = pass.scratch<float>();
  const int64_t part_floats = weights() + out_.shape.c, units = parts_ * groups_;
  float* planes = sums + parts_ * part_floats;
  const int64_t slots = std::min<int64_t>({slots_, std::max(1, call.threads), units});
  cpu::for_parts(call.threads, slots, [&](int64_t slot) {
    for (int64_t unit = slot * units / slots; unit < (slot + 1) * units / slots; ++unit) {
      sum_part(unit, pass, planes + slot * gradient_slot_floats(), sums);
    }
  });
  for (int64_t part = 1; part < parts_; ++part) {
    for (int64_t i = 0; i < part_floats; ++i) sums[i] += sums[part * part_floats + i];
  }
  store(pass, sums);
}

void PixelConvolution::store(const sdk::Pass& pass, const float* sums) const {
  const auto put = [adds = pass.accumulate()](float* target, const float* source, int64_t count) {
    for (int64_t i = 0; i < count; ++i) target[i] = adds ? target[i] + source[i] : source[i];
  };
  put(pass.weight_gradient(0), sums, weights());
  if (bias_) put(pass.weight_gradient(1), sums + weights(), out_.shape.c);
}

}  // namespace tandem::layers
