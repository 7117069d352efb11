#include "core/model/solver_fields.h"

#include <algorithm>

#include "core/base/strings.h"
#include "core/model/fields.h"

namespace tandem {

namespace {

const std::string owner = "solver";
const std::vector<std::string> regularizations{"L1", "L2"};

using Reader = SolverField;

std::string lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

Reader text(std::string SolverDefinition::*member) {
  return [member](const Field& f, SolverDefinition& s) { s.*member = text_of(f, owner); };
}
Reader texts(std::vector<std::string> SolverDefinition::*member) {
  return
      [member](const Field& f, SolverDefinition& s) { (s.*member).push_back(text_of(f, owner)); };
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
Reader above_zero(double SolverDefinition::*member) {
  return [member](const Field& f, SolverDefinition& s) {
    s.*member = number_of(f, owner);
    if (s.*member <= 0) throw wrong_value(f, owner, "above 0");
  };
}
// How much of the past a mean keeps.
Reader share(double SolverDefinition::*member) {
  return [member](const Field& f, SolverDefinition& s) {
    s.*member = number_of(f, owner);
    if (s.*member < 0 || s.*member >= 1) throw wrong_value(f, owner, "at least 0 and below 1");
  };
}
Reader integer(int64_t SolverDefinition::*member, int64_t least = 0) {
  return [member, least](const Field& f, SolverDefinition& s) {
    s.*member = integer_of(f, owner);
    if (s.*member < least) throw wrong_value(f, owner, fmt::format("at least {}", least));
  };
}
// A step cannot be interrupted, so it must not last for days.
void read_micro_batches_per_step(const Field& field, SolverDefinition& solver) {
  constexpr int64_t most = 100000;
  solver.micro_batches_per_step = integer_of(field, owner);
  if (solver.micro_batches_per_step < 1 || solver.micro_batches_per_step > most) {
    throw wrong_value(field, owner, fmt::format("from 1 to {}", most));
  }
}
Reader boolean(bool SolverDefinition::*member) {
  return [member](const Field& f, SolverDefinition& s) { s.*member = boolean_of(f, owner); };
}
// Read, and without an effect here: said in the log.
Reader noted(const char* why) {
  return [why](const Field& f, SolverDefinition& s) {
    s.notes.push_back(
        fmt::format("solver: {} is not used: {}{}", f.name, why, in_place(f.location)));
  };
}
// What would change the result if it were passed over.
Reader only(const std::vector<std::string>& known, std::string SolverDefinition::*member) {
  return [&known, member](const Field& f, SolverDefinition& s) {
    s.*member = text_of(f, owner);
    if (std::find(known.begin(), known.end(), s.*member) == known.end()) {
      throw wrong_value(
          f, owner,
          fmt::format("one of {}{}", fmt::join(known, ", "), did_you_mean(s.*member, known)));
    }
  };
}

// Caffe's -1: none.
void read_clip(const Field& field, SolverDefinition& solver) {
  const double clip = number_of(field, owner);
  if (clip == 0) throw wrong_value(field, owner, "above 0, or -1 for no clipping");
  solver.clip_gradients = std::max(0.0, clip);
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

// Once, though most files say both.
void note_devices(const Field& field, SolverDefinition& solver) {
  const char* why = "devices are chosen with --devices";
  const bool noted_before =
      std::any_of(solver.notes.begin(), solver.notes.end(),
                  [&](const std::string& note) { return note.find(why) != std::string::npos; });
  if (!noted_before) noted(why)(field, solver);
}

std::map<std::string, Reader> rule_fields() {
  using S = SolverDefinition;
  return {{"type", read_solver_type},
          {"solver_type", read_solver_type},
          {"base_lr", not_negative(&S::base_rate)},
          {"lr_policy", only(rate_policies(), &S::rate_policy)},
          {"gamma", number(&S::gamma)},
          {"power", number(&S::power)},
          {"stepsize", integer(&S::step_size)},
          {"stepvalue", read_step_value},
          {"warmup_iter", integer(&S::warm_up_steps)},
          {"warmup_start_lr", not_negative(&S::warm_up_rate)},
          {"momentum", share(&S::momentum)},
          {"momentum2", share(&S::momentum2)},
          {"rms_decay", share(&S::rms_decay)},
          {"delta", above_zero(&S::delta)},
          {"trust_coefficient", above_zero(&S::trust_coefficient)},
          {"weight_decay", not_negative(&S::weight_decay)},
          {"regularization_type", only(regularizations, &S::regularization)},
          {"clip_gradients", read_clip},
          {"iter_size", read_micro_batches_per_step}};
}

std::map<std::string, Reader> run_fields() {
  using S = SolverDefinition;
  return {{"net", text(&S::net)},
          {"train_net", text(&S::train_net)},
          {"test_net", read_test_net},
          {"net_param", net_inside(-1)},
          {"train_net_param", net_inside(TANDEM_TRAIN)},
          {"test_net_param", net_inside(TANDEM_TEST)},
          {"train_state", read_train_state},
          {"test_state", read_test_state},
          {"weights", texts(&S::weights)},
          {"max_iter", integer(&S::max_steps)},
          {"display", integer(&S::display)},
          {"average_loss", integer(&S::average_loss, 1)},
          {"test_interval", integer(&S::test_interval)},
          {"test_iter", read_test_steps},
          {"test_initialization", boolean(&S::test_initialization)},
          {"snapshot", integer(&S::snapshot)},
          {"snapshot_prefix", text(&S::snapshot_prefix)},
          {"random_seed", read_seed}};
}

std::map<std::string, Reader> unused_fields() {
  return {{"snapshot_format", noted("snapshots are safetensors files")},
          {"snapshot_diff", noted("gradients are not saved")},
          {"snapshot_after_train", noted("the last step is always saved")},
          {"solver_mode", note_devices},
          {"device_id", note_devices},
          {"test_compute_loss", noted("the loss of the test phase is always shown")},
          {"debug_info", noted("there is no such output")},
          {"layer_wise_reduce", noted("the strategy decides it")}};
}

}  // namespace

const std::map<std::string, SolverField>& solver_fields() {
  static const std::map<std::string, SolverField> fields = [] {
    std::map<std::string, SolverField> all = rule_fields();
    all.merge(run_fields());
    all.merge(unused_fields());
    return all;
  }();
  return fields;
}

void read_solver_type(const Field& field, SolverDefinition& solver) {
  static const std::vector<std::string> old_numbers{"SGD",     "Nesterov", "AdaGrad",
                                                    "RMSProp", "AdaDelta", "Adam"};
  const std::string written = text_of(field, owner);
  int64_t index = -1;
  if (field.name == "solver_type" && parse_integer(written, &index) && index >= 0 &&
      index < static_cast<int64_t>(old_numbers.size())) {
    solver.type = old_numbers[static_cast<size_t>(index)];
    return;
  }
  const std::vector<std::string>& known = solver_types();
  const auto found = std::find_if(known.begin(), known.end(), [&](const std::string& type) {
    return lower_case(type) == lower_case(written);
  });
  if (found == known.end()) {
    throw wrong_value(
        field, owner,
        fmt::format("one of {}{}", fmt::join(known, ", "), did_you_mean(written, known)));
  }
  solver.type = *found;
}

}  // namespace tandem
