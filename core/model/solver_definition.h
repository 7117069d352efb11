// Caffe's SolverParameter: the rule and its constants, the rate policy and the intervals. Fields
// that make no sense here are noted for a message; unknown fields, values out of range and settings
// that contradict each other are an Error with near names and file:line.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/model/definition.h"

namespace tandem {

struct SolverDefinition {
  std::string file;
  std::string type = "SGD";  // one of solver_types()
  // As written; relative paths are the caller's to resolve.
  std::string net, train_net;
  std::vector<std::string> test_nets;           // test_net
  std::optional<NetDefinition> net_definition;  // net_param, or train_net_param and test_net_param
  NetState train_state;
  std::vector<NetState> test_states;  // one a test net; only the first is tested
  std::vector<std::string> weights;   // to start from

  double base_rate = 0.01;            // base_lr
  std::string rate_policy = "fixed";  // lr_policy: one of rate_policies()
  double gamma = 0, power = 0;
  int64_t step_size = 0;             // stepsize
  std::vector<int64_t> step_values;  // stepvalue
  int64_t warm_up_steps = 0;         // warmup_iter: the rate rises linearly over so many steps ...
  double warm_up_rate = 0;           // warmup_start_lr: ... from here to base_lr

  double momentum = 0;
  double momentum2 = 0.999;          // of Adam and AdamW
  double rms_decay = 0.99;           // of RMSProp
  double delta = 1e-8;               // what keeps a divisor from zero
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
  std::vector<std::string> notes;  // fields read and left unused, for the log
};

// SGD, Nesterov, AdaGrad, RMSProp, AdaDelta, Adam, AdamW, LARS; fixed, step, exp, inv, ...
[[nodiscard]] const std::vector<std::string>& solver_types();
[[nodiscard]] const std::vector<std::string>& rate_policies();

// `changes`: fields by name whose values replace the file's, as --solver-option says them.
[[nodiscard]] SolverDefinition read_solver(const std::filesystem::path& path,
                                           const std::map<std::string, std::string>& changes = {});
// Without a file: what the type is usually begun with (README), changed likewise.
[[nodiscard]] SolverDefinition default_solver(
    const std::string& type, const std::map<std::string, std::string>& changes = {});
// The solver as prototxt again, for the run folder: reading it gives the same definition, but for
// the nets, the weights and the notes.
[[nodiscard]] std::string write_solver(const SolverDefinition& solver);

// The learning rate of a step (0-based): Caffe's formulas, a half cosine over max_iter steps
// (Loshchilov and Hutter: SGDR), and before them the linear warm-up (Goyal et al.).
[[nodiscard]] double learning_rate(const SolverDefinition& solver, int64_t step);

}  // namespace tandem
