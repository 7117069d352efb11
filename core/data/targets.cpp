#include "core/data/targets.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/numbers/random.h"

namespace tandem {
namespace {

constexpr double max_alpha = 1000;

// The logarithm of a value from Gamma(shape), for any shape above 0: Marsaglia and Tsang (2000) for
// shape + 1, times u^(1 / shape). As a logarithm, because for small shapes the value itself is 0.
double log_gamma_draw(Random& random, double shape) {
  const double d = shape + 1 - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random.normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    const double u = 1 - random.uniform();
    if (std::log(u) >= x * x / 2 + d - d * v + d * std::log(v)) continue;
    return std::log(d * v) + std::log(1 - random.uniform()) / shape;
  }
}

double beta_draw(Random& random, double alpha) {
  const double a = log_gamma_draw(random, alpha), b = log_gamma_draw(random, alpha);
  return 1 / (1 + std::exp(b - a));
}

// a becomes share * a + (1 - share) * b, and b the reverse.
void blend(float* a, float* b, int64_t count, float share) {
  const float other = 1 - share;
  for (int64_t i = 0; i < count; ++i) {
    const float first = a[i], second = b[i];
    a[i] = share * first + other * second;
    b[i] = share * second + other * first;
  }
}

// Exchanges a box of about the share `1 - kept` of the picture around a random pixel. Returns the
// share that is really kept, as the box is clipped to the picture.
double exchange_box(const Shape& sample, double kept, Random& random, float* a, float* b) {
  const double side = std::sqrt(1 - kept);
  const auto range = [&](int64_t length) {
    const auto centre = static_cast<int64_t>(random.below(static_cast<uint64_t>(length)));
    const auto extent = static_cast<int64_t>(static_cast<double>(length) * side);
    return std::pair(std::clamp<int64_t>(centre - extent / 2, 0, length),
                     std::clamp<int64_t>(centre - extent / 2 + extent, 0, length));
  };
  const auto [left, right] = range(sample.w);
  const auto [top, bottom] = range(sample.h);
  for (int64_t plane = 0; plane < sample.c; ++plane) {
    for (int64_t y = top; y < bottom; ++y) {
      const int64_t row = (plane * sample.h + y) * sample.w;
      std::swap_ranges(a + row + left, a + row + right, b + row + left);
    }
  }
  const int64_t moved = (right - left) * (bottom - top);
  return 1 - static_cast<double>(moved) / static_cast<double>(sample.h * sample.w);
}

}  // namespace

void check_targets(const TargetOptions& options, int64_t classes) {
  for (const auto& [name, alpha] :
       {std::pair("--mixup", options.mixup), {"--cutmix", options.cutmix}}) {
    if (alpha >= 0 && alpha <= max_alpha) continue;
    throw error("{} {}: shares are drawn from Beta(x, x), with x above 0 and at most {}; 0 is none",
                name, alpha, max_alpha);
  }
  if (!(options.smoothing >= 0 && options.smoothing < 1)) {
    throw error("--label-smoothing {}: a share of at least 0 and below 1; 0.1 is usual",
                options.smoothing);
  }
  const bool writes = options.mixes() || !options.class_weights.empty() || options.smoothing > 0;
  if (writes && !options.wanted) {
    throw error(
        "--mixup, --cutmix, --class-weights and --label-smoothing need a net that reads a weight "
        "for each class");
  }
  const auto count = static_cast<int64_t>(options.class_weights.size());
  if (count != 0 && count != classes) {
    throw error("{} class weights for {} classes: there must be one for each", count, classes);
  }
  float sum = 0;
  for (const float weight : options.class_weights) {
    if (!(weight >= 0) || !std::isfinite(weight)) {
      throw error("class weight {}: it must be a number, at least 0", weight);
    }
    sum += weight;
  }
  if (count != 0 && sum <= 0) throw error("all class weights are 0: nothing would be learned");
}

void write_target(const TargetOptions& options, int64_t classes, const TargetRow& row) {
  std::fill_n(row.target, classes, 0.0F);
  if (*row.label < 0) return;
  const auto label = size_t(*row.label);
  const float weight = options.class_weights.empty() ? 1.0F : options.class_weights[label];
  row.target[label] = weight;
  if (options.smoothing == 0) return;
  const auto part = static_cast<float>(options.smoothing / static_cast<double>(classes)) * weight;
  std::fill_n(row.target, classes, part);
  row.target[label] = part + static_cast<float>(1 - options.smoothing) * weight;
}

void mix_rows(const TargetOptions& options, const Shape& sample, int64_t classes, uint64_t seed,
              const TargetRow& a, const TargetRow& b) {
  Random random(seed, stream_of("mixing"));
  const bool boxes = options.cutmix > 0 && (options.mixup <= 0 || random.uniform() < 0.5);
  double share = beta_draw(random, boxes ? options.cutmix : options.mixup);
  if (boxes) {
    share = exchange_box(sample, share, random, a.pixels, b.pixels);
  } else {
    blend(a.pixels, b.pixels, sample.c * sample.h * sample.w, static_cast<float>(share));
  }
  blend(a.target, b.target, classes, static_cast<float>(share));
  if (share < 0.5) std::swap(*a.label, *b.label);
}

}  // namespace tandem
