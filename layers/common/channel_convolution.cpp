#include "layers/common/channel_convolution.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "plugins/cpu/team.h"

namespace tandem::layers {
namespace {

// Indexes of a band, if an image has as many: they share what is read of the weights.
constexpr int64_t band_indexes = 128;
// Steps of a product, whose vectors stay in the L1 cache.
constexpr int64_t steps_at_once = 384;
// Taps that a thread sums up at a time: whole blocks of the products' rows.
constexpr int64_t unit_taps = 24;

int64_t divide_up(int64_t count, int64_t by) {
  return (count + by - 1) / by;
}

// Sets `low` and `high`.
void find_shifts(ChannelAxis& axis) {
  axis.low = std::numeric_limits<int64_t>::max();
  axis.high = std::numeric_limits<int64_t>::min();
  for (const ChannelAxis::Phase& phase : axis.phases) {
    if (phase.points.empty()) continue;
    const auto last = static_cast<int64_t>(phase.points.size()) - 1;
    axis.low = std::min(axis.low, phase.shift);
    axis.high = std::max(axis.high, phase.shift + last * phase.distance);
  }
  if (axis.low > axis.high) axis.low = axis.high = 0;
}

// Calls body(channel, count) for parts of the channels that are next to each other in memory.
template <class Body>
void for_runs(const cpu::Placement& tensor, int64_t first, int64_t last, const Body& body) {
  while (first < last) {
    const int64_t count = std::min(last - first, tensor.block - first % tensor.block);
    body(first, count);
    first += count;
  }
}

// Images of one pixel have the same memory in every layout: all channels are next to each other.
cpu::Placement placement_of(tandem_tensor tensor) {
  if (tensor.shape.h * tensor.shape.w == 1) tensor.layout = TANDEM_NHWC;
  return cpu::Placement(tensor);
}

}  // namespace

ChannelAxis ChannelAxis::forward(const Extents& e) {
  ChannelAxis axis{{Phase{{}, -e.pad, e.dilation, e.outputs}}, e.stride, 1, 0, 0, e.inputs};
  for (int64_t i = 0; i < e.kernel; ++i) axis.phases[0].points.push_back(i);
  find_shifts(axis);
  return axis;
}

ChannelAxis ChannelAxis::backward(const Extents& e) {
  ChannelAxis axis{{}, 1, e.stride, 0, 0, e.outputs};
  for (int64_t i = 0; i < std::min(e.stride, e.inputs); ++i) {
    Phase phase{{}, 0, 0, divide_up(e.inputs - i, e.stride)};
    int64_t before = 0;
    for (int64_t k = e.kernel - 1; k >= 0; --k) {
      const int64_t place = i + e.pad - k * e.dilation;
      if (place % e.stride != 0) continue;
      if (phase.points.empty()) phase.shift = place / e.stride;
      if (phase.points.size() == 1) phase.distance = place / e.stride - before;
      before = place / e.stride;
      phase.points.push_back(k);
    }
    axis.phases.push_back(std::move(phase));
  }
  find_shifts(axis);
  return axis;
}

int64_t ChannelConvolution::Images::rows_of(int64_t band) const {
  return std::min(rows, h.count() - band * rows);
}

int64_t ChannelConvolution::Images::copied_floats() const {
  return is_copied ? h.reach(rows) * pitch : 0;
}

ChannelConvolution::ChannelConvolution(const tandem_tensor& in, const tandem_tensor& out,
                                       const Window& window, int64_t groups, const Passes& passes,
                                       int32_t threads)
    : kernels_(vector_products::kernels()),
      in_(placement_of(in)),
      out_(placement_of(out)),
      window_(window),
      groups_(groups),
      inputs_(in.shape.c / groups),
      outputs_(out.shape.c / groups),
      slots_(std::max(1, threads)),
      forward_(make_images(ChannelAxis::forward(extents_h()), ChannelAxis::forward(extents_w()),
                           in_, out_)),
      backward_(make_images(ChannelAxis::backward(extents_h()), ChannelAxis::backward(extents_w()),
                            out_, in_)) {
  forward_.source_stride = backward_.target_stride = points();
  forward_.target_stride = backward_.source_stride = inputs_ * points();
  int64_t floats = 0;
  const auto take = [&](bool wanted, int64_t count) {
    if (wanted) floats = std::max(floats, count);
  };
  take(passes.forward, packed_floats(forward_) + slots_ * slot_floats(forward_));
  take(passes.backward, packed_floats(backward_) + slots_ * slot_floats(backward_));
  take(passes.weights, sum_floats() + slots_ * sum_slot_floats());
  scratch_bytes_ = floats * static_cast<int64_t>(sizeof(float));
  if (!passes.weights) return;
  for (int64_t i = 0; i < points(); ++i) {
    const int64_t row = i / window.kernel.w, column = i % window.kernel.w;
    for (int64_t c = 0; c < inputs_; ++c) {
      taps_.push_back(row * window.dilation.h * forward_.pitch +
                      column * window.dilation.w * forward_.pixel + c);
    }
  }
}

ChannelAxis::Extents ChannelConvolution::extents_h() const {
  return {window_.kernel.h,   window_.stride.h, window_.pad.h,
          window_.dilation.h, in_.shape.h,      out_.shape.h};
}

ChannelAxis::Extents ChannelConvolution::extents_w() const {
  return {window_.kernel.w,   window_.stride.w, window_.pad.w,
          window_.dilation.w, in_.shape.w,      out_.shape.w};
}

ChannelConvolution::Images ChannelConvolution::make_images(ChannelAxis h, ChannelAxis w,
                                                           const cpu::Placement& from,
                                                           const cpu::Placement& to) const {
  const bool is_copied = from.block != from.shape.c || !h.stays_inside() || !w.stays_inside();
  const int64_t sources = from.shape.c / groups_, targets = to.shape.c / groups_;
  const int64_t pixel = is_copied ? sources : from.shape.c;
  const int64_t pitch = pixel * (is_copied ? w.reach(w.count()) : from.shape.w);
  const int64_t most = std::clamp<int64_t>(band_indexes / w.count(), 1, h.count());
  const int64_t rows = divide_up(h.count(), divide_up(h.count(), most));
  const int64_t bands = divide_up(h.count(), rows);
  std::vector<int64_t> places;
  for (int64_t i = 0; i < rows * w.count(); ++i) {
    places.push_back(i / w.count() * h.source_step * pitch + i % w.count() * w.source_step * pixel);
  }
  return {from, to,        std::move(h), std::move(w), sources, targets, 0,
          0,    is_copied, pixel,        pitch,        rows,    bands,   std::move(places)};
}

ChannelConvolution::Terms ChannelConvolution::terms_of(const Images& images,
                                                       const ChannelAxis::Phase& h,
                                                       const ChannelAxis::Phase& w) {
  const auto lines = static_cast<int64_t>(h.points.size());
  const auto columns = static_cast<int64_t>(w.points.size());
  const int64_t first =
      (h.shift - images.h.low) * images.pitch + (w.shift - images.w.low) * images.pixel;
  const int64_t line = h.distance * images.pitch, column = w.distance * images.pixel;
  if (columns > 1 && column == images.sources) {
    return {lines, 1, columns * images.sources, first, line, column};
  }
  return {lines, columns, images.sources, first, line, column};
}

std::string ChannelConvolution::name() const {
  return sdk::text("direct by vectors of channels, ", kernels_.instructions);
}

// ---- vectors of a group's channels, and panels of them

int64_t ChannelConvolution::chunks(int64_t channels) const {
  return divide_up(channels, kernels_.lanes);
}

int64_t ChannelConvolution::panels(int64_t channels) const {
  return divide_up(chunks(channels), kernels_.panel);
}

// Panels whose widths differ by at most one vector.
int64_t ChannelConvolution::first_chunk(int64_t channels, int64_t panel) const {
  return panel * chunks(channels) / panels(channels);
}

// ---- images

int64_t ChannelConvolution::packed_floats(const Images& images) const {
  return groups_ * points() * images.sources * chunks(images.targets) * kernels_.lanes;
}

int64_t ChannelConvolution::slot_floats(const Images& images) const {
  const int64_t indexes = images.rows * images.w.count();
  return images.copied_floats() + indexes * chunks(images.targets) * kernels_.lanes;
}

// To (phase, group, panel, point, source channel, target channel of the panel).
void ChannelConvolution::pack(int32_t threads, const Images& images, const float* weights,
                              float* packed) const {
  const int64_t count = panels(images.targets);
  cpu::for_parts(threads, groups_ * count, [&](int64_t part) {
    pack_panel(images, part / count, part % count, weights, packed);
  });
}

void ChannelConvolution::pack_panel(const Images& images, int64_t group, int64_t panel,
                                    const float* weights, float* packed) const {
  const int64_t lanes = kernels_.lanes, all = chunks(images.targets);
  const int64_t chunk = first_chunk(images.targets, panel), first = chunk * lanes;
  const int64_t width = (first_chunk(images.targets, panel + 1) - chunk) * lanes;
  const int64_t count = std::min(width, images.targets - first);
  const float* of_group = weights + group * outputs_ * inputs_ * points();
  for (const ChannelAxis::Phase& h : images.h.phases) {
    for (const ChannelAxis::Phase& w : images.w.phases) {
      const auto columns = static_cast<int64_t>(w.points.size());
      const int64_t taps = static_cast<int64_t>(h.points.size()) * columns;
      float* target = packed + (group * all + chunk) * lanes * taps * images.sources;
      for (int64_t i = 0; i < taps; ++i) {
        const int64_t point = h.points[static_cast<size_t>(i / columns)] * window_.kernel.w +
                              w.points[static_cast<size_t>(i % columns)];
        for (int64_t c = 0; c < images.sources; ++c, target += width) {
          const float* source =
              of_group + c * images.source_stride + first * images.target_stride + point;
          for (int64_t k = 0; k < count; ++k) target[k] = source[k * images.target_stride];
          std::fill(target + count, target + width, 0.0F);
        }
      }
      packed += groups_ * all * lanes * taps * images.sources;
    }
  }
}

void ChannelConvolution::forward(int32_t threads, const float* in, const float* weights,
                                 const float* bias, float* out, float* scratch) const {
  convolve(threads, forward_, in, weights, bias, out, scratch);
}

void ChannelConvolution::backward(int32_t threads, const float* out, const float* weights,
                                  const float* bias, float* in, float* scratch) const {
  convolve(threads, backward_, out, weights, bias, in, scratch);
}

// Where there are fewer bands than threads, panels are divided, too.
void ChannelConvolution::convolve(int32_t threads, const Images& images, const float* source,
                                  const float* weights, const float* bias, float* target,
                                  float* scratch) const {
  pack(threads, images, weights, scratch);
  const int64_t most = std::min<int64_t>(slots_, std::max(1, threads));
  const int64_t bands = images.from.shape.n * groups_ * images.bands;
  const int64_t count = panels(images.targets);
  const int64_t parts = std::min(count, divide_up(most, bands));
  const int64_t units = bands * parts, slots = std::min(most, units);
  cpu::for_parts(threads, slots, [&](int64_t slot) {
    float* memory = scratch + packed_floats(images) + slot * slot_floats(images);
    for (int64_t i = slot * units / slots; i < (slot + 1) * units / slots; ++i) {
      const int64_t part = i % parts, band = i / parts;
      const Unit unit{band / images.bands / groups_, band / images.bands % groups_,
                      band % images.bands, part * count / parts, (part + 1) * count / parts};
      convolve_unit(images, unit, source, scratch, bias, target, memory);
    }
  });
}

// The source of a band's first index, with the channels of the group.
const float* ChannelConvolution::source_of(const Images& images, const Unit& unit,
                                           const float* source, float* copied) const {
  const cpu::Placement& from = images.from;
  const int64_t first = unit.group * images.sources, last = first + images.sources;
  const int64_t top = unit.band * images.rows * images.h.source_step + images.h.low;
  const int64_t left = images.w.low;
  const float* image = source + unit.image * from.row_size();
  if (!images.is_copied) return image + top * images.pitch + left * images.pixel + first;
  const int64_t columns = images.pitch / images.pixel, pixel = images.pixel;
  const int64_t begin = std::clamp<int64_t>(-left, 0, columns);
  const int64_t end = std::clamp<int64_t>(from.shape.w - left, begin, columns);
  for (int64_t i = 0; i < images.h.reach(images.rows_of(unit.band)); ++i) {
    float* line = copied + i * images.pitch;
    if (top + i < 0 || top + i >= from.shape.h || begin == end) {
      std::fill_n(line, images.pitch, 0.0F);
      continue;
    }
    std::fill_n(line, begin * pixel, 0.0F);
    std::fill_n(line + end * pixel, (columns - end) * pixel, 0.0F);
    for_runs(from, first, last, [&](int64_t channel, int64_t count) {
      const float* values = image + from.offset(channel, top + i, left + begin);
      float* target = line + begin * pixel + channel - first;
      for (int64_t k = begin; k < end; ++k, values += from.block, target += pixel) {
        std::copy_n(values, count, target);
      }
    });
  }
  return copied;
}

void ChannelConvolution::convolve_unit(const Images& images, const Unit& unit, const float* source,
                                       const float* packed, const float* bias, float* target,
                                       float* slot) const {
  const int64_t lanes = kernels_.lanes, all = chunks(images.targets);
  const float* values = source_of(images, unit, source, slot);
  float* sums = slot + images.copied_floats();
  for (const ChannelAxis::Phase& h : images.h.phases) {
    for (const ChannelAxis::Phase& w : images.w.phases) {
      const Terms terms = terms_of(images, h, w);
      const int64_t count = terms.lines * terms.columns * terms.steps;
      for (int64_t panel = unit.first_panel; panel < unit.last_panel; ++panel) {
        const int64_t chunk = first_chunk(images.targets, panel);
        const int64_t width = (first_chunk(images.targets, panel + 1) - chunk) * lanes;
        multiply(images, terms, images.rows_of(unit.band) * images.w.count(), values,
                 packed + (unit.group * all + chunk) * lanes * count, width, sums);
        store(images, unit,
              {h.count, w.count, &h - images.h.phases.data(), &w - images.w.phases.data(),
               chunk * lanes, width},
              sums, bias, target);
      }
      packed += groups_ * all * lanes * count;
    }
  }
}

void ChannelConvolution::multiply(const Images& images, const Terms& terms, int64_t row_count,
                                  const float* source, const float* weights, int64_t width,
                                  float* sums) const {
  const int64_t parts = divide_up(terms.steps, steps_at_once);
  const int64_t part = divide_up(terms.steps, parts);
  const int64_t lines = std::max<int64_t>(1, steps_at_once / terms.steps);
  bool adds = false;
  for (int64_t column = 0; column < terms.columns; ++column) {
    for (int64_t line = 0; line < terms.lines; line += lines) {
      for (int64_t step = 0; step < terms.steps; step += part) {
        const float* vectors =
            weights + ((line * terms.columns + column) * terms.steps + step) * width;
        kernels_.multiply({source + terms.first + line * terms.line + column * terms.column + step,
                           terms.line, 1, images.places.data(), row_count, vectors,
                           terms.columns * terms.steps * width, width, kernels_.lanes,
                           std::min(lines, terms.lines - line), std::min(part, terms.steps - step),
                           width / kernels_.lanes, sums, adds});
        adds = true;
      }
    }
  }
  if (!adds) std::fill_n(sums, row_count * width, 0.0F);
}

// The sums of a panel, to the pixels of a phase.
void ChannelConvolution::store(const Images& images, const Unit& unit, const PhasePanel& panel,
                               const float* sums, const float* bias, float* target) const {
  const cpu::Placement& to = images.to;
  const int64_t first = unit.group * images.targets + panel.first;
  const int64_t last =
      unit.group * images.targets + std::min(panel.first + panel.width, images.targets);
  const int64_t row = unit.band * images.rows;
  const int64_t rows = std::min(images.rows_of(unit.band), panel.h_count - row);
  float* image = target + unit.image * to.row_size();
  for_runs(to, first, last, [&](int64_t channel, int64_t count) {
    const float* added = bias == nullptr ? nullptr : bias + channel;
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t line = (row + i) * images.h.target_step + panel.h_phase;
      float* pixel = image + to.offset(channel, line, panel.w_phase);
      const float* values = sums + i * images.w.count() * panel.width + channel - first;
      for (int64_t k = 0; k < panel.w_count; ++k) {
        if (added == nullptr) {
          std::copy_n(values, count, pixel);
        } else {
          for (int64_t c = 0; c < count; ++c) pixel[c] = values[c] + added[c];
        }
        pixel += images.w.target_step * to.block;
        values += panel.width;
      }
    }
  });
}

// ---- weight gradients

// To (group, panel, tap, channel of the panel).
int64_t ChannelConvolution::sum_floats() const {
  return groups_ * points() * inputs_ * chunks(outputs_) * kernels_.lanes;
}

int64_t ChannelConvolution::sum_slot_floats() const {
  const int64_t pixels = forward_.rows * forward_.w.count();
  return forward_.copied_floats() + pixels * kernels_.panel * kernels_.lanes;
}

// A unit is some taps of a panel. Each thread goes through all bands for its units.
void ChannelConvolution::correlate(int32_t threads, const float* in, const float* out, bool adds,
                                   float* gradient, float* scratch) const {
  const int64_t taps = points() * inputs_;
  const int64_t units = groups_ * panels(outputs_) * divide_up(taps, unit_taps);
  const int64_t slots = std::min<int64_t>({slots_, std::max(1, threads), units});
  cpu::for_parts(threads, slots, [&](int64_t slot) {
    float* memory = scratch + sum_floats() + slot * sum_slot_floats();
    const int64_t first = slot * units / slots, last = (slot + 1) * units / slots;
    for (int64_t i = 0; i < in_.shape.n * forward_.bands; ++i) {
      add_band(first, last, i / forward_.bands, i % forward_.bands, in, out, scratch, memory);
    }
  });
  store_gradient(threads, scratch, adds, gradient);
}

void ChannelConvolution::add_band(int64_t first, int64_t last, int64_t image, int64_t band,
                                  const float* in, const float* out, float* sums,
                                  float* slot) const {
  const Images& images = forward_;
  const int64_t taps = points() * inputs_, of_panel = divide_up(taps, unit_taps);
  const int64_t lanes = kernels_.lanes, columns = images.w.count();
  float* vectors = slot + images.copied_floats();
  const float* source = nullptr;
  int64_t group = -1, panel = -1;  // of what is copied
  for (int64_t unit = first; unit < last; ++unit) {
    if (unit / of_panel / panels(outputs_) != group) {
      group = unit / of_panel / panels(outputs_);
      source = source_of(images, {image, group, band, 0, 0}, in, slot);
      panel = -1;
    }
    const int64_t chunk = first_chunk(outputs_, unit / of_panel % panels(outputs_));
    const int64_t width =
        (first_chunk(outputs_, unit / of_panel % panels(outputs_) + 1) - chunk) * lanes;
    if (unit / of_panel != panel) {
      panel = unit / of_panel;
      copy_pixels({image, group, band, 0, 0}, chunk * lanes, width, out, vectors);
    }
    const int64_t tap = unit % of_panel * unit_taps;
    kernels_.multiply({source, images.h.source_step * images.pitch,
                       images.w.source_step * images.pixel, taps_.data() + tap,
                       std::min(unit_taps, taps - tap), vectors, columns * width, width, lanes,
                       images.rows_of(band), columns, width / lanes,
                       sums + ((group * chunks(outputs_) + chunk) * taps) * lanes + tap * width,
                       image > 0 || band > 0});
  }
}

// Pixels of a band, with channels of `out` from `first` of the group on, and zeros beyond.
void ChannelConvolution::copy_pixels(const Unit& unit, int64_t first, int64_t width,
                                     const float* out, float* target) const {
  const int64_t count = std::min(width, outputs_ - first);
  const int64_t channel = unit.group * outputs_ + first, columns = out_.shape.w;
  const int64_t row = unit.band * forward_.rows;
  const int64_t pixels = forward_.rows_of(unit.band) * columns;
  const float* image = out + unit.image * out_.row_size();
  for_runs(out_, channel, channel + count, [&](int64_t from, int64_t run) {
    const float* values = image + out_.offset(from, row, 0);
    float* place = target + from - channel;
    for (int64_t i = 0; i < pixels; ++i, values += out_.block, place += width) {
      std::copy_n(values, run, place);
    }
  });
  if (count == width) return;
  for (int64_t i = 0; i < pixels; ++i) std::fill_n(target + i * width + count, width - count, 0.0F);
}

void ChannelConvolution::store_gradient(int32_t threads, const float* sums, bool adds,
                                        float* gradient) const {
  const int64_t taps = points() * inputs_, lanes = kernels_.lanes, count = panels(outputs_);
  cpu::for_parts(threads, groups_ * count, [&](int64_t part) {
    const int64_t group = part / count, chunk = first_chunk(outputs_, part % count);
    const int64_t width = (first_chunk(outputs_, part % count + 1) - chunk) * lanes;
    const float* of_panel = sums + (group * chunks(outputs_) + chunk) * taps * lanes;
    for (int64_t k = 0; k < std::min(width, outputs_ - chunk * lanes); ++k) {
      float* target = gradient + (group * outputs_ + chunk * lanes + k) * taps;
      for (int64_t c = 0; c < inputs_; ++c) {
        for (int64_t i = 0; i < points(); ++i, ++target) {
          const float sum = of_panel[(i * inputs_ + c) * width + k];
          *target = adds ? *target + sum : sum;
        }
      }
    }
  });
}

}  // namespace tandem::layers
