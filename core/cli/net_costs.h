// What training a net costs, computed without running it: for the commands net and models.
#pragma once

#include <cstdint>
#include <string>

#include "core/device/parse.h"
#include "core/model/file/definition.h"
#include "core/model/net/net.h"
#include "core/plugin/registry.h"

namespace tandem::cli {

// "4.14 G", "910.20 k"; "-" for none.
[[nodiscard]] std::string flops_text(double flops);

// The memory in bytes to train on one device with kernels as those of `kernels`; `options` have
// batch, data and precision. `refusal`: why these kernels could not be asked, or "".
[[nodiscard]] int64_t training_memory(Registry& registry, const NetDefinition& definition,
                                      const NetOptions& options, const DeviceSpec& kernels,
                                      std::string* refusal);

}  // namespace tandem::cli
