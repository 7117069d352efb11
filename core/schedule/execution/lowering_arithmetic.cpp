// Work that is no layer's: a backend's arithmetic over gradients, weights, norms and pixels.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/model/net/loss_scale.h"
#include "core/schedule/execution/lowering.h"
#include "core/schedule/execution/lowering_resolver.h"
#include "core/schedule/execution/update_rule.h"
#include "core/schedule/plan/buffers.h"

namespace tandem {

void Lowering::lower_sum(const Region& target, const std::vector<Region>& sources,
                         const Resolver& at, Lowered& result) const {
  result.run = [add = runtime_.machine().backend().arithmetic->add, to = at.as<float>(target),
                from = at.all<const float>(sources),
                count = plan_.bytes(target) / buffers::float_bytes](const tandem_call& call) {
    return add(&call, to, from.data(), static_cast<uint32_t>(from.size()), count);
  };
}

void Lowering::lower_check(const CheckWork& work, const Resolver& at, Lowered& result) const {
  result.run = [check = runtime_.machine().backend().arithmetic->check_finite,
                values = at.as<const float>(work.values),
                count = plan_.bytes(work.values) / buffers::float_bytes,
                found_inf = at.as<int32_t>(work.found_inf)](const tandem_call& call) {
    return check(&call, values, count, found_inf);
  };
}

void Lowering::lower_conversion(const ConvertWork& work, const Resolver& at,
                                Lowered& result) const {
  const auto convert = runtime_.machine().backend().arithmetic->convert_pixels;
  if (convert == nullptr) {
    throw error("backend '{}' makes no floats of bytes", runtime_.machine().kind());
  }
  tandem_pixels pixels{};
  pixels.struct_size = sizeof(pixels);
  pixels.shape = work.shape;
  pixels.pixels = at.as<const uint8_t>(work.pixels);
  pixels.target = at.as<float>(work.target);
  std::copy(work.scale.means.begin(), work.scale.means.end(), pixels.means);
  pixels.scale = work.scale.scale;
  result.run = [convert, pixels](const tandem_call& call) { return convert(&call, &pixels); };
}

void Lowering::lower_norms(const NormWork& work, const Resolver& at, Lowered& result) const {
  struct Sum {
    const float* values;
    int64_t count;
    double* target;
  };
  std::vector<Sum> sums;
  auto* norms = at.as<double>(work.norms);
  const size_t count = net_.weights.size();
  for (const ArrayNorms& array : work.arrays) {
    const WeightArray& weights = net_.weight(array.weight);
    if (!weights.trained() || weights.count == 0) continue;
    double* const target = norms + array.weight;
    sums.push_back({at.as<const float>(array.gradient), weights.count, target});
    sums.push_back({at.as<const float>(array.values), weights.count, target + count});
  }
  const auto function = runtime_.machine().backend().arithmetic->sum_of_squares;
  result.run = [function, sums = std::move(sums)](const tandem_call& call) {
    tandem_status status = TANDEM_OK;
    for (size_t i = 0; i < sums.size() && status == TANDEM_OK; ++i) {
      status = function(&call, sums[i].values, sums[i].count, sums[i].target);
    }
    return status;
  };
}

tandem_update Lowering::update_of(const UpdateWork& work, const Resolver& at) const {
  tandem_update update{};
  update.struct_size = sizeof update;
  update.rule = rule_.rule;
  update.momentum = rule_.momentum;
  update.step = at.as<const tandem_step>(work.step);
  update.found_inf = at.as<const int32_t>(work.found_inf);
  update.momentum2 = rule_.momentum2;
  update.delta = rule_.delta;
  const double scale = loss_scale(net_);
  update.clip = rule_.clip * scale;
  update.gradient_scale = 1.0 / (rule_.micro_batches * scale);
  update.trust_coefficient = rule_.trust_coefficient;
  update.gradient_squares = at.as<const double>(work.norms);
  update.gradient_square_count = static_cast<uint32_t>(net_.weights.size());
  return update;
}

void Lowering::lower_update(const UpdateWork& work, const Resolver& at, Lowered& result) const {
  struct Updates {
    std::vector<std::vector<float*>> states;
    std::vector<tandem_update> updates;
  };
  const auto all = std::make_shared<Updates>();
  const auto* norms = at.as<const double>(work.norms);
  for (const ArrayUpdate& array :
       merged_updates(net_, plan_, work.arrays, rule_.rule != TANDEM_UPDATE_LARS)) {
    const WeightArray& weights = net_.weight(array.weight);
    std::vector<float*>& states = all->states.emplace_back();
    for (int k = 0; k < rule_.states; ++k) {
      states.push_back(at.as<float>(array.state) + k * (array.state_stride / buffers::float_bytes));
    }
    tandem_update& update = all->updates.emplace_back(update_of(work, at));
    update.count = array.weights.bytes / buffers::float_bytes;
    update.weights = at.as<float>(array.weights);
    update.gradient = at.as<const float>(array.gradient);
    update.state = states.data();
    update.state_count = static_cast<uint32_t>(states.size());
    update.decay = static_cast<float>(rule_.weight_decay * weights.decay_multiplier);
    update.l1_decay = static_cast<float>(rule_.l1_decay * weights.decay_multiplier);
    update.rate_multiplier = static_cast<float>(weights.rate_multiplier);
    if (norms != nullptr) {
      update.gradient_square = norms + array.weight;
      update.weight_square = norms + net_.weights.size() + array.weight;
    }
    if (rule_.average_decay > 0) {
      const tandem_update average = average_of(update, rule_.average_decay);
      all->updates.push_back(average);
    }
  }
  result.run = [update = runtime_.machine().backend().arithmetic->update,
                all](const tandem_call& call) {
    tandem_status status = TANDEM_OK;
    for (size_t i = 0; i < all->updates.size() && status == TANDEM_OK; ++i) {
      status = update(&call, &all->updates[i]);
    }
    return status;
  };
}

}  // namespace tandem
