#include "plugins/cuda/updates.h"

#include <iterator>

#include "plugins/cuda/launch.h"
#include "plugins/cuda/status.h"
#include "plugins/cuda/vectors.h"
#include "plugins/update_checks.h"
#include "plugins/update_rules.h"

namespace tandem::cuda {

namespace {

using rules::Terms;

// The update of one element; rules of one state array do not use `second`.
template <int32_t rule>
__device__ void step_element(const Terms& t, float& w, float g, float& first, float& second) {
  if constexpr (rule == TANDEM_UPDATE_SGD || rule == TANDEM_UPDATE_LARS) {
    rules::sgd(t, w, g, first);
  } else if constexpr (rule == TANDEM_UPDATE_NESTEROV) {
    rules::nesterov(t, w, g, first);
  } else if constexpr (rule == TANDEM_UPDATE_ADAGRAD) {
    rules::adagrad(t, w, g, first);
  } else if constexpr (rule == TANDEM_UPDATE_RMSPROP) {
    rules::rmsprop(t, w, g, first);
  } else if constexpr (rule == TANDEM_UPDATE_ADADELTA) {
    rules::adadelta(t, w, g, first, second);
  } else if constexpr (rule == TANDEM_UPDATE_ADAM) {
    rules::adam(t, w, g, first, second);
  } else if constexpr (rule == TANDEM_UPDATE_AVERAGE) {
    rules::average(t, w, g, first);
  } else {
    static_assert(rule == TANDEM_UPDATE_ADAMW);
    rules::adamw(t, w, g, first, second);
  }
}

template <int32_t rule, int n>
__device__ void step_elements(const Terms& t, const tandem_update& update, float* first,
                              float* second, int64_t i) {
  constexpr bool has_second =
      rule == TANDEM_UPDATE_ADADELTA || rule == TANDEM_UPDATE_ADAM || rule == TANDEM_UPDATE_ADAMW;
  Elements<float, n> w = read<n>(update.weights + i), own_first = read<n>(first + i), own_second{};
  Elements<float, n> g{};
  if constexpr (rule != TANDEM_UPDATE_AVERAGE) g = read<n>(update.gradient + i);
  if constexpr (has_second) own_second = read<n>(second + i);
  TANDEM_UNROLL
  for (int lane = 0; lane < n; ++lane) {
    step_element<rule>(t, w.element[lane], g[lane], own_first.element[lane],
                       own_second.element[lane]);
  }
  write(w, update.weights + i);
  write(own_first, first + i);
  if constexpr (has_second) write(own_second, second + i);
}

constexpr int together = elements_at_once<float>;

// `update.state` is host memory and not used: its arrays are `first` and `second`. `vectors`: that
// many are aligned in all arrays.
template <int32_t rule>
__global__ void update_kernel(tandem_update update, float* first, float* second, int64_t vectors) {
  __shared__ Terms terms;
  if (update.found_inf != nullptr && *update.found_inf != 0) return;  // the same for all threads
  if (threadIdx.x == 0) terms = rules::terms_of(update);
  __syncthreads();
  const Terms t = terms;
  for (int64_t v = first_element(); v < vectors; v += element_stride()) {
    step_elements<rule, together>(t, update, first, second, v * together);
  }
  for (int64_t i = vectors * together + first_element(); i < update.count; i += element_stride()) {
    step_elements<rule, 1>(t, update, first, second, i);
  }
}

using Kernel = void (*)(tandem_update, float*, float*, int64_t);

// In the order of rules::known_rules.
constexpr Kernel kernels[] = {
    &update_kernel<TANDEM_UPDATE_SGD>,      &update_kernel<TANDEM_UPDATE_NESTEROV>,
    &update_kernel<TANDEM_UPDATE_ADAGRAD>,  &update_kernel<TANDEM_UPDATE_RMSPROP>,
    &update_kernel<TANDEM_UPDATE_ADADELTA>, &update_kernel<TANDEM_UPDATE_ADAM>,
    &update_kernel<TANDEM_UPDATE_ADAMW>,    &update_kernel<TANDEM_UPDATE_LARS>,
    &update_kernel<TANDEM_UPDATE_AVERAGE>};
static_assert(std::size(kernels) == std::size(rules::known_rules));

}  // namespace

void update(const tandem_call& call, const tandem_update& given) {
  const tandem_update update = rules::completed(given);
  const rules::RuleEntry& rule = rules::require_rule(update);
  if (update.count == 0) return;
  float *first = update.state[0], *second = rule.states > 1 ? update.state[1] : nullptr;
  const bool aligned = are_aligned(update.weights, update.gradient, first, second);
  constexpr int64_t per_thread = 2 * together;  // the terms of a block are worth several rounds
  const unsigned blocks = blocks_for(update.count, per_thread);
  const Kernel kernel = kernels[&rule - rules::known_rules];
  kernel<<<blocks, threads_per_block, 0, stream_of(call)>>>(update, first, second,
                                                            aligned ? update.count / together : 0);
  check_launch(rule.name);
}

}  // namespace tandem::cuda
