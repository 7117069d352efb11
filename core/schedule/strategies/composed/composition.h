// One plan of two ways to spread layers over devices. Chains of fully connected layers are divided
// by neurons over groups of devices (column_parallel_linear.h), and the groups sum the gradients of
// equal slices. Every other layer is data-parallel: each bucket of gradients is summed over all
// devices as soon as it exists, and the new weights are broadcast during the next step's forward
// pass, in the order in which it needs them. Losses and statistics of the whole batch have streams
// of their own, so that they do not queue after gradients. Strategies say what is divided and how.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/schedule/builder/strategy_inputs.h"
#include "core/schedule/plan/plan.h"
#include "core/schedule/strategies/composed/fc_chain.h"
#include "core/schedule/strategies/composed/rounds.h"

namespace tandem {

struct DividedChain {
  FcChain chain;
  int group = 2;  // devices, a divisor of all; smaller ones are neighbors by the topology
};

struct Composition {
  std::string strategy;
  std::string reduce = "ring";  // of data-parallel gradients: serial, tree or ring
  int64_t bucket = 1;           // the least bytes of a bucket of them
  int pieces = 2;               // of a part of a ring, at most
  // In the order of the net.
  std::vector<DividedChain> divided{};
  FcParallelOptions rounds{};  // of chains that all devices divide
};

[[nodiscard]] Plan compose(const StrategyInputs& inputs, const Composition& composition);

// Smaller buckets would cost mostly latency. A ring sends parts; each of them should take several
// latencies.
[[nodiscard]] int64_t default_bucket(const StrategyInputs& inputs, const std::string& reduce);

}  // namespace tandem
