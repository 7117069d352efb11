// The rounds of the backward pass of divided linear layers, and what each layer sends.
// The gradient of a layer's output is the sum of N parts, one from each device. A round takes
// `quota` of them, so that it starts before the others have arrived; all is linear, so the results
// of a layer's rounds add up. The input gradients are sent once, after the last round, or (eager)
// after each round.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/schedule/strategies/composed/fc_chain.h"

namespace tandem {

// The rows of each device, as they are divided evenly.
[[nodiscard]] std::vector<Interval> shares_of(int64_t batch, int devices);

struct FcParallelOptions {
  int quota = 0;  // parts of the activation gradients that a round waits for; 0: chosen
  bool eager = false;
};

// A quota of 0 becomes one that gives one round, or two if eager. Error for a quota that is out of
// range, or that leaves one round if eager.
[[nodiscard]] FcParallelOptions completed(FcParallelOptions options, int devices);

// One reduce-scatter of the gradients of a linear layer's input: each device sends its part of the
// sum to the owners of slices of the input.
struct ReduceScatter {
  int number = 0;     // among those of the layer
  Interval rows;      // of the batch
  std::string name;   // "round 3"; "" of a layer's only one
  bool adds = false;  // to an earlier one for the same rows
};

struct Round {
  int number = 0;               // among those of the layer
  std::string name;             // "round 3"
  Interval rows;                // of the batch
  ReduceScatter received;       // the one whose parts it takes
  Interval parts;               // of these, in the order of arrival: 0 is the device's own
  ReduceScatter sent;           // the one that its input gradients belong to
  bool adds_to_sent = false;    // an earlier round has computed gradients for the same rows
  bool completes_sent = false;  // it is sent after this round
};

class BackwardRounds {
 public:
  // `rows`: of each device of the group, one after the other. Errors: those of completed(), and
  // more rounds than a layer may have.
  BackwardRounds(const Net& net, const FcChain& chain, const std::vector<Interval>& rows,
                 FcParallelOptions options);

  // Of a linear layer of the chain. The last layer receives rows from each device, so that each of
  // its rounds has rows of its own; the rounds of other layers share their rows.
  [[nodiscard]] const std::vector<Round>& of(int layer) const { return rounds_.at(layer); }
  // The rows of each backward pass of the layers before the last: one interval is the whole batch.
  [[nodiscard]] const std::vector<Interval>& row_blocks() const { return row_blocks_; }
  // The number of rounds in which the layer computes the gradients of a row.
  [[nodiscard]] int repetitions(int layer) const { return repetitions_.at(layer); }
  [[nodiscard]] const FcParallelOptions& options() const { return options_; }

 private:
  [[nodiscard]] std::vector<ReduceScatter> number_and_send(std::vector<Round>& rounds,
                                                           Interval batch) const;

  FcParallelOptions options_;                 // completed
  std::map<int, std::vector<Round>> rounds_;  // by layer
  std::map<int, int> repetitions_;            // by layer
  std::vector<Interval> row_blocks_;
};

}  // namespace tandem
