#include "plugins/cpu/updates.h"

#include <iterator>

#include "plugins/cpu/team.h"
#include "plugins/cpu/vector.h"
#include "plugins/update_checks.h"
#include "plugins/update_rules.h"

namespace tandem::cpu {

namespace {

using rules::Terms;

// A range of the arrays. `first` and `second` are the state.
struct Arrays {
  float* weights;
  const float* gradient;
  float* first;
  float* second;
  int64_t count;
};

using ElementOfOne = void (*)(const Terms&, float&, float, float&);
using ElementOfTwo = void (*)(const Terms&, float&, float, float&, float&);

// In a function that is cloned for each instruction set, this loop is vectorized.
template <ElementOfOne element>
inline void for_elements(const Arrays& a, const Terms& terms) {
  float* __restrict w = a.weights;
  const float* __restrict g = a.gradient;
  float* __restrict first = a.first;
  const Terms t = terms;
  for (int64_t i = 0; i < a.count; ++i) element(t, w[i], g[i], first[i]);
}
template <ElementOfTwo element>
inline void for_elements(const Arrays& a, const Terms& terms) {
  float* __restrict w = a.weights;
  const float* __restrict g = a.gradient;
  float* __restrict first = a.first;
  float* __restrict second = a.second;
  const Terms t = terms;
  for (int64_t i = 0; i < a.count; ++i) element(t, w[i], g[i], first[i], second[i]);
}

TANDEM_CPU_VECTOR void sgd(const Arrays& a, const Terms& t) {
  for_elements<&rules::sgd>(a, t);
}
TANDEM_CPU_VECTOR void nesterov(const Arrays& a, const Terms& t) {
  for_elements<&rules::nesterov>(a, t);
}
TANDEM_CPU_VECTOR void adagrad(const Arrays& a, const Terms& t) {
  for_elements<&rules::adagrad>(a, t);
}
TANDEM_CPU_VECTOR void rmsprop(const Arrays& a, const Terms& t) {
  for_elements<&rules::rmsprop>(a, t);
}
TANDEM_CPU_VECTOR void adadelta(const Arrays& a, const Terms& t) {
  for_elements<&rules::adadelta>(a, t);
}
TANDEM_CPU_VECTOR void adam(const Arrays& a, const Terms& t) {
  for_elements<&rules::adam>(a, t);
}
TANDEM_CPU_VECTOR void adamw(const Arrays& a, const Terms& t) {
  for_elements<&rules::adamw>(a, t);
}
TANDEM_CPU_VECTOR void average(const Arrays& a, const Terms& t) {
  for_elements<&rules::average>(a, t);
}

// In the order of rules::known_rules.
constexpr void (*runs[])(const Arrays&, const Terms&) = {
    &sgd, &nesterov, &adagrad, &rmsprop, &adadelta, &adam, &adamw, &sgd, &average};
static_assert(std::size(runs) == std::size(rules::known_rules));

}  // namespace

void update(int32_t threads, const tandem_update& given) {
  const tandem_update update = rules::completed(given);
  const rules::RuleEntry& rule = rules::require_rule(update);
  if (update.found_inf != nullptr && *update.found_inf != 0) return;
  const Terms terms = rules::terms_of(update);
  const auto run = runs[&rule - rules::known_rules];
  for_ranges(threads, update.count, [&](int64_t begin, int64_t end) {
    float* second = rule.states > 1 ? update.state[1] + begin : nullptr;
    run({update.weights + begin, update.gradient + begin, update.state[0] + begin, second,
         end - begin},
        terms);
  });
}

}  // namespace tandem::cpu
