#include "plugins/cuda/updates.h"

#include <iterator>

#include "plugins/cuda/launch.h"
#include "plugins/cuda/status.h"
#include "plugins/update_checks.h"
#include "plugins/update_rules.h"

namespace tandem::cuda {

namespace {

using rules::Terms;

// The update of one element; rules of one state array do not use `second`.
template <int32_t rule>
__device__ void step_element(const Terms& t, float& w, float g, float* first, float* second,
                             int64_t i) {
  if constexpr (rule == TANDEM_UPDATE_SGD || rule == TANDEM_UPDATE_LARS) {
    rules::sgd(t, w, g, first[i]);
  } else if constexpr (rule == TANDEM_UPDATE_NESTEROV) {
    rules::nesterov(t, w, g, first[i]);
  } else if constexpr (rule == TANDEM_UPDATE_ADAGRAD) {
    rules::adagrad(t, w, g, first[i]);
  } else if constexpr (rule == TANDEM_UPDATE_RMSPROP) {
    rules::rmsprop(t, w, g, first[i]);
  } else if constexpr (rule == TANDEM_UPDATE_ADADELTA) {
    rules::adadelta(t, w, g, first[i], second[i]);
  } else if constexpr (rule == TANDEM_UPDATE_ADAM) {
    rules::adam(t, w, g, first[i], second[i]);
  } else if constexpr (rule == TANDEM_UPDATE_AVERAGE) {
    rules::average(t, w, g, first[i]);
  } else {
    static_assert(rule == TANDEM_UPDATE_ADAMW);
    rules::adamw(t, w, g, first[i], second[i]);
  }
}

// `update.state` is host memory and not used: its arrays are `first` and `second`.
template <int32_t rule>
__global__ void update_kernel(tandem_update update, float* first, float* second) {
  __shared__ Terms terms;
  if (update.found_inf != nullptr && *update.found_inf != 0) return;  // the same for all threads
  if (threadIdx.x == 0) terms = rules::terms_of(update);
  __syncthreads();
  const Terms t = terms;
  for (int64_t i = first_element(); i < update.count; i += element_stride()) {
    float weight = update.weights[i];
    step_element<rule>(t, weight, update.gradient[i], first, second, i);
    update.weights[i] = weight;
  }
}

using Kernel = void (*)(tandem_update, float*, float*);

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
  constexpr int64_t elements_per_thread = 4;  // the terms of a block are worth several rounds
  const unsigned blocks = blocks_for(update.count, elements_per_thread);
  const Kernel kernel = kernels[&rule - rules::known_rules];
  kernel<<<blocks, threads_per_block, 0, stream_of(call)>>>(
      update, update.state[0], rule.states > 1 ? update.state[1] : nullptr);
  check_launch(rule.name);
}

}  // namespace tandem::cuda
