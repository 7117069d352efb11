// The checks of a tandem_update that every backend makes, and the list of rules.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "plugins/sdk.h"
#include "plugins/update_rules.h"

namespace tandem::rules {

struct RuleEntry {
  int32_t id;
  const char* name;
  uint32_t states;
};

inline constexpr RuleEntry known_rules[] = {
    {TANDEM_UPDATE_SGD, "SGD", 1},           {TANDEM_UPDATE_NESTEROV, "Nesterov", 1},
    {TANDEM_UPDATE_ADAGRAD, "AdaGrad", 1},   {TANDEM_UPDATE_RMSPROP, "RMSProp", 1},
    {TANDEM_UPDATE_ADADELTA, "AdaDelta", 2}, {TANDEM_UPDATE_ADAM, "Adam", 2},
    {TANDEM_UPDATE_ADAMW, "AdamW", 2},       {TANDEM_UPDATE_LARS, "LARS", 1},
    {TANDEM_UPDATE_AVERAGE, "average", 1},
};

// Sets the fields that a caller of an earlier minor version does not give to their defaults.
inline tandem_update completed(const tandem_update& given) {
  tandem_update full{};
  full.gradient_scale = 1;
  std::memcpy(&full, &given, std::min<size_t>(given.struct_size, sizeof full));
  return full;
}

// Throws Refusal for an unknown rule, for missing arguments of a rule, and for a negative count.
inline const RuleEntry& require_rule(const tandem_update& update) {
  if (update.count < 0) throw sdk::invalid("update of ", update.count, " values");
  const auto* found = std::find_if(std::begin(known_rules), std::end(known_rules),
                                   [&](const RuleEntry& rule) { return rule.id == update.rule; });
  if (found == std::end(known_rules)) {
    const RuleEntry &first = known_rules[0], &last = std::end(known_rules)[-1];
    throw sdk::unsupported("update rule ", update.rule, "; this backend knows ", first.id, " (",
                           first.name, ") to ", last.id, " (", last.name, ")");
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

}  // namespace tandem::rules
