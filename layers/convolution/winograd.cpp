#include "layers/convolution/winograd.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "layers/convolution/divide.h"
#include "plugins/cpu/layout.h"
#include "plugins/cpu/onednn.h"
#include "plugins/cpu/team.h"

namespace tandem::layers {

using winograd::algorithms;
using winograd::Channels;
using winograd::Finish;
using winograd::Grid;
using winograd::Range;
using winograd::Transformed;
using winograd::Weights;

namespace {

// Working memory of a part of the tiles. One that is small enough stays in the caches. But each
// part reads all weights or adds to all of their sums, which takes long if it has few tiles: it has
// `tiles` of them, unless these need more than `max_bytes`.
struct PartSize {
  int64_t bytes, tiles, max_bytes;
};
// Of one thread, and of all together. CPUs with AVX-512 have larger caches.
PartSize thread_part(int64_t lanes) {
  constexpr int64_t most = int64_t{4} << 20;
  return {(lanes > 8 ? int64_t{1024} : int64_t{512}) << 10, 48, most};
}
PartSize shared_part(int64_t lanes) {
  constexpr int64_t most = int64_t{16} << 20;
  return {lanes > 8 ? most : int64_t{4} << 20, 256, most};
}
constexpr int64_t word = 4;  // bytes
constexpr float infinity = std::numeric_limits<float>::infinity();

Grid grid_of(const sdk::Shape& outputs, int64_t step, int64_t distance) {
  const auto tiles = [&](int64_t pixels) {
    return distance * divide_up(divide_up(pixels, distance), step);
  };
  return {tiles(outputs.h), tiles(outputs.w), step, 0, 0, distance};
}

int64_t tiles_of(const sdk::Shape& outputs, int64_t step, int64_t distance) {
  const Grid grid = grid_of(outputs, step, distance);
  return outputs.n * grid.rows * grid.columns;
}

// Of one output channel and folded input channel.
double products_of(const winograd::Algorithm& algorithm, const sdk::Shape& outputs,
                   int64_t distance) {
  return static_cast<double>(tiles_of(outputs, algorithm.outputs, distance)) *
         static_cast<double>(algorithm.values());
}

// What computes a convolution.
struct Choice {
  int algorithm;  // -1: none has the kernel
  int64_t fold;
  double products;
};

// The algorithm with the fewest products for these outputs.
Choice best_choice(const Window& window, const sdk::Shape& outputs) {
  Choice best{-1, window.stride.h, 0};
  for (int i = 0; i < winograd::algorithm_count; ++i) {
    if (algorithms[i].kernel != divide_up(window.kernel.h, best.fold)) continue;
    const double products = products_of(algorithms[i], outputs, window.dilation.h);
    if (best.algorithm < 0 || products < best.products) best = {i, best.fold, products};
  }
  return best;
}

// The channels of a group, folded.
int64_t folded_channels(const Choice& choice, const sdk::Shape& in,
                        const ConvolutionSettings& settings) {
  return in.c / settings.group * choice.fold * choice.fold;
}

// How many products of direct convolution there are for one of the choice, whose channels are
// `channels`.
double savings(const Choice& choice, const sdk::Shape& in, const ConvolutionSettings& settings,
               int64_t channels) {
  return settings.operations(in) / 2 / static_cast<double>(settings.outputs) /
         (choice.products * static_cast<double>(channels));
}

// For the few channels of a first layer, whose gradient by the input nobody wants. Folded channels
// fill whole vectors. Gathering patches takes time, too: with 3.2 times fewer products AlexNet's
// conv1 takes 0.7 of the time (docs/reports/performance.md).
bool is_worth_folding(const sdk::Binding& binding, const Choice& choice, const sdk::Shape& in,
                      const ConvolutionSettings& settings) {
  if (binding.has(TANDEM_WANTS_BACKWARD_DATA) || in.c / settings.group > 4) return false;
  const int64_t channels = folded_channels(choice, in, settings);
  const int64_t lanes = winograd::kernels().lanes, filled = divide_up(channels, lanes) * lanes;
  constexpr int64_t enough_channels = 12;
  return channels >= enough_channels && savings(choice, in, settings, filled) >= 2.5;
}

// Where a dilation leaves few pixels to each of its images, tiles are mostly empty: those of the
// output, and those of the input for its gradient. oneDNN has direct kernels with dilations for
// AVX-512.
bool is_worth_dilating(const Choice& choice, const sdk::Shape& in, const sdk::Shape& out,
                       const ConvolutionSettings& settings) {
  const int64_t distance = settings.window.dilation.h;
  if (choice.fold > 1 || distance > std::max(out.h, out.w)) return false;
  Choice backward = choice;
  backward.products = products_of(algorithms[choice.algorithm], in, distance);
  const int64_t channels = in.c / settings.group;
  const double least = winograd::kernels().lanes > 8 ? 2 : 1.2;
  return savings(choice, in, settings, channels) >= least &&
         savings(backward, in, settings, channels) >= least;
}

// Highway's kernels for AVX-512 need some instructions more than oneDNN's.
bool multiplies_bfloat16() {
  return cpu::may_use(dnnl::cpu_isa::avx512_core_bf16) &&
         winograd::kernels().bfloat16.depths_in_word > 0;
}

// Tiles compute direct convolutions faster.
bool transforms_bfloat16() {
  return cpu::has_bfloat16() && !cpu::multiplies_tiles(TANDEM_BFLOAT16);
}

// With products in bfloat16, to transform a value takes the time of 40 products. Without them,
// direct convolutions take longer than those in float32.
bool is_worth_rounding(const Choice& choice, const sdk::Shape& in,
                       const ConvolutionSettings& settings) {
  if (!multiplies_bfloat16()) return true;
  const int64_t lanes = winograd::kernels().lanes;
  const int64_t inputs = in.c / settings.group, outputs = settings.outputs / settings.group;
  constexpr double products = 40;
  const double transforms =
      products * (1 / static_cast<double>(inputs) + 1 / static_cast<double>(outputs));
  return savings(choice, in, settings, divide_up(inputs, lanes) * lanes) > 1 + transforms;
}

// Tensors in bfloat16 are widened to float32 where the CPU has no products in bfloat16: oneDNN's
// take longer there than those in float32.
const winograd::Arithmetic& arithmetic_of(int32_t dtype) {
  const winograd::Kernels& kernels = winograd::kernels();
  return dtype == TANDEM_BFLOAT16 && multiplies_bfloat16() ? kernels.bfloat16 : kernels.float32;
}

Channels channels_of(const tandem_tensor& tensor, int64_t groups, int64_t fold) {
  const sdk::Shape& s = tensor.shape;
  const int64_t count = s.c / groups * fold * fold;
  return {cpu::block_of(tensor.layout, s.c), s.h, s.w, 0, count, s.c * s.h * s.w, fold};
}

Channels of_group(Channels channels, int64_t group) {
  channels.first = group * channels.count;
  return channels;
}

// How many of all tiles, which need `tile` bytes each, are a part: so that parts differ little, and
// a product's rows are whole blocks.
int64_t part_of(int64_t tiles, const PartSize& size, int64_t tile, int64_t row_block) {
  const int64_t enough = std::min(size.tiles, size.max_bytes / tile);
  const int64_t most = std::max({size.bytes / tile, enough, 2 * row_block});
  const int64_t parts = divide_up(tiles, most);
  return divide_up(divide_up(tiles, parts), row_block) * row_block;
}

}  // namespace

bool WinogradConvolution::suits(const sdk::Binding& binding) {
  const sdk::Shape& in = binding.input(0).shape;
  const ConvolutionSettings settings(binding.attributes, in);
  if (settings.direct) return false;
  const auto is_square = [](const Axes& axes) { return axes.h == axes.w; };
  const Window& window = settings.window;
  const int64_t distance = window.dilation.h;
  if (!is_square(window.kernel) || !is_square(window.stride) || !is_square(window.dilation)) {
    return false;
  }
  const sdk::Shape out = settings.output_shape(in);
  const Choice choice = best_choice(window, out);
  if (choice.algorithm < 0) return false;
  if (distance > 1 && !is_worth_dilating(choice, in, out, settings)) return false;
  // With few channels, transforms cost more than products save. With few tiles, those of the
  // weights do.
  constexpr int64_t enough_channels = 16, enough_tiles = 64;
  if (settings.outputs / settings.group < enough_channels ||
      tiles_of(out, algorithms[choice.algorithm].outputs, distance) < enough_tiles) {
    return false;
  }
  const bool is_float32 = binding.input(0).dtype == TANDEM_FLOAT32;
  if (choice.fold == 2 || choice.fold == 4) {
    return (is_float32 || transforms_bfloat16()) && is_worth_folding(binding, choice, in, settings);
  }
  return choice.fold == 1 && in.c / settings.group >= enough_channels &&
         (is_float32 || (transforms_bfloat16() && is_worth_rounding(choice, in, settings)));
}

bool WinogradConvolution::folds(const sdk::Binding& binding) {
  return suits(binding) &&
         ConvolutionSettings(binding.attributes, binding.input(0).shape).window.stride.h > 1;
}

std::unique_ptr<WinogradConvolution> WinogradConvolution::make(const sdk::Binding& binding,
                                                               const sdk::Call& call) {
  if (!suits(binding)) return nullptr;
  const sdk::Shape& in = binding.input(0).shape;
  const ConvolutionSettings settings(binding.attributes, in);
  const Choice best = best_choice(settings.window, settings.output_shape(in));
  return std::unique_ptr<WinogradConvolution>(
      new WinogradConvolution(binding, call, best.algorithm));
}

WinogradConvolution::WinogradConvolution(const sdk::Binding& binding, const sdk::Call& call,
                                         int best)
    : kernels_(winograd::kernels()),
      algorithm_(algorithms[best]),
      arithmetic_(arithmetic_of(binding.input(0).dtype)),
      transforms_(arithmetic_.transforms[best]),
      images_of_(binding.input(0).dtype == TANDEM_BFLOAT16 ? transforms_.bfloat16
                                                           : transforms_.float32),
      sum_channels_(binding.input(0).dtype == TANDEM_BFLOAT16 ? kernels_.sum_bfloat16
                                                              : kernels_.sum_float32),
      threads_(std::max(1, call.threads)) {
  const sdk::Shape &in = binding.input(0).shape, &out = binding.output(0).shape;
  const ConvolutionSettings settings(binding.attributes, in);
  const Axes& pad = settings.window.pad;
  const int64_t kernel = settings.window.kernel.h, fold = settings.window.stride.h;
  const int64_t area = kernel * kernel, depths = in.c / settings.group;
  images_ = in.n;
  groups_ = settings.group;
  bias_ = settings.bias;
  fuses_relu_ = binding.fuses_relu();
  follows_relu_ = binding.follows_relu();
  input_ = channels_of(binding.input(0), groups_, fold);
  output_ = channels_of(binding.output(0), groups_, 1);
  weights_ = output_.count * depths * area;
  const Weights plain{output_.count, input_.count, depths * area, area, kernel, fold, false};
  const int64_t distance = settings.window.dilation.h;
  Grid grid = grid_of(out, algorithm_.outputs, distance);
  grid.pad_h = pad.h;
  grid.pad_w = pad.w;
  forward_ = plan_images(input_, output_, grid, plain);
  scratch_bytes = bytes(forward_);
  if (binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS)) {
    gradient_ = plan_gradient(forward_);
    gradient_.weights = plain;
    scratch_bytes = std::max(scratch_bytes, bytes(gradient_));
  }
  if (binding.has(TANDEM_WANTS_BACKWARD_DATA)) {
    Grid reverse = grid_of(in, algorithm_.outputs, distance);
    reverse.pad_h = (kernel - 1) * distance - pad.h;
    reverse.pad_w = (kernel - 1) * distance - pad.w;
    const Weights flipped{input_.count, output_.count, area, depths * area, kernel, 1, true};
    backward_ = plan_images(output_, input_, reverse, flipped);
    scratch_bytes = std::max(scratch_bytes, bytes(backward_));
  }
  algorithm = sdk::text("winograd F(", algorithm_.outputs, "x", algorithm_.outputs, ", ",
                        algorithm_.kernel, "x", algorithm_.kernel, "), ",
                        fold > 1 ? sdk::text("stride ", fold, " folded, ") : "",
                        distance > 1 ? sdk::text("dilation ", distance, ", ") : "",
                        arithmetic_.depths_in_word > 1 ? "products in bfloat16, " : "",
                        kernels_.instructions, ", ", forward_.tiles_at_a_time, " tiles at a time");
}

int64_t WinogradConvolution::chunks(int64_t channels) const {
  return divide_up(channels, kernels_.lanes);
}

// The values of an item are not a power of two apart, since stores of all values of an item would
// then replace each other in a cache.
Transformed WinogradConvolution::form(int64_t items, int64_t channels,
                                      int64_t depths_in_word) const {
  constexpr int64_t line = 16;
  const int64_t chunk = items * kernels_.lanes / depths_in_word;
  return {items, chunk, divide_up(chunks(channels) * chunk, line) * line + line};
}

Transformed WinogradConvolution::operand(int64_t items, int64_t channels) const {
  return form(items, channels, arithmetic_.depths_in_word);
}

Transformed WinogradConvolution::sums(int64_t items, int64_t channels) const {
  return form(items, channels, 1);
}

int64_t WinogradConvolution::floats(const Transformed& form) const {
  return algorithm_.values() * form.value_stride;
}

WinogradConvolution::Images WinogradConvolution::plan_images(const Channels& source,
                                                             const Channels& target,
                                                             Grid source_grid,
                                                             const Weights& weights) const {
  Images plan{source, target, source_grid, source_grid, weights, {}, {}, {}, 0, 0};
  plan.source_grid.step *= source.fold;
  plan.target_grid.pad_h = plan.target_grid.pad_w = 0;
  plan.tiles = images_ * source_grid.rows * source_grid.columns;
  const int64_t source_words = chunks(source.count) * kernels_.lanes / arithmetic_.depths_in_word;
  const int64_t target_words = chunks(target.count) * kernels_.lanes;
  const int64_t tile = (source_words + target_words) * algorithm_.values() * word;
  plan.tiles_at_a_time = part_of(plan.tiles, thread_part(kernels_.lanes), tile, kernels_.row_block);
  plan.weight_form = operand(chunks(source.count) * kernels_.lanes, target.count);
  plan.source_form = operand(plan.tiles_at_a_time, source.count);
  plan.target_form = sums(plan.tiles_at_a_time, target.count);
  return plan;
}

WinogradConvolution::Gradient WinogradConvolution::plan_gradient(const Images& forward) const {
  Gradient plan{};
  plan.input_grid = forward.source_grid;
  plan.output_grid = forward.target_grid;
  plan.tiles = forward.tiles;
  const int64_t both = chunks(input_.count) + chunks(output_.count);
  const int64_t tile =
      both * kernels_.lanes * algorithm_.values() * word / arithmetic_.depths_in_word;
  plan.tiles_at_a_time = part_of(plan.tiles, shared_part(kernels_.lanes), tile, kernels_.row_block);
  plan.input_form = operand(plan.tiles_at_a_time, input_.count);
  plan.output_form = operand(plan.tiles_at_a_time, output_.count);
  plan.weight_form = sums(chunks(input_.count) * kernels_.lanes, output_.count);
  return plan;
}

int64_t WinogradConvolution::bytes(const Images& plan) const {
  return (groups_ * floats(plan.weight_form) +
          threads_ * (floats(plan.source_form) + floats(plan.target_form))) *
         word;
}

int64_t WinogradConvolution::bytes(const Gradient& plan) const {
  return (groups_ * floats(plan.weight_form) + floats(plan.input_form) + floats(plan.output_form)) *
         word;
}

void WinogradConvolution::convolve_part(const Images& plan, int64_t group, const Range& tiles,
                                        const void* source, const float* weights,
                                        const Finish& finish, void* target, float* scratch) const {
  const Channels from = of_group(plan.source, group), to = of_group(plan.target, group);
  float* products = scratch + floats(plan.source_form);
  for (int64_t chunk = 0; chunk < chunks(from.count); ++chunk) {
    images_of_.inputs(source, from, plan.source_grid, tiles, chunk, plan.source_form, scratch);
  }
  const int64_t rows = divide_up(tiles.end - tiles.begin, kernels_.row_block) * kernels_.row_block;
  const int64_t depth = plan.weight_form.items / arithmetic_.depths_in_word;
  for (int64_t value = 0; value < algorithm_.values(); ++value) {
    const int64_t next = (value + 1) % algorithm_.values();
    arithmetic_.multiply_channels({scratch + value * plan.source_form.value_stride,
                                   weights + value * plan.weight_form.value_stride,
                                   weights + next * plan.weight_form.value_stride,
                                   products + value * plan.target_form.value_stride,
                                   rows,
                                   depth,
                                   plan.source_form.chunk_stride,
                                   plan.weight_form.chunk_stride,
                                   plan.target_form.chunk_stride,
                                   {0, chunks(to.count)},
                                   false});
  }
  Finish own = finish;
  if (finish.bias != nullptr) own.bias += to.first;
  for (int64_t chunk = 0; chunk < chunks(to.count); ++chunk) {
    images_of_.outputs(products, plan.target_form, plan.target_grid, tiles, chunk, own, to, target);
  }
}

void WinogradConvolution::convolve(const sdk::Call& call, const Images& plan, const void* source,
                                   const float* weights, const Finish& finish, void* target,
                                   float* scratch) {
  const int64_t columns = chunks(plan.weights.columns), form = floats(plan.weight_form);
  cpu::for_parts(call.threads, groups_ * columns, [&](int64_t part) {
    const int64_t group = part / columns;
    transforms_.weights(weights + group * weights_, plan.weights, part % columns, plan.weight_form,
                        scratch + group * form);
  });
  // A thread takes the next part when it has finished one, in its own memory.
  const int64_t parts = divide_up(plan.tiles, plan.tiles_at_a_time);
  const int64_t slots = std::min<int64_t>(threads_, call.threads);
  const int64_t slot_floats = floats(plan.source_form) + floats(plan.target_form);
  std::atomic<int64_t> next = 0;
  cpu::for_parts(call.threads, slots, [&](int64_t slot) {
    for (int64_t part = next++; part < groups_ * parts; part = next++) {
      const int64_t group = part / parts, begin = part % parts * plan.tiles_at_a_time;
      const Range tiles{begin, std::min(begin + plan.tiles_at_a_time, plan.tiles)};
      convolve_part(plan, group, tiles, source, scratch + group * form, finish, target,
                    scratch + groups_ * form + slot * slot_floats);
    }
  });
}

void WinogradConvolution::forward(const sdk::Call& call, const sdk::Pass& pass) {
  const Finish finish{bias_ ? pass.weight(1).data() : nullptr, fuses_relu_ ? 0 : -infinity,
                      nullptr};
  convolve(call, forward_, pass.raw.inputs[0], pass.weight(0), finish, pass.raw.outputs[0],
           pass.scratch<float>());
}

void WinogradConvolution::backward_data(const sdk::Call& call, const sdk::Pass& pass) {
  const Finish finish{nullptr, -infinity, follows_relu_ ? pass.raw.inputs[0] : nullptr};
  convolve(call, backward_, pass.raw.output_gradients[0], pass.weight(0), finish,
           pass.raw.input_gradients[0], pass.scratch<float>());
}

// The products of a group, summed over all tiles in a fixed order: all threads work on the same
// tiles.
void WinogradConvolution::sum_products(const sdk::Call& call, int64_t group, const void* input,
                                       const void* output_gradient, float* sums, float* scratch) {
  const Gradient& plan = gradient_;
  const Channels in = of_group(input_, group), out = of_group(output_, group);
  const int64_t inputs = chunks(in.count), outputs = chunks(out.count);
  const int64_t panels = divide_up(outputs, kernels_.panel);
  float* gradients = scratch + floats(plan.input_form);
  for (int64_t begin = 0; begin < plan.tiles; begin += plan.tiles_at_a_time) {
    const Range tiles{begin, std::min(begin + plan.tiles_at_a_time, plan.tiles)};
    cpu::for_parts(call.threads, inputs + outputs, [&](int64_t part) {
      if (part < inputs) {
        images_of_.item_inputs(input, in, plan.input_grid, tiles, part, plan.input_form, scratch);
      } else {
        images_of_.gradients(output_gradient, out, plan.output_grid, tiles, part - inputs,
                             plan.output_form, gradients);
      }
    });
    cpu::for_parts(call.threads, algorithm_.values() * panels, [&](int64_t part) {
      const int64_t value = part / panels, panel = part % panels;
      const float* b = gradients + value * plan.output_form.value_stride;
      arithmetic_.multiply_items({scratch + value * plan.input_form.value_stride,
                                  b,
                                  b,
                                  sums + value * plan.weight_form.value_stride,
                                  inputs * kernels_.lanes,
                                  divide_up(tiles.end - tiles.begin, arithmetic_.depths_in_word),
                                  plan.input_form.chunk_stride,
                                  plan.output_form.chunk_stride,
                                  plan.weight_form.chunk_stride,
                                  {panel * outputs / panels, (panel + 1) * outputs / panels},
                                  begin > 0});
    });
  }
}

void WinogradConvolution::backward_weights(const sdk::Call& call, const sdk::Pass& pass) {
  auto* scratch = pass.scratch<float>();
  const int64_t form = floats(gradient_.weight_form);
  for (int64_t group = 0; group < groups_; ++group) {
    sum_products(call, group, pass.raw.inputs[0], pass.raw.output_gradients[0],
                 scratch + group * form, scratch + groups_ * form);
  }
  write_weight_gradient(call, scratch, pass.accumulate(), pass.weight_gradient(0));
  if (bias_) {
    write_bias_gradient(call, pass.raw.output_gradients[0], pass.accumulate(),
                        pass.weight_gradient(1));
  }
}

void WinogradConvolution::write_weight_gradient(const sdk::Call& call, const float* sums, bool adds,
                                                float* target) {
  const Gradient& plan = gradient_;
  const int64_t columns = chunks(output_.count), form = floats(plan.weight_form);
  cpu::for_parts(call.threads, groups_ * columns, [&](int64_t part) {
    const int64_t group = part / columns;
    transforms_.weight_gradients(sums + group * form, plan.weight_form, plan.weights,
                                 part % columns, {0, plan.weights.depths}, adds,
                                 target + group * weights_);
  });
}

void WinogradConvolution::write_bias_gradient(const sdk::Call& call, const void* output_gradient,
                                              bool adds, float* target) {
  const int64_t columns = chunks(output_.count);
  cpu::for_parts(call.threads, groups_ * columns, [&](int64_t part) {
    constexpr int64_t max_lanes = 64;
    float sums[max_lanes];
    const Channels out = of_group(output_, part / columns);
    const int64_t chunk = part % columns, first = chunk * kernels_.lanes;
    sum_channels_(output_gradient, out, images_, chunk, sums);
    float* bias = target + out.first + first;
    for (int64_t i = 0; i < std::min(kernels_.lanes, out.count - first); ++i) {
      bias[i] = adds ? bias[i] + sums[i] : sums[i];
    }
  });
}

}  // namespace tandem::layers
