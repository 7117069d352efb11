// Which algorithm the kernel of each use of a layer chose by measuring. A run's record keeps these
// choices, so that a resumed run and all devices with the same use compute the same bits.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/model/net/net.h"
#include "core/schedule/plan/plan.h"

namespace tandem {

struct LayerBinding;

// Algorithms by use, as choice_key() names it.
using KernelChoices = std::map<std::string, std::string>;

struct Tuning {
  bool measures = false;  // kernels may measure where `choices` have nothing for their use
  KernelChoices choices;  // must be taken again; what is measured is added to them
};

// The text of a measured algorithm ends with this where the kernel could not measure everything,
// for want of memory, say (plugins/abi/layers.h). Such a choice is kept as well: a resumed run may
// have more memory, but must compute the same bits.
constexpr std::string_view by_model_suffix = "; by a model";

// Everything that decides how fast the algorithms of a use are, and nothing else: "gpu H200: conv1,
// training, 64 rows, float32". The number of the device is left out. `hardware` names the backend
// and the device.
[[nodiscard]] std::string choice_key(const std::string& hardware, const Net& net,
                                     const PlanBinding& use);

// Whether the bindings of two layers of one type are the same to its kernel, so that what is the
// fastest for one is the fastest for the other: everything but which layer and which rows they are,
// and how weights begin.
[[nodiscard]] bool are_alike(const LayerBinding& a, const LayerBinding& b);

// A line for users: what measuring has changed since the choices `before`.
[[nodiscard]] std::string tuning_text(const Tuning& tuning, const KernelChoices& before,
                                      const std::string& kind);

}  // namespace tandem
