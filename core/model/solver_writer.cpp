#include <fmt/format.h>

#include "core/model/solver_definition.h"
#include "core/model/text_format.h"

namespace tandem {

namespace {

class Fields {
 public:
  void text(const char* name, const std::string& value) {
    if (!value.empty()) message_.fields.push_back({name, value, true, nullptr, {}});
  }
  void number(const char* name, double value) { plain(name, fmt::format("{}", value)); }
  // 0 is what an absent one means.
  void integer(const char* name, int64_t value) {
    if (value > 0) plain(name, fmt::format("{}", value));
  }
  void boolean(const char* name, bool value) { plain(name, value ? "true" : "false"); }
  [[nodiscard]] std::string written() const { return write_text_format(message_); }

 private:
  void plain(const char* name, std::string value) {
    message_.fields.push_back({name, std::move(value), false, nullptr, {}});
  }
  Message message_;
};

void write_rule(const SolverDefinition& solver, Fields& fields) {
  fields.text("type", solver.type);
  fields.number("momentum", solver.momentum);
  fields.number("momentum2", solver.momentum2);
  fields.number("rms_decay", solver.rms_decay);
  fields.number("delta", solver.delta);
  fields.number("trust_coefficient", solver.trust_coefficient);
  fields.number("weight_decay", solver.weight_decay);
  fields.text("regularization_type", solver.regularization);
  if (solver.clip_gradients > 0) fields.number("clip_gradients", solver.clip_gradients);
  fields.integer("iter_size", solver.micro_batches_per_step);
}

void write_rate(const SolverDefinition& solver, Fields& fields) {
  fields.text("lr_policy", solver.rate_policy);
  fields.number("base_lr", solver.base_rate);
  fields.number("gamma", solver.gamma);
  fields.number("power", solver.power);
  fields.integer("stepsize", solver.step_size);
  for (const int64_t value : solver.step_values) fields.integer("stepvalue", value);
  fields.integer("warmup_iter", solver.warm_up_steps);
  if (solver.warm_up_steps > 0) fields.number("warmup_start_lr", solver.warm_up_rate);
}

}  // namespace

std::string write_solver(const SolverDefinition& solver) {
  Fields fields;
  write_rule(solver, fields);
  write_rate(solver, fields);
  fields.integer("max_iter", solver.max_steps);
  fields.integer("display", solver.display);
  fields.integer("average_loss", solver.average_loss);
  fields.integer("test_interval", solver.test_interval);
  fields.integer("test_iter", solver.test_steps);
  fields.boolean("test_initialization", solver.test_initialization);
  fields.integer("snapshot", solver.snapshot);
  fields.text("snapshot_prefix", solver.snapshot_prefix);
  return fields.written();
}

}  // namespace tandem
