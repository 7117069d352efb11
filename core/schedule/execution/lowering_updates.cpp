// The solver's works as what a backend runs.
#include <memory>
#include <utility>

#include "core/model/loss_scale.h"
#include "core/schedule/execution/lowering_resolver.h"

namespace tandem {

namespace {

bool follows(const Region& region, const Region& before, int64_t gap) {
  return region.buffer == before.buffer && region.offset == before.offset + before.bytes + gap;
}

bool is_whole(const Net& net, const ArrayUpdate& piece) {
  const int64_t floats = net.weights[size_t(piece.weight)].count;
  return piece.weights.bytes == floats * static_cast<int64_t>(sizeof(float));
}

bool can_be_merged(const Net& net, const ArrayUpdate& before, const ArrayUpdate& piece) {
  constexpr int64_t alignment = 64;
  const int64_t gap = piece.weights.offset - before.weights.offset - before.weights.bytes;
  const WeightArray& a = net.weights[size_t(before.weight)];
  const WeightArray& b = net.weights[size_t(piece.weight)];
  return gap >= 0 && gap < alignment && follows(piece.weights, before.weights, gap) &&
         follows(piece.gradient, before.gradient, gap) && follows(piece.state, before.state, gap) &&
         piece.state_stride == before.state_stride && a.rate_multiplier == b.rate_multiplier &&
         a.decay_multiplier == b.decay_multiplier;
}

// Neighbours with one rule are one update, unless each array has its own rate: whole arrays, so
// that what lies between them is padding, and no other device's part.
std::vector<ArrayUpdate> merged(const Net& net, const Plan& plan,
                                const std::vector<ArrayUpdate>& pieces, bool merges) {
  std::vector<ArrayUpdate> result;
  bool last_is_whole = false;
  for (ArrayUpdate piece : pieces) {
    for (Region* region : {&piece.weights, &piece.gradient, &piece.state}) {
      region->bytes = plan.bytes(*region);
    }
    if (!net.weights[size_t(piece.weight)].trained() || piece.weights.bytes == 0) continue;
    const bool both_are_whole = last_is_whole && is_whole(net, piece);
    last_is_whole = is_whole(net, piece);
    if (merges && both_are_whole && can_be_merged(net, result.back(), piece)) {
      ArrayUpdate& last = result.back();
      last.weights.bytes = piece.weights.offset + piece.weights.bytes - last.weights.offset;
      last.gradient.bytes = last.state.bytes = last.weights.bytes;
    } else {
      result.push_back(piece);
    }
  }
  return result;
}

}  // namespace

void Lowering::lower_norms(const NormWork& work, const Resolver& at, Lowered& result) const {
  struct Sum {
    const float* values;
    int64_t count;
    double* target;
  };
  std::vector<Sum> sums;
  auto* norms = at.as<double>(work.norms);
  const size_t arrays = net_.weights.size();
  for (const ArrayNorms& piece : work.arrays) {
    const WeightArray& array = net_.weights[size_t(piece.weight)];
    if (!array.trained() || array.count == 0) continue;
    double* const target = norms + piece.weight;
    sums.push_back({at.as<const float>(piece.gradient), array.count, target});
    sums.push_back({at.as<const float>(piece.values), array.count, target + arrays});
  }
  const auto function = runtime_.machine().backend().sum_of_squares;
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
  update.clip = rule_.clip * loss_scale(net_);
  update.gradient_scale = 1.0 / (rule_.batches * loss_scale(net_));
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
  for (const ArrayUpdate& piece :
       merged(net_, plan_, work.arrays, rule_.rule != TANDEM_UPDATE_LARS)) {
    const WeightArray& array = net_.weights[size_t(piece.weight)];
    std::vector<float*>& states = all->states.emplace_back();
    for (int k = 0; k < rule_.states; ++k) {
      states.push_back(at.as<float>(piece.state) + k * (piece.state_stride / 4));
    }
    tandem_update& update = all->updates.emplace_back(update_of(work, at));
    update.count = piece.weights.bytes / 4;
    update.weights = at.as<float>(piece.weights);
    update.gradient = at.as<const float>(piece.gradient);
    update.state = states.data();
    update.state_count = static_cast<uint32_t>(states.size());
    update.decay = static_cast<float>(rule_.weight_decay * array.decay_multiplier);
    update.l1_decay = static_cast<float>(rule_.l1_decay * array.decay_multiplier);
    update.rate_multiplier = static_cast<float>(array.rate_multiplier);
    if (norms == nullptr) continue;
    update.gradient_square = norms + piece.weight;
    update.weight_square = norms + net_.weights.size() + piece.weight;
  }
  result.run = [update = runtime_.machine().backend().update, all](const tandem_call& call) {
    tandem_status status = TANDEM_OK;
    for (size_t i = 0; i < all->updates.size() && status == TANDEM_OK; ++i) {
      status = update(&call, &all->updates[i]);
    }
    return status;
  };
}

}  // namespace tandem
