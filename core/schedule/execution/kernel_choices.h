// Which algorithm the kernel of each use of a layer took by measuring: pure data, kept in a run's
// record, so that a resumed run and all devices with the same use compute alike.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/model/net.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

// Algorithms by use, as choice_key() names it.
using KernelChoices = std::map<std::string, std::string>;

struct Tuning {
  bool measures = false;  // kernels may measure, where `choices` have nothing for their use
  KernelChoices choices;  // taken again; what is measured is added to them
};

// What a kernel reports of an algorithm that it chose by measuring begins with this; so it is known
// which choices have to be kept.
constexpr std::string_view measured_prefix = "measured: ";
// And ends with this where it could not measure all that it wanted to, for want of memory, say.
// Such a choice is kept likewise: a resumed run may have more memory, and is to compute alike.
constexpr std::string_view by_model_suffix = "; by a model";

// What decides how fast the algorithms of a use are, and nothing else: "gpu H200: conv1,
// training, 64 rows, float32". The device's number is no part of it. `hardware` is of the machine.
[[nodiscard]] std::string choice_key(const std::string& hardware, const Net& net,
                                     const PlanBinding& use);

// For people: what measuring has changed. `before`: the choices there were then.
[[nodiscard]] std::string tuning_text(const Tuning& tuning, const KernelChoices& before,
                                      const std::string& kind);

}  // namespace tandem
