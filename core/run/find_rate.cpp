#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/model/file/learning_rate.h"
#include "core/run/rate_curve.h"
#include "core/run/setup/session_options.h"
#include "core/run/training_run.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// L. Smith: Cyclical Learning Rates for Training Neural Networks, 2017, section 3.3. Nets with
// BatchNorm train well at rates at which this loss has long risen, so that trials decide.
constexpr int64_t curve_steps = 100;
constexpr double first_rate = 1e-6, last_rate = 10;
// Of trials, in two rounds.
constexpr int64_t short_steps = 100, long_steps = 300;
constexpr size_t long_trials = 3;
constexpr int64_t test_images = 2000;

// Collects the points of a run, and stops it at the user's wish, or where its loss rises far.
class PointObserver : public Observer {
 public:
  // `said`: the messages of the runs before, which are not said again.
  PointObserver(RateCurve& curve, Observer& next, const std::atomic<bool>* user, bool ends_at_rise,
                std::set<std::string>& said)
      : curve_(curve), next_(next), user_(user), ends_at_rise_(ends_at_rise), said_(said) {}

  void on_message(const std::string& line) override {
    if (said_.insert(line).second) next_.on_message(line);
  }

  void on_step(const StepReport& report) override {
    add_point(curve_, report.rate, report.loss);
    next_.on_step(report);
    if (ends_at_rise_ && rises_far(curve_)) curve_.diverged = true;
    if (curve_.diverged || (user_ != nullptr && *user_)) stop = true;
  }

  std::atomic<bool> stop = false;

 private:
  RateCurve& curve_;
  Observer& next_;
  const std::atomic<bool>* user_;
  bool ends_at_rise_;
  std::set<std::string>& said_;
};

void require_search(const TrainOptions& options) {
  if (options.resume) {
    throw error(
        "--find-lr and --resume: a run that has begun keeps its rate; leave one of them out");
  }
  if (options.check_plugins) {
    throw error(
        "--find-lr and --check-plugins: leave one of them out; 'train' alone checks plugins");
  }
  if (!options.plugin_check_without.empty()) {
    throw error(
        "--find-lr and --plugin-check-without: leave the latter out; 'train' alone tries plugins");
  }
  if (options.ranks > 1 || launched_ranks() > 1)
    throw error("--find-lr is for one process, not for several ranks");
}

void write_curve(RateCurve& curve, const fs::path& folder) {
  make_folders(folder);
  curve.table = folder / "find_lr.csv";
  curve.picture = folder / "find_lr.svg";
  write_text_file(curve.table, to_csv(curve));
  write_text_file(curve.picture, to_svg(curve));
}

class RateSearch {
 public:
  RateSearch(const TrainOptions& options, Observer& observer)
      : options_(options),
        observer_(observer),
        registry_(Registry::with_defaults()),
        setup_(resolve(registry_, options)),
        solver_(setup_.solver),
        run_(setup_.record.options),
        head_(setup_.record.head) {
    require_computing(registry_, run_.devices);
    leave_out_what_is_of_whole_runs();
    short_steps_ = std::min(short_steps, run_.steps);
    // A round of nearly the same length would say nothing new.
    long_steps_ = run_.steps < 2 * short_steps ? short_steps_ : std::min(long_steps, run_.steps);
  }

  RateCurve go() {
    for (const std::string& message : setup_.messages) observer_.on_message(message);
    say_how_long();
    find_curve();
    std::vector<RateCurve::Trial> round;
    for (const double rate : trial_rates(curve_)) round.push_back(trial(rate, short_steps_));
    while (const double rate = rate_beyond(round)) round.push_back(trial(rate, short_steps_));
    if (long_steps_ > short_steps_) {
      ++*run_.seed;  // luck of the first round does not count twice
      const std::vector<RateCurve::Trial> best = best_of(round, long_trials);
      round.clear();
      for (const RateCurve::Trial& one : best) round.push_back(trial(one.rate, long_steps_));
    }
    const RateCurve::Trial best = best_of(round, 1).front();
    require_learning(best);
    curve_.suggestion = best.rate;
    write_curve(curve_, options_.out);
    return std::move(curve_);
  }

 private:
  void leave_out_what_is_of_whole_runs() {
    run_.snapshot = 0;
    run_.patience = 0;
    run_.average_decay = 0;
    run_.timeline = false;
    solver_.average_loss = 1;
    solver_.test_initialization = false;
    setup_.ends_at_infinity = true;
    if (setup_.validation_data == nullptr) return;
    const int64_t all = setup_.validation_data->size();
    const int64_t tested = setup_.test_samples > 0 ? setup_.test_samples : all;
    setup_.test_samples = std::min(tested, test_images);
  }

  void say_how_long() {
    const auto rates = int64_t(max_rates);
    int64_t most = curve_steps + rates * short_steps_;
    std::string rounds = fmt::format("{} trials of {}", rates, short_steps_);
    if (long_steps_ > short_steps_) {
      most += int64_t(long_trials) * long_steps_;
      rounds += fmt::format(" and {} of {}", long_trials, long_steps_);
    }
    observer_.on_message(
        fmt::format("net '{}': {} steps of batch {} at rates from {} to {}, then at most {}; at "
                    "most {} steps in all (the run itself has {})",
                    setup_.record.net_name, curve_steps, run_.batch, first_rate, last_rate, rounds,
                    most, run_steps_));
  }

  void find_curve() {
    setup_.solver = solver_;
    setup_.solver.rate_policy = "exp";
    setup_.solver.base_rate = first_rate;
    setup_.solver.gamma = std::pow(last_rate / first_rate, 1.0 / double(curve_steps - 1));
    setup_.solver.warm_up_steps = 0;
    setup_.record.head.clear();
    std::unique_ptr<Dataset> validation = std::exchange(setup_.validation_data, nullptr);
    const TrainResult result = run(curve_, curve_steps, true, "the rising rates");
    setup_.validation_data = std::move(validation);
    setup_.record.head = head_;
    curve_.diverged = curve_.diverged || result.steps < curve_steps;
  }

  // The run's own recipe with this rate, fitted to so many steps.
  RateCurve::Trial trial(double rate, int64_t steps) {
    const double share = double(steps) / double(run_steps_);
    SolverDefinition& solver = setup_.solver = solver_;
    if (solver.base_rate > 0) solver.warm_up_rate *= rate / solver.base_rate;
    solver.base_rate = rate;
    solver.max_steps = steps;
    solver.warm_up_steps = std::llround(double(solver.warm_up_steps) * share);
    fit_policy(solver, share);
    run_.unfreeze_after = unfreeze_after_ * share;
    begin_with_head(registry_, 0, setup_);
    RateCurve points;
    const TrainResult result =
        run(points, steps, false, fmt::format("trial {}", curve_.trials.size() + 1));
    const Evaluation& last = result.last;
    RateCurve::Trial trial{rate, steps, std::numeric_limits<double>::infinity()};
    const double loss = last.has_loss ? last.loss : last_loss(points);
    if (result.steps == steps && std::isfinite(loss)) {
      curve_.is_validated = last.has_loss;
      curve_.is_scored = last.has_score;
      trial.loss = loss;
      trial.score = last.has_score ? last.score : 0;
      trial.samples = last.has_score ? last.samples : 0;
      trial.learns = learns(curve_, points) &&
                     beats_constant_scores(last, int64_t(setup_.record.class_names.size()));
    }
    observer_.on_message(fmt::format("trial {}, {} step{} at {:.3g}: {}", curve_.trials.size() + 1,
                                     steps, steps == 1 ? "" : "s", rate, text_of(trial, last)));
    curve_.trials.push_back(trial);
    return trial;
  }

  [[nodiscard]] static std::string text_of(const RateCurve::Trial& trial, const Evaluation& last) {
    if (!std::isfinite(trial.loss)) return "the loss is not finite";
    if (!last.has_loss) return fmt::format("training loss {:.4g}", trial.loss);
    return fmt::format("validation loss {:.4g}", trial.loss) +
           (last.has_accuracy ? fmt::format(", {:.1f} % right", 100 * last.top1) : "");
  }

  void require_learning(const RateCurve::Trial& best) const {
    if (best.learns) return;
    const auto [lowest, highest] =
        std::minmax_element(curve_.trials.begin(), curve_.trials.end(),
                            [](const auto& a, const auto& b) { return a.rate < b.rate; });
    throw error(
        "--find-lr: at no rate from {:.3g} to {:.3g} did a trial of up to {} steps learn more than "
        "its loss varies from batch to batch, or than equal scores for all images: nothing can be "
        "suggested; {}take a larger --batch, train longer, or look at the data with 'tandem data'",
        lowest->rate, highest->rate, long_steps_,
        setup_.first_weights.empty() ? "begin with trained weights (--weights), " : "");
  }

  // Error where the user stops it. `what` runs, for the message.
  TrainResult run(RateCurve& points, int64_t steps, bool ends_at_rise, const std::string& what) {
    PointObserver collector(points, observer_, options_.stop, ends_at_rise, said_);
    run_.stop = &collector.stop;
    run_.steps = run_.test_interval = steps;
    SessionOptions opened = session_options(registry_, setup_);
    if (setup_.head_net) {
      opened.strategy = "sequential";
      opened.strategy_options.clear();
    }
    std::optional<Session> session(std::in_place, registry_,
                                   setup_.head_net ? *setup_.head_net : setup_.net, opened);
    setup_.record.algorithms = session->options().tuning.choices;
    session->set_first_weights(setup_.first_weights, *run_.seed);
    const TrainResult result = TrainingRun(registry_, setup_, nullptr, session, collector).go();
    if (options_.stop != nullptr && *options_.stop) {
      throw error("--find-lr was stopped after {} of {} steps of {}: nothing is written",
                  result.steps, steps, what);
    }
    return result;
  }

  const TrainOptions& options_;
  Observer& observer_;
  Registry registry_;
  TrainSetup setup_;
  SolverDefinition solver_;  // of the whole run
  TrainOptions& run_;        // of the curve or trial that runs
  const std::vector<std::string> head_;
  int64_t run_steps_ = run_.steps;
  double unfreeze_after_ = run_.unfreeze_after.value_or(0);
  int64_t short_steps_ = 0, long_steps_ = 0;
  std::set<std::string> said_;
  RateCurve curve_;
};

}  // namespace

RateCurve find_rate(const TrainOptions& options, Observer& observer) {
  require_search(options);
  if (!options.data.empty()) observer.on_message(fmt::format("reading data '{}'", options.data));
  return RateSearch(options, observer).go();
}

}  // namespace tandem
