// Caffe's SolverParameter: the update rule and its constants, the learning rate policy and the
// intervals. A field without an effect here leaves a note. Unknown fields, values out of range and
// settings that contradict each other are an Error with near names and file:line.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/model/file/definition.h"

namespace tandem {

struct SolverDefinition {
  std::string file;
  std::string type = "SGD";  // one of solver_types()
  // As written; the caller resolves relative paths.
  std::string net, train_net;
  std::vector<std::string> test_nets;           // test_net
  std::optional<NetDefinition> net_definition;  // net_param, or train_net_param and test_net_param
  NetState train_state;
  std::vector<NetState> test_states;  // one for each test net; only the first is tested
  std::vector<std::string> weights;   // initial weights

  double base_rate = 0.01;            // base_lr
  std::string rate_policy = "fixed";  // lr_policy: one of rate_policies()
  double gamma = 0, power = 0;
  int64_t step_size = 0;             // stepsize
  std::vector<int64_t> step_values;  // stepvalue
  // Linear warm-up over the first warmup_iter steps, from warmup_start_lr to base_lr.
  int64_t warm_up_steps = 0;
  double warm_up_rate = 0;

  double momentum = 0;
  double momentum2 = 0.999;          // of Adam and AdamW
  double rms_decay = 0.99;           // of RMSProp
  double delta = 1e-8;               // keeps a divisor from zero
  double trust_coefficient = 0.001;  // of LARS
  double weight_decay = 0;
  std::string regularization = "L2";   // or L1
  double clip_gradients = 0;           // largest norm of all gradients together; 0: not clipped
  int64_t micro_batches_per_step = 1;  // iter_size

  int64_t max_steps = 0;  // max_iter
  int64_t display = 0, average_loss = 1;
  int64_t test_interval = 0, test_steps = 0;  // test_iter
  bool test_initialization = true;
  int64_t snapshot = 0;
  std::string snapshot_prefix;
  std::optional<uint64_t> seed;    // random_seed
  bool has_rate = false;           // the text says base_lr
  std::vector<std::string> notes;  // on fields without an effect, for the log
};

// SGD, Nesterov, AdaGrad, RMSProp, AdaDelta, Adam, AdamW, LARS; fixed, step, exp, inv, ...
[[nodiscard]] const std::vector<std::string>& solver_types();
[[nodiscard]] const std::vector<std::string>& rate_policies();

// `changes`: values by field name that replace those of the file (--solver-option).
[[nodiscard]] SolverDefinition read_solver(const std::filesystem::path& path,
                                           const std::map<std::string, std::string>& changes = {});
// What write_solver() has written.
[[nodiscard]] SolverDefinition read_solver_text(const std::string& text);
// Without a file: the usual constants of the type (docs/reference/solvers.md), changed likewise.
[[nodiscard]] SolverDefinition default_solver(
    const std::string& type, const std::map<std::string, std::string>& changes = {});
// The solver as prototxt, for the run folder: reading it gives the same definition without nets,
// weights and notes.
[[nodiscard]] std::string write_solver(const SolverDefinition& solver);

}  // namespace tandem
