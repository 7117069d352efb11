#include "core/model/solver_checks.h"

#include "core/model/fields.h"

namespace tandem {

namespace {

class Checks {
 public:
  Checks(const SolverDefinition& solver, const std::map<std::string, Location>& written)
      : solver_(solver), written_(written) {}

  void nets() const {
    if (has("net") && has("train_net")) {
      throw error("solver: net and train_net both name the net to train: keep one of them{}",
                  at("train_net"));
    }
    if (has("test_net") && !has("net") && !has("train_net")) {
      throw error("solver: test_net without a net to train: write net or train_net, too{}",
                  at("test_net"));
    }
    const bool tests = has("net") || has("test_net");
    if (solver_.test_interval > 0 && has("train_net") && !tests) {
      throw error(
          "solver: test_interval is {}, but with train_net alone there is no net to test: "
          "write test_net, too, or net instead of train_net{}",
          solver_.test_interval, at("test_interval"));
    }
  }

  void policy() const {
    const std::string& policy = solver_.rate_policy;
    const bool drops = policy == "step" || policy == "multistep" || policy == "exp";
    if (policy == "step") require(solver_.step_size > 0, "stepsize", "steps between two drops");
    if (policy == "multistep") {
      require(!solver_.step_values.empty(), "stepvalue", "steps that drop it");
    }
    if (drops) require(solver_.gamma > 0, "gamma", "above 0: what the rate is multiplied with");
    if (policy == "inv" && solver_.gamma < 0) {
      throw error("solver: gamma is {}, but must be at least 0 with lr_policy 'inv'{}",
                  solver_.gamma, at("gamma"));
    }
    if (policy == "poly" || policy == "cosine") {
      require(solver_.max_steps > 0, "max_iter", "where the rate reaches zero");
    }
    if (has("warmup_start_lr") && solver_.warm_up_steps == 0) {
      throw error("solver: warmup_start_lr needs warmup_iter (steps until the rate is base_lr){}",
                  at("warmup_start_lr"));
    }
  }

  void rule() const {
    const std::string& type = solver_.type;
    if ((type == "AdaGrad" || type == "RMSProp") && solver_.momentum > 0) {
      throw error("solver: momentum is {}, but must be 0: type '{}' has none{}", solver_.momentum,
                  type, at("momentum"));
    }
    if (type == "AdaDelta" && solver_.momentum == 0) {
      throw error(
          "solver: type 'AdaDelta' needs momentum (above 0: how its mean squares decay, "
          "e.g. 0.95){}",
          at("type"));
    }
    if (type == "AdamW" && solver_.regularization == "L1") {
      throw error(
          "solver: regularization_type is 'L1', but type 'AdamW' decays the weights "
          "themselves, which is neither L1 nor L2: use 'Adam' for L1{}",
          at("regularization_type"));
    }
  }

 private:
  [[nodiscard]] bool has(const std::string& field) const { return written_.contains(field); }
  // Where the field stands; what is missing is missing in the file.
  [[nodiscard]] std::string at(const std::string& field) const {
    const auto found = written_.find(field);
    return in_place(found != written_.end() ? found->second : Location{solver_.file, 0, 0});
  }
  void require(bool present, const char* field, const char* meaning) const {
    if (present) return;
    throw error("solver: lr_policy '{}' needs {} ({}){}", solver_.rate_policy, field, meaning,
                at("lr_policy"));
  }

  const SolverDefinition& solver_;
  const std::map<std::string, Location>& written_;
};

}  // namespace

void check_solver(const SolverDefinition& solver, const std::map<std::string, Location>& written) {
  const Checks checks(solver, written);
  checks.nets();
  checks.policy();
  checks.rule();
}

}  // namespace tandem
