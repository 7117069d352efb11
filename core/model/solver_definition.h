// Caffe's SolverParameter as far as it is used here: the rate policy, momentum, decay and the
// intervals. Fields that make no sense here are noted for a message; unknown fields are an Error
// with near names and file:line.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/model/definition.h"

namespace tandem {

struct SolverDefinition {
  std::string file;
  std::string type = "SGD";
  std::string net, train_net;          // as written; relative paths are the caller's to resolve
  std::vector<std::string> test_nets;  // test_net
  std::optional<NetDefinition> net_definition;  // net_param, or train_net_param and test_net_param
  NetState train_state;
  std::vector<NetState> test_states;  // one a test net; only the first is tested
  double base_rate = 0.01;            // base_lr
  std::string rate_policy = "fixed";  // lr_policy: fixed step exp inv multistep poly sigmoid
  double gamma = 0, power = 0;
  int64_t step_size = 0;             // stepsize
  std::vector<int64_t> step_values;  // stepvalue
  double momentum = 0, weight_decay = 0;
  std::string regularization = "L2";
  int64_t max_steps = 0;  // max_iter
  int64_t display = 0;
  int64_t test_interval = 0, test_steps = 0;  // test_iter
  int64_t snapshot = 0;
  std::optional<uint64_t> seed;    // random_seed
  std::vector<std::string> notes;  // fields read and left unused, for the log
};

[[nodiscard]] SolverDefinition read_solver(const std::filesystem::path& path);
// The learning rate of a step (0-based), Caffe's formulas.
[[nodiscard]] double learning_rate(const SolverDefinition& solver, int64_t step);

}  // namespace tandem
