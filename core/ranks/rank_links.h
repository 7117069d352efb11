// The links between the devices of several ranks: measured, and as a topology that plans are made
// for. Ranks of one host exchange messages through a switch of the host, hosts through a network;
// each host's connection to the network is shared by its ranks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/device/communicator.h"
#include "core/device/parse.h"
#include "core/device/topology.h"
#include "core/plugin/registry.h"
#include "core/ranks/message_times.h"

namespace tandem {

// What was measured, by host in the order of their first ranks.
struct RankLinks {
  std::vector<int> host_of_rank;                   // number of the host
  std::vector<std::string> hosts;                  // names
  std::vector<std::optional<LinkSpeed>> within;    // between two ranks of the host; none: one rank
  std::vector<std::optional<LinkSpeed>> to_first;  // to the first host; none for that one
  std::optional<LinkSpeed> copies;                 // between devices of one rank; none: one device
  std::string path;                                // of the messages, as MessageTimes::path()
};

// Measures messages between ranks, and copies between the devices of rank 0 in `spec`, which every
// rank has. `threads`: of each rank; 0: its share. Called by all ranks; only rank 0's result has
// numbers.
[[nodiscard]] RankLinks measure_rank_links(const Communicator& ranks, const Registry& registry,
                                           const DeviceSpec& spec, int threads);

// What was measured, as a topology of the devices of all ranks. Called by all ranks.
[[nodiscard]] std::shared_ptr<const Topology> measured_topology(const Communicator& ranks,
                                                                const Registry& registry,
                                                                const DeviceSpec& spec,
                                                                int threads);

// In the text format of core/schedule/cost/topology_file.h, with `devices` devices in each rank.
[[nodiscard]] std::string rank_topology_text(const RankLinks& links, int devices);

}  // namespace tandem
