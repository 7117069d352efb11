// The solver rules of tandem_update, element by element, the same code on host and device. The
// numbers of a step are rounded once (Terms); then each element is a function of its own values.
// The bits are the same everywhere if it is compiled without fused multiply-add.
#pragma once

#include <cmath>
#include <cstdint>

#include "plugins/abi.h"
#include "plugins/random.h"  // TANDEM_HOST_DEVICE

namespace tandem::rules {

// The numbers of a rule, rounded once.
struct Terms {
  float rate, scale, decay, l1_decay;
  float keep, take;    // for the first moment: momentum, and 1 - momentum
  float keep2, take2;  // for the second moment
  float delta;
  float shrink;      // AdamW: rate * decay
  float correction;  // AdamW: 1 / sqrt(1 - momentum2^t)
};

TANDEM_HOST_DEVICE inline float gradient_of(const Terms& t, float gradient, float weight) {
  const float magnitude = weight != 0 ? t.l1_decay : 0.0F;
  return t.scale * gradient + t.decay * weight + copysignf(magnitude, weight);
}

// w: a weight, g: its gradient; h, q, m and p, v: its state, with the names of abi/backends.h.

TANDEM_HOST_DEVICE inline void sgd(const Terms& t, float& w, float g, float& h) {
  h = t.keep * h + t.rate * gradient_of(t, g, w);
  w -= h;
}

TANDEM_HOST_DEVICE inline void nesterov(const Terms& t, float& w, float g, float& h) {
  const float before = h;
  h = t.keep * before + t.rate * gradient_of(t, g, w);
  w -= (1 + t.keep) * h - t.keep * before;
}

TANDEM_HOST_DEVICE inline void adagrad(const Terms& t, float& w, float g, float& q) {
  const float gradient = gradient_of(t, g, w);
  q += gradient * gradient;
  w -= t.rate * (gradient / (sqrtf(q) + t.delta));
}

TANDEM_HOST_DEVICE inline void rmsprop(const Terms& t, float& w, float g, float& q) {
  const float gradient = gradient_of(t, g, w);
  q = t.keep2 * q + t.take2 * (gradient * gradient);
  w -= t.rate * (gradient / (sqrtf(q) + t.delta));
}

TANDEM_HOST_DEVICE inline void adadelta(const Terms& t, float& w, float g, float& q, float& p) {
  const float gradient = gradient_of(t, g, w);
  q = t.keep * q + t.take * (gradient * gradient);
  const float step = gradient * sqrtf((p + t.delta) / (q + t.delta));
  p = t.keep * p + t.take * (step * step);
  w -= t.rate * step;
}

TANDEM_HOST_DEVICE inline void adam(const Terms& t, float& w, float g, float& m, float& v) {
  const float gradient = gradient_of(t, g, w);
  m = t.keep * m + t.take * gradient;
  v = t.keep2 * v + t.take2 * (gradient * gradient);
  w -= t.rate * (m / (sqrtf(v) + t.delta));
}

TANDEM_HOST_DEVICE inline void adamw(const Terms& t, float& w, float g, float& m, float& v) {
  const float gradient = t.scale * g;
  m = t.keep * m + t.take * gradient;
  v = t.keep2 * v + t.take2 * (gradient * gradient);
  w -= t.shrink * w + t.rate * (m / (sqrtf(v) * t.correction + t.delta));
}

TANDEM_HOST_DEVICE inline void average(const Terms& t, float& w, float /*g*/, float& a) {
  a = t.keep * a + t.take * w;
}

TANDEM_HOST_DEVICE inline double clipped_scale(const tandem_update& update) {
  if (update.clip <= 0) return update.gradient_scale;
  double sum = 0;
  for (uint32_t i = 0; i < update.gradient_square_count; ++i) sum += update.gradient_squares[i];
  const double norm = sqrt(sum);
  return update.gradient_scale * (norm > update.clip ? update.clip / norm : 1);
}

// You, Gitman, Ginsburg: Large Batch Training of Convolutional Networks, equation 6.
TANDEM_HOST_DEVICE inline double local_rate(const tandem_update& update, double scale) {
  const double gradient = scale * sqrt(*update.gradient_square);
  const double weights = sqrt(*update.weight_square);
  if (gradient == 0 || weights == 0) return 1;
  const double decay = static_cast<double>(update.decay);
  return update.trust_coefficient * weights / (gradient + decay * weights);
}

// Reads the device memory that the update refers to: the step and the sums of squares.
TANDEM_HOST_DEVICE inline Terms terms_of(const tandem_update& update) {
  double momentum = static_cast<double>(update.momentum);
  const double scale = clipped_scale(update);
  const double decay = static_cast<double>(update.decay);
  double rate =
      static_cast<double>(update.step->rate) * static_cast<double>(update.rate_multiplier);
  const double plain_rate = rate;
  double correction = 1;
  const double steps = static_cast<double>(update.step->step) + 1;
  if (update.rule == TANDEM_UPDATE_AVERAGE) momentum = fmin(momentum, (1 + steps) / (10 + steps));
  if (update.rule == TANDEM_UPDATE_ADAM || update.rule == TANDEM_UPDATE_ADAMW) {
    const double second = sqrt(1 - pow(update.momentum2, steps));
    rate /= 1 - pow(momentum, steps);
    if (update.rule == TANDEM_UPDATE_ADAM) {
      rate *= second;
    } else {
      correction = 1 / second;
    }
  }
  if (update.rule == TANDEM_UPDATE_LARS) rate *= local_rate(update, scale);
  return {static_cast<float>(rate),
          static_cast<float>(scale),
          update.decay,
          update.l1_decay,
          static_cast<float>(momentum),
          static_cast<float>(1 - momentum),
          static_cast<float>(update.momentum2),
          static_cast<float>(1 - update.momentum2),
          static_cast<float>(update.delta),
          static_cast<float>(plain_rate * decay),
          static_cast<float>(correction)};
}

}  // namespace tandem::rules
