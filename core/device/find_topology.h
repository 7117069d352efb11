// What the hardware says of the links between a machine's devices.
#pragma once

#include <memory>
#include <string>

#include "core/device/machine.h"

namespace tandem {

// Its text is "", as nobody wrote it. Null where the backend knows nothing of links, or there is
// one device. Error where it fails, or tells what makes no sense.
[[nodiscard]] std::shared_ptr<const Topology> find_topology(const Machine& machine);

// Errors: no path for a pair, a path through a channel that is not there, a bandwidth that is not
// above 0. For what was not read by parse_topology(), which finds them itself.
void require_sound(const Topology& topology);

// For a sentence: "the topology FILE", or whose links were found.
[[nodiscard]] std::string source_text(const Topology& topology);

// "cuda0 -> cuda1", bandwidth, latency, and the channels that the path passes; a line a pair.
[[nodiscard]] std::string links_table(const Topology& topology);

}  // namespace tandem
