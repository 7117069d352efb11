#include "core/model/solver_definition.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "core/base/strings.h"
#include "core/model/fields.h"

namespace tandem {

namespace {

const std::string owner = "solver";
const std::vector<std::string> policies{"fixed",     "step", "exp",    "inv",
                                        "multistep", "poly", "sigmoid"};
const std::vector<std::string> types{"SGD"};

using Reader = std::function<void(const Field&, SolverDefinition&)>;

Reader text(std::string SolverDefinition::*member) {
  return [member](const Field& f, SolverDefinition& s) { s.*member = text_of(f, owner); };
}
Reader number(double SolverDefinition::*member) {
  return [member](const Field& f, SolverDefinition& s) { s.*member = number_of(f, owner); };
}
Reader not_negative(double SolverDefinition::*member) {
  return [member](const Field& f, SolverDefinition& s) {
    s.*member = number_of(f, owner);
    if (s.*member < 0) throw wrong_value(f, owner, "at least 0");
  };
}
Reader integer(int64_t SolverDefinition::*member) {
  return [member](const Field& f, SolverDefinition& s) {
    s.*member = integer_of(f, owner);
    if (s.*member < 0) throw wrong_value(f, owner, "at least 0");
  };
}
// Read, and without an effect here: said in the log.
Reader noted(const char* why) {
  return [why](const Field& f, SolverDefinition& s) {
    s.notes.push_back(
        fmt::format("solver: {} is not used: {}{}", f.name, why, in_place(f.location)));
  };
}
// What would change the result if it were passed over.
Reader refused(const char* why) {
  return [why](const Field& f, SolverDefinition&) {
    throw error("{}: {} is not supported: {}{}", owner, f.name, why, in_place(f.location));
  };
}
Reader only(const std::vector<std::string>& known, std::string SolverDefinition::*member) {
  return [&known, member](const Field& f, SolverDefinition& s) {
    s.*member = text_of(f, owner);
    if (std::find(known.begin(), known.end(), s.*member) == known.end()) {
      throw wrong_value(f, owner,
                        fmt::format("{}{}{}", known.size() > 1 ? "one of " : "",
                                    fmt::join(known, ", "), did_you_mean(s.*member, known)));
    }
  };
}

void read_iter_size(const Field& field, SolverDefinition&) {
  if (positive_of(field, owner) == 1) return;
  throw wrong_value(field, owner, "1: give the whole batch with --batch instead");
}
void read_clip(const Field& field, SolverDefinition&) {
  if (number_of(field, owner) <= 0) return;
  throw error("{}: {} is not supported: gradients are not clipped{}", owner, field.name,
              in_place(field.location));
}
void read_regularization(const Field& field, SolverDefinition& solver) {
  solver.regularization = text_of(field, owner);
  if (solver.regularization != "L2") throw wrong_value(field, owner, "L2");
}
void read_test_steps(const Field& field, SolverDefinition& solver) {
  const int64_t steps = integer_of(field, owner);
  if (steps < 0) throw wrong_value(field, owner, "at least 0");
  if (solver.test_steps == 0) solver.test_steps = steps;  // the first test net's
}
void read_step_value(const Field& field, SolverDefinition& solver) {
  const int64_t value = integer_of(field, owner);
  if (!solver.step_values.empty() && value <= solver.step_values.back()) {
    throw wrong_value(field, owner,
                      fmt::format("above the stepvalue before it, {}", solver.step_values.back()));
  }
  solver.step_values.push_back(value);
}
void read_train_state(const Field& field, SolverDefinition& solver) {
  solver.train_state = read_state(field, owner);
}
void read_test_state(const Field& field, SolverDefinition& solver) {
  solver.test_states.push_back(read_state(field, owner));
  if (solver.test_states.size() == 2) {
    solver.notes.push_back(fmt::format(
        "solver: only the first test_state is tested (stages: {}); test another one with "
        "--test-stage{}",
        fmt::join(solver.test_states.front().stages, ", "), in_place(field.location)));
  }
}
void read_test_net(const Field& field, SolverDefinition& solver) {
  solver.test_nets.push_back(text_of(field, owner));
  if (solver.test_nets.size() == 2) {
    solver.notes.push_back(fmt::format("solver: only the first test_net is tested ('{}'){}",
                                       solver.test_nets.front(), in_place(field.location)));
  }
}
// A net inside the solver's file. Of train_net_param and test_net_param each stands for one phase.
Reader net_inside(int32_t phase) {
  return [phase](const Field& field, SolverDefinition& solver) {
    NetDefinition net = parse_net(block_of(field, owner), solver.file);
    if (net.name.empty()) net.name = std::filesystem::path(solver.file).stem().string();
    if (phase < 0 || !solver.net_definition) {
      solver.net_definition = std::move(net);
    } else if (phase == TANDEM_TEST) {
      solver.net_definition = joined(*solver.net_definition, net);
    } else {
      solver.net_definition = joined(net, *solver.net_definition);
    }
  };
}
void read_seed(const Field& field, SolverDefinition& solver) {
  const int64_t seed = integer_of(field, owner);
  if (seed >= 0) solver.seed = static_cast<uint64_t>(seed);  // Caffe's -1: whatever seed
}

std::map<std::string, Reader> used_fields() {
  using S = SolverDefinition;
  return {{"net", text(&S::net)},
          {"train_net", text(&S::train_net)},
          {"test_net", read_test_net},
          {"net_param", net_inside(-1)},
          {"train_net_param", net_inside(TANDEM_TRAIN)},
          {"test_net_param", net_inside(TANDEM_TEST)},
          {"train_state", read_train_state},
          {"test_state", read_test_state},
          {"base_lr", not_negative(&S::base_rate)},
          {"lr_policy", only(policies, &S::rate_policy)},
          {"gamma", number(&S::gamma)},
          {"power", number(&S::power)},
          {"stepsize", integer(&S::step_size)},
          {"stepvalue", read_step_value},
          {"momentum", not_negative(&S::momentum)},
          {"weight_decay", not_negative(&S::weight_decay)},
          {"regularization_type", read_regularization},
          {"max_iter", integer(&S::max_steps)},
          {"display", integer(&S::display)},
          {"test_interval", integer(&S::test_interval)},
          {"test_iter", read_test_steps},
          {"snapshot", integer(&S::snapshot)},
          {"random_seed", read_seed},
          {"type", only(types, &S::type)},
          {"solver_type", only(types, &S::type)},
          {"iter_size", read_iter_size},
          {"clip_gradients", read_clip}};
}

std::map<std::string, Reader> unused_fields() {
  const Reader place = noted("checkpoints go to the run folder");
  const Reader device = noted("devices are chosen with --devices");
  const Reader other = noted("it belongs to another type of solver");
  return {{"snapshot_prefix", place},
          {"snapshot_format", place},
          {"snapshot_diff", noted("gradients are not saved")},
          {"snapshot_after_train", noted("the last step is always saved")},
          {"solver_mode", device},
          {"device_id", device},
          {"test_initialization", noted("testing begins after training has")},
          {"test_compute_loss", noted("the loss of the test phase is always shown")},
          {"average_loss", noted("the loss is shown as it is")},
          {"debug_info", noted("there is no such output")},
          {"layer_wise_reduce", noted("the strategy decides it")},
          {"delta", other},
          {"momentum2", other},
          {"rms_decay", other},
          {"weights", refused("it names weights to start from")}};
}

void check_policy(const SolverDefinition& solver) {
  const std::string where = in_place({solver.file, 0, 0});
  const auto demand = [&](bool present, const char* field, const char* meaning) {
    if (present) return;
    throw error("{}: lr_policy '{}' needs {} ({}){}", owner, solver.rate_policy, field, meaning,
                where);
  };
  const std::string& policy = solver.rate_policy;
  if (policy == "step") demand(solver.step_size > 0, "stepsize", "steps between two drops");
  if (policy == "multistep") demand(!solver.step_values.empty(), "stepvalue", "steps that drop it");
  if (policy == "poly") demand(solver.max_steps > 0, "max_iter", "where the rate reaches zero");
  if (solver.momentum >= 1) {
    throw error("{}: momentum is {}, but must be below 1{}", owner, solver.momentum, where);
  }
}

}  // namespace

SolverDefinition read_solver(const std::filesystem::path& path) {
  std::map<std::string, Reader> readers = used_fields();
  readers.merge(unused_fields());
  std::vector<std::string> known;
  for (const auto& [name, reader] : readers) known.push_back(name);

  SolverDefinition solver;
  solver.file = path.string();
  const Message message = read_text_format(path);
  demand_known(message, known, "field", owner);
  for (const Field& field : message.fields) readers.at(field.name)(field, solver);
  check_policy(solver);
  return solver;
}

double learning_rate(const SolverDefinition& solver, int64_t step) {
  const double base = solver.base_rate;
  const double gamma = solver.gamma;
  const auto at = static_cast<double>(step);
  if (solver.rate_policy == "step") {
    const int64_t drops = solver.step_size > 0 ? step / solver.step_size : 0;
    return base * std::pow(gamma, static_cast<double>(drops));
  }
  if (solver.rate_policy == "exp") return base * std::pow(gamma, at);
  if (solver.rate_policy == "inv") return base * std::pow(1 + gamma * at, -solver.power);
  if (solver.rate_policy == "multistep") {
    const auto drops = std::count_if(solver.step_values.begin(), solver.step_values.end(),
                                     [step](int64_t value) { return value <= step; });
    return base * std::pow(gamma, static_cast<double>(drops));
  }
  if (solver.rate_policy == "poly") {
    const double left = 1 - at / static_cast<double>(std::max<int64_t>(1, solver.max_steps));
    return base * std::pow(std::max(0.0, left), solver.power);
  }
  if (solver.rate_policy == "sigmoid") {
    return base / (1 + std::exp(-gamma * (at - static_cast<double>(solver.step_size))));
  }
  return base;
}

}  // namespace tandem
