#include <atomic>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/run/rate_curve.h"
#include "core/run/setup/session_options.h"
#include "core/run/training_run.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// L. Smith: Cyclical Learning Rates for Training Neural Networks, 2017, section 3.3.
constexpr int64_t search_steps = 100;
constexpr int searches = 3;  // of other seeds; one has too much noise
constexpr double first_rate = 1e-6, last_rate = 10;

// Collects the curve, and stops the run where the loss rises far.
class CurveObserver : public Observer {
 public:
  CurveObserver(RateCurve& curve, Observer& next, const std::atomic<bool>* user)
      : curve_(curve), next_(next), user_(user) {}

  void on_step(const StepReport& report) override {
    add_point(curve_, report.rate, report.loss);
    next_.on_step(report);
    if (rises_far(curve_)) curve_.diverged = true;
    if (curve_.diverged || (user_ != nullptr && *user_)) stop = true;
  }

  std::atomic<bool> stop = false;

 private:
  RateCurve& curve_;
  Observer& next_;
  const std::atomic<bool>* user_;
};

// The run of the options with a rate that rises, and with nothing that belongs to a whole run.
void make_search(TrainSetup& setup) {
  SolverDefinition& solver = setup.solver;
  solver.rate_policy = "exp";
  solver.base_rate = first_rate;
  solver.gamma = std::pow(last_rate / first_rate, 1.0 / (search_steps - 1));
  solver.warm_up_steps = 0;
  solver.average_loss = 1;
  TrainOptions& chosen = setup.record.options;
  chosen.steps = search_steps;
  chosen.snapshot = 0;
  chosen.patience = 0;
  chosen.average_decay = 0;
  setup.record.head.clear();
  chosen.timeline = false;
  setup.validation_data.reset();
  setup.ends_at_infinity = true;
}

void require_search(const TrainOptions& options) {
  if (options.resume) {
    throw error(
        "--find-lr and --resume: a run that has begun keeps its rate; leave one of them out");
  }
  if (options.check_plugins) {
    throw error(
        "--find-lr and --check-plugins: leave one of them out; 'train' alone checks plugins");
  }
  if (launched_ranks() > 1) throw error("--find-lr is for one process, not for several ranks");
}

void write_curve(RateCurve& curve, const fs::path& folder) {
  make_folders(folder);
  curve.table = folder / "find_lr.csv";
  curve.picture = folder / "find_lr.svg";
  write_text_file(curve.table, to_csv(curve));
  write_text_file(curve.picture, to_svg(curve));
}

}  // namespace

RateCurve find_rate(const TrainOptions& options, Observer& observer) {
  require_search(options);
  Registry registry = Registry::with_defaults();
  if (!options.data.empty()) observer.on_message(fmt::format("reading data '{}'", options.data));
  TrainSetup setup = resolve(registry, options);
  require_computing(registry, setup.record.options.devices);
  make_search(setup);
  TrainOptions& chosen = setup.record.options;
  const SessionOptions opened = session_options(registry, setup);
  observer.on_message(fmt::format("net '{}': {} times {} steps of batch {} at rates from {} to {}",
                                  setup.record.net_name, searches, search_steps, chosen.batch,
                                  first_rate, last_rate));
  std::vector<RateCurve> curves(searches);
  for (RateCurve& curve : curves) {
    observer.on_message(fmt::format("search {} of {}", &curve - curves.data() + 1, searches));
    CurveObserver collector(curve, observer, options.stop);
    chosen.stop = &collector.stop;
    std::optional<Session> session(std::in_place, registry, setup.net, opened);
    session->set_first_weights(setup.first_weights, *chosen.seed);
    const TrainResult result = TrainingRun(registry, setup, nullptr, session, collector).go();
    if (options.stop != nullptr && *options.stop) {
      throw error(
          "--find-lr was stopped after {} of {} steps of search {} of {}: nothing is written",
          result.steps, search_steps, &curve - curves.data() + 1, searches);
    }
    curve.diverged = curve.diverged || result.steps < search_steps;
    ++*chosen.seed;
  }
  RateCurve curve = mean_of(curves);
  suggest_rate(curve);
  write_curve(curve, options.out);
  return curve;
}

}  // namespace tandem
