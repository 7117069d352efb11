#include "plugins/cpu/updates.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "plugins/cpu/team.h"
#include "plugins/cpu/vector.h"
#include "plugins/sdk.h"

namespace tandem::cpu {

namespace {

// A range of the arrays; `first` and `second` are the state.
struct Arrays {
  float* weights;
  const float* gradient;
  float* first;
  float* second;
  int64_t count;
};

// The numbers of a rule, rounded once.
struct Terms {
  float rate, scale, decay, l1_decay;
  float keep, take;    // of the first moment: momentum, and 1 - momentum
  float keep2, take2;  // of the second
  float delta;
  float shrink;      // AdamW: rate * decay
  float correction;  // AdamW: 1 / sqrt(1 - momentum2^t)
};

inline float gradient_of(const Terms& terms, float gradient, float weight) {
  const float magnitude = weight != 0 ? terms.l1_decay : 0.0F;
  return terms.scale * gradient + terms.decay * weight + std::copysign(magnitude, weight);
}

TANDEM_CPU_VECTOR void sgd(const Arrays& a, const Terms& terms) {
  float* __restrict w = a.weights;
  const float* __restrict g = a.gradient;
  float* __restrict h = a.first;
  const Terms t = terms;
  for (int64_t i = 0; i < a.count; ++i) {
    h[i] = t.keep * h[i] + t.rate * gradient_of(t, g[i], w[i]);
    w[i] -= h[i];
  }
}

TANDEM_CPU_VECTOR void nesterov(const Arrays& a, const Terms& terms) {
  float* __restrict w = a.weights;
  const float* __restrict g = a.gradient;
  float* __restrict h = a.first;
  const Terms t = terms;
  for (int64_t i = 0; i < a.count; ++i) {
    const float before = h[i];
    h[i] = t.keep * before + t.rate * gradient_of(t, g[i], w[i]);
    w[i] -= (1 + t.keep) * h[i] - t.keep * before;
  }
}

TANDEM_CPU_VECTOR void adagrad(const Arrays& a, const Terms& terms) {
  float* __restrict w = a.weights;
  const float* __restrict g = a.gradient;
  float* __restrict q = a.first;
  const Terms t = terms;
  for (int64_t i = 0; i < a.count; ++i) {
    const float gradient = gradient_of(t, g[i], w[i]);
    q[i] += gradient * gradient;
    w[i] -= t.rate * (gradient / (std::sqrt(q[i]) + t.delta));
  }
}

TANDEM_CPU_VECTOR void rmsprop(const Arrays& a, const Terms& terms) {
  float* __restrict w = a.weights;
  const float* __restrict g = a.gradient;
  float* __restrict q = a.first;
  const Terms t = terms;
  for (int64_t i = 0; i < a.count; ++i) {
    const float gradient = gradient_of(t, g[i], w[i]);
    q[i] = t.keep2 * q[i] + t.take2 * (gradient * gradient);
    w[i] -= t.rate * (gradient / (std::sqrt(q[i]) + t.delta));
  }
}

TANDEM_CPU_VECTOR void adadelta(const Arrays& a, const Terms& terms) {
  float* __restrict w = a.weights;
  const float* __restrict g = a.gradient;
  float* __restrict q = a.first;
  float* __restrict p = a.second;
  const Terms t = terms;
  for (int64_t i = 0; i < a.count; ++i) {
    const float gradient = gradient_of(t, g[i], w[i]);
    q[i] = t.keep * q[i] + t.take * (gradient * gradient);
    const float step = gradient * std::sqrt((p[i] + t.delta) / (q[i] + t.delta));
    p[i] = t.keep * p[i] + t.take * (step * step);
    w[i] -= t.rate * step;
  }
}

TANDEM_CPU_VECTOR void adam(const Arrays& a, const Terms& terms) {
  float* __restrict w = a.weights;
  const float* __restrict g = a.gradient;
  float* __restrict m = a.first;
  float* __restrict v = a.second;
  const Terms t = terms;
  for (int64_t i = 0; i < a.count; ++i) {
    const float gradient = gradient_of(t, g[i], w[i]);
    m[i] = t.keep * m[i] + t.take * gradient;
    v[i] = t.keep2 * v[i] + t.take2 * (gradient * gradient);
    w[i] -= t.rate * (m[i] / (std::sqrt(v[i]) + t.delta));
  }
}

TANDEM_CPU_VECTOR void adamw(const Arrays& a, const Terms& terms) {
  float* __restrict w = a.weights;
  const float* __restrict g = a.gradient;
  float* __restrict m = a.first;
  float* __restrict v = a.second;
  const Terms t = terms;
  for (int64_t i = 0; i < a.count; ++i) {
    const float gradient = t.scale * g[i];
    m[i] = t.keep * m[i] + t.take * gradient;
    v[i] = t.keep2 * v[i] + t.take2 * (gradient * gradient);
    w[i] -= t.shrink * w[i] + t.rate * (m[i] / (std::sqrt(v[i]) * t.correction + t.delta));
  }
}

struct Rule {
  int32_t id;
  const char* name;
  uint32_t states;
  void (*run)(const Arrays&, const Terms&);
};

constexpr Rule rules[] = {
    {TANDEM_UPDATE_SGD, "SGD", 1, &sgd},
    {TANDEM_UPDATE_NESTEROV, "Nesterov", 1, &nesterov},
    {TANDEM_UPDATE_ADAGRAD, "AdaGrad", 1, &adagrad},
    {TANDEM_UPDATE_RMSPROP, "RMSProp", 1, &rmsprop},
    {TANDEM_UPDATE_ADADELTA, "AdaDelta", 2, &adadelta},
    {TANDEM_UPDATE_ADAM, "Adam", 2, &adam},
    {TANDEM_UPDATE_ADAMW, "AdamW", 2, &adamw},
    {TANDEM_UPDATE_LARS, "LARS", 1, &sgd},
};

const Rule& rule_of(const tandem_update& update) {
  const auto* found = std::find_if(std::begin(rules), std::end(rules),
                                   [&](const Rule& rule) { return rule.id == update.rule; });
  if (found == std::end(rules)) {
    throw sdk::unsupported("update rule ", update.rule, "; this backend knows ", rules[0].id, " (",
                           rules[0].name, ") to ", std::end(rules)[-1].id, " (",
                           std::end(rules)[-1].name, ")");
  }
  if (update.state_count < found->states) {
    throw sdk::invalid(found->name, " needs ", found->states, " state arrays, not ",
                       update.state_count);
  }
  if (update.rule == TANDEM_UPDATE_LARS &&
      (update.gradient_square == nullptr || update.weight_square == nullptr)) {
    throw sdk::invalid("LARS needs the norms of gradient and weights");
  }
  if (update.clip > 0 && update.gradient_squares == nullptr) {
    throw sdk::invalid("clipping needs the norm of all gradients");
  }
  return *found;
}

double clipped_scale(const tandem_update& update) {
  if (update.clip <= 0) return update.gradient_scale;
  double sum = 0;
  for (uint32_t i = 0; i < update.gradient_square_count; ++i) sum += update.gradient_squares[i];
  const double norm = std::sqrt(sum);
  return update.gradient_scale * (norm > update.clip ? update.clip / norm : 1);
}

// You, Gitman, Ginsburg: Large Batch Training of Convolutional Networks, equation 6.
double local_rate(const tandem_update& update, double scale) {
  const double gradient = scale * std::sqrt(*update.gradient_square);
  const double weights = std::sqrt(*update.weight_square);
  if (gradient == 0 || weights == 0) return 1;
  const double decay = static_cast<double>(update.decay);
  return update.trust_coefficient * weights / (gradient + decay * weights);
}

Terms terms_of(const tandem_update& update) {
  const double momentum = static_cast<double>(update.momentum);
  const double scale = clipped_scale(update);
  const double decay = static_cast<double>(update.decay);
  double rate =
      static_cast<double>(update.step->rate) * static_cast<double>(update.rate_multiplier);
  const double plain_rate = rate;
  double correction = 1;
  const double steps = static_cast<double>(update.step->step) + 1;
  if (update.rule == TANDEM_UPDATE_ADAM || update.rule == TANDEM_UPDATE_ADAMW) {
    const double second = std::sqrt(1 - std::pow(update.momentum2, steps));
    rate /= 1 - std::pow(momentum, steps);
    if (update.rule == TANDEM_UPDATE_ADAM) {
      rate *= second;
    } else {
      correction = 1 / second;
    }
  }
  if (update.rule == TANDEM_UPDATE_LARS) rate *= local_rate(update, scale);
  const auto rounded = [](double value) { return static_cast<float>(value); };
  return {rounded(rate),
          rounded(scale),
          update.decay,
          update.l1_decay,
          update.momentum,
          rounded(1 - momentum),
          rounded(update.momentum2),
          rounded(1 - update.momentum2),
          rounded(update.delta),
          rounded(plain_rate * decay),
          rounded(correction)};
}

// What a caller of minor 0 does not give.
tandem_update completed(const tandem_update& given) {
  tandem_update full{};
  full.gradient_scale = 1;
  std::memcpy(&full, &given, std::min<size_t>(given.struct_size, sizeof full));
  return full;
}

}  // namespace

void update(int32_t threads, const tandem_update& given) {
  const tandem_update update = completed(given);
  if (update.count < 0) throw sdk::invalid("update of ", update.count, " values");
  const Rule& rule = rule_of(update);
  if (update.skip != nullptr && *update.skip != 0) return;
  const Terms terms = terms_of(update);
  for_ranges(threads, update.count, [&](int64_t begin, int64_t end) {
    float* second = rule.states > 1 ? update.state[1] + begin : nullptr;
    rule.run({update.weights + begin, update.gradient + begin, update.state[0] + begin, second,
              end - begin},
             terms);
  });
}

}  // namespace tandem::cpu
