#include "layers/convolution/winograd.h"

#include <algorithm>

#include "layers/convolution/winograd_passes.h"
#include "plugins/cpu/team.h"

namespace tandem::layers {

namespace {

// Beyond this size, the working memory for the rows costs more than smaller blocks of the batch
// lose. The memory for the weights in Winograd's form, up to three times, does not depend on the
// rows.
constexpr int64_t most_scratch_of_rows = int64_t{128} << 20;

float* at(std::byte* scratch, int64_t offset) {
  return reinterpret_cast<float*>(scratch + offset);
}

}  // namespace

bool WinogradConvolution::suits(const sdk::Binding& binding) {
  if (binding.input(0).dtype != TANDEM_FLOAT32 || !cpu::has_winograd()) return false;
  const sdk::Shape& in = binding.input(0).shape;
  const ConvolutionSettings settings(binding.attributes, in);
  if (settings.direct) return false;
  const auto is = [](const Axes& axes, int64_t value) {
    return axes.h == value && axes.w == value;
  };
  const Window& window = settings.window;
  const bool fits = is(window.kernel, 3) && is(window.stride, 1) && is(window.dilation, 1) &&
                    window.pad.h <= 1 && window.pad.w <= 1 && in.c / settings.group % 16 == 0 &&
                    settings.outputs / settings.group % 16 == 0;
  // With fewer tiles, the transforms of the weights take as long as direct convolution.
  constexpr int64_t enough_tiles = 64;
  const sdk::Shape out = settings.output_shape(in);
  return fits && out.n * ((out.h + 3) / 4) * ((out.w + 3) / 4) >= enough_tiles;
}

std::unique_ptr<WinogradConvolution> WinogradConvolution::make(const sdk::Binding& binding) {
  const bool blocked =
      binding.input(0).layout == TANDEM_NCHW16C && binding.output(0).layout == TANDEM_NCHW16C;
  if (!blocked || !suits(binding)) return nullptr;
  std::unique_ptr<WinogradConvolution> kernel(new WinogradConvolution(binding));
  return kernel->divide(binding) ? std::move(kernel) : nullptr;
}

WinogradConvolution::WinogradConvolution(const sdk::Binding& binding) {
  const sdk::Shape &in = binding.input(0).shape, &out = binding.output(0).shape;
  const ConvolutionSettings settings(binding.attributes, in);
  rows_ = in.n;
  groups_ = settings.group;
  outputs_ = settings.outputs / groups_;
  weights_ = sdk::count(settings.weight_shape(in)) / groups_;
  bias_ = settings.bias;
  input_ = {in.c * in.h * in.w / groups_, in.c * in.h * in.w};
  output_ = {out.c * out.h * out.w / groups_, out.c * out.h * out.w};
}

WinogradConvolution::~WinogradConvolution() = default;

// Divides the batch into the fewest blocks, whose sizes differ by at most one, with sufficiently
// little working memory.
bool WinogradConvolution::divide(const sdk::Binding& binding) {
  const int64_t scratch_of_weights = 3 * weights_ / 9 * 36 * static_cast<int64_t>(sizeof(float));
  const int64_t most_scratch = scratch_of_weights + most_scratch_of_rows;
  int64_t count = 1;
  for (;; count *= 2) {
    const int64_t largest = (rows_ + count - 1) / count;
    passes_.clear();
    passes_.emplace_back(engine_, binding, largest);
    if (!passes_.back().exists()) return false;
    if (passes_.back().scratch_bytes() <= most_scratch || largest <= 4) break;
  }
  const int64_t larger = rows_ % count == 0 ? count : rows_ % count;
  if (larger < count) {
    passes_.emplace_back(engine_, binding, rows_ / count);
    if (!passes_.back().exists()) return false;
  }
  for (int64_t i = 0; i < count; ++i) block_passes_.push_back(i < larger ? 0 : 1);
  for (const WinogradPasses& passes : passes_) {
    scratch_bytes = std::max(scratch_bytes, passes.scratch_bytes());
  }
  algorithm = "forward " + passes_[0].forward.name();
  if (passes_[0].backward_data) algorithm += ", backward data " + passes_[0].backward_data.name();
  if (passes_[0].backward_weights) {
    algorithm += ", backward weights " + passes_[0].backward_weights.name();
  }
  if (count > 1) algorithm += sdk::text(", ", passes_[0].rows(), " rows at a time");
  return true;
}

template <class Body>
void WinogradConvolution::for_blocks(const Body& body) {
  for (int64_t group = 0; group < groups_; ++group) {
    int64_t row = 0;
    for (size_t i = 0; i < block_passes_.size(); ++i) {
      WinogradPasses& passes = passes_[block_passes_[i]];
      body(Block{passes, group, row, i == 0 || block_passes_[i] != block_passes_[i - 1], i == 0});
      row += passes.rows();
    }
  }
}

const float* WinogradConvolution::gather(const sdk::Call& call, const Block& block,
                                         const Side& side, const float* tensor,
                                         float* scratch) const {
  const float* first = tensor + block.row * side.row + block.group * side.group_row;
  if (groups_ == 1) return first;
  cpu::for_items(
      call.threads, block.passes.rows(), side.group_row, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          std::copy_n(first + row * side.row, side.group_row, scratch + row * side.group_row);
        }
      });
  return scratch;
}

float* WinogradConvolution::target(const Block& block, const Side& side, float* tensor,
                                   float* scratch) const {
  return groups_ == 1 ? tensor + block.row * side.row : scratch;
}

void WinogradConvolution::scatter(const sdk::Call& call, const Block& block, const Side& side,
                                  const float* scratch, float* tensor) const {
  if (groups_ == 1) return;
  float* first = tensor + block.row * side.row + block.group * side.group_row;
  cpu::for_items(
      call.threads, block.passes.rows(), side.group_row, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          std::copy_n(scratch + row * side.group_row, side.group_row, first + row * side.row);
        }
      });
}

void WinogradConvolution::forward(const sdk::Call& call, const sdk::Pass& pass) {
  auto* scratch = pass.scratch<std::byte>();
  for_blocks([&](const Block& block) {
    WinogradPasses& passes = block.passes;
    float *weights = at(scratch, passes.weights), *made = at(scratch, passes.output);
    if (block.is_first_of_size) {
      passes.fetch.run(scratch, {{DNNL_ARG_FROM, pass.weight(0) + block.group * weights_},
                                 {DNNL_ARG_TO, weights}});
    }
    const float* x = gather(call, block, input_, pass.input(0), at(scratch, passes.input));
    float* y = target(block, output_, pass.output(0), made);
    const float* bias = bias_ ? pass.weight(1) + block.group * outputs_ : nullptr;
    passes.forward.run(
        scratch,
        {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_BIAS, bias}, {DNNL_ARG_DST, y}});
    scatter(call, block, output_, made, pass.output(0));
  });
}

void WinogradConvolution::backward_data(const sdk::Call& call, const sdk::Pass& pass) {
  auto* scratch = pass.scratch<std::byte>();
  for_blocks([&](const Block& block) {
    WinogradPasses& passes = block.passes;
    float *weights = at(scratch, passes.weights), *made = at(scratch, passes.input);
    if (block.is_first_of_size) {
      passes.backward_fetch.run(scratch, {{DNNL_ARG_FROM, pass.weight(0) + block.group * weights_},
                                          {DNNL_ARG_TO, weights}});
    }
    const float* dy =
        gather(call, block, output_, pass.output_gradient(0), at(scratch, passes.output));
    passes.backward_data.run(
        scratch, {{DNNL_ARG_DIFF_DST, dy},
                  {DNNL_ARG_WEIGHTS, weights},
                  {DNNL_ARG_DIFF_SRC, target(block, input_, pass.input_gradient(0), made)}});
    scatter(call, block, input_, made, pass.input_gradient(0));
  });
}

void WinogradConvolution::backward_weights(const sdk::Call& call, const sdk::Pass& pass) {
  auto* scratch = pass.scratch<std::byte>();
  for_blocks([&](const Block& block) {
    WinogradPasses& passes = block.passes;
    float *weights = at(scratch, passes.weights), *fresh_bias = at(scratch, passes.bias_gradient);
    const float* x = gather(call, block, input_, pass.input(0), at(scratch, passes.input));
    const float* dy =
        gather(call, block, output_, pass.output_gradient(0), at(scratch, passes.output));
    passes.backward_weights.run(scratch, {{DNNL_ARG_SRC, x},
                                          {DNNL_ARG_DIFF_DST, dy},
                                          {DNNL_ARG_DIFF_WEIGHTS, weights},
                                          {DNNL_ARG_DIFF_BIAS, fresh_bias}});
    const bool adds = pass.accumulate() || !block.is_first;
    (adds ? passes.add : passes.store)
        .run(scratch, {{DNNL_ARG_FROM, weights},
                       {DNNL_ARG_TO, pass.weight_gradient(0) + block.group * weights_}});
    if (!bias_) return;
    float* bias = pass.weight_gradient(1) + block.group * outputs_;
    for (int64_t i = 0; i < outputs_; ++i) bias[i] = adds ? bias[i] + fresh_bias[i] : fresh_bias[i];
  });
}

}  // namespace tandem::layers
