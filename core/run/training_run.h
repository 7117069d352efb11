// One training run, from its first step to its last. A step is one update; it takes as many batches
// as the solver's iter_size says. Evaluation and checkpoints happen between steps, with nothing in
// flight.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/data/fingerprint.h"
#include "core/ranks/agreement.h"
#include "core/ranks/ranks.h"
#include "core/report/run_report.h"
#include "core/run/folder/checkpoint.h"
#include "core/run/folder/progress.h"
#include "core/run/folder/recorder.h"
#include "core/run/setup/setup.h"
#include "core/run/trainer.h"
#include "core/session/evaluate.h"
#include "core/session/session.h"
#include "core/session/training_timeline.h"

namespace tandem {

struct DiagnoseInputs;

class TrainingRun {
 public:
  // Everything referred to outlives it. `session` is of the setup's head_net, if there is one, and
  // replaced by one of its net when all layers begin to learn.
  // `folder` is null on ranks other than 0, whose observer says nothing.
  TrainingRun(Registry& registry, TrainSetup& setup, const RunFolder* folder,
              std::optional<Session>& session, Observer& observer);

  // Throws Error if the checkpoint's solver state is of another rule.
  void start_from(const Checkpoint& checkpoint);
  // After that: the last checkpoint is the best one, too, or a snapshot, if it was to be when an
  // error ended the run.
  void complete_names(const Checkpoint& checkpoint) const;
  // Until the last step, or until options.stop. The streams are idle afterwards, also if it throws.
  TrainResult go();
  // Those whose loss is known, with the ones before the checkpoint that it began from.
  [[nodiscard]] int64_t steps_done() const { return result_.steps; }

 private:
  // A micro-batch that was issued and not yet reported.
  struct Pending {
    int64_t number = 0, step = 0, samples = 0;
    double rate = 0;
    int64_t judged = 0;  // rows that the training accuracy is the mean of
  };

  void open();
  void begin_net();
  void end_net();
  void unfreeze(int64_t step);
  void loop();
  void issue(int64_t step);
  void issue_batch(int64_t step, int64_t number, double rate);
  void release_held(bool drained);
  void finish_oldest();
  void report(const Pending& done, double loss);
  [[noreturn]] void stop_not_finite(const Pending& done, double loss);
  void gather_bad_samples();
  void list_bad_samples();
  void note_changed_data(bool all);
  void note_slow_layers();
  // Reports, once per phase, that its steps no longer run as graphs although they should.
  void report_given_up();
  void find_accuracy();
  void report_epoch(int64_t done);
  void advise(const EpochReport& report);
  [[nodiscard]] bool stopping() const {
    if (is_at_infinity_) return true;
    if (agreement_) return agreement_->stopping();
    return chosen_.stop != nullptr && *chosen_.stop;
  }

  // The net that trains now.
  [[nodiscard]] const NetDefinition& definition() const {
    return setup_.head_net ? *setup_.head_net : setup_.net;
  }
  [[nodiscard]] double waited_seconds() const { return waited_ + loader_->waited_seconds(); }
  [[nodiscard]] LoaderOptions loading() const;
  [[nodiscard]] DiagnoseInputs diagnose_inputs(int64_t step, int64_t batch) const;
  // Of the batch `number`: the rows of the earlier micro-batches of its step.
  [[nodiscard]] int32_t first_row(int64_t number) const;
  // Between steps.
  [[nodiscard]] bool tests(int64_t done) const;
  [[nodiscard]] bool takes_snapshot(int64_t done) const;
  // Further names of the checkpoint after so many steps.
  [[nodiscard]] std::vector<std::string> other_names(int64_t done, bool best) const;
  [[nodiscard]] bool due(int64_t done) const;
  void pause(int64_t done, bool with_test);
  void first_test();
  [[nodiscard]] bool lost_patience() const;
  [[nodiscard]] bool run_test(const Checkpoint& checkpoint);
  [[nodiscard]] bool is_best(const Evaluation& now) const;
  [[nodiscard]] bool keeps_average() const { return chosen_.average_decay > 0; }
  // With the average of the weights in their place, as it is evaluated and kept.
  [[nodiscard]] Checkpoint averaged(const Checkpoint& checkpoint) const;
  [[nodiscard]] EvaluateOptions evaluating();
  [[nodiscard]] Evaluation evaluated(int64_t done);
  // Once in a run: which layer keeps the images' differences from the scores.
  void note_equal_scores(int64_t samples);
  // Of validation.
  void report_loss_not_finite();
  void judge(Findings findings, const Evaluation& now);
  // Those that the report's findings are of.
  [[nodiscard]] std::vector<float> judged_weights(const Checkpoint& last) const;
  [[nodiscard]] Checkpoint checkpoint_of(int64_t done) const;
  void save(Checkpoint& checkpoint, bool best);
  void save_average(const Checkpoint& checkpoint) const;
  void write_report(const Checkpoint& checkpoint);
  void set_weights_of_all(std::vector<float> weights);
  [[nodiscard]] std::string last_good_run() const;

  Registry& registry_;
  TrainSetup& setup_;
  const TrainOptions& chosen_;
  const RunFolder* folder_;
  std::optional<Session>& opened_;
  Session& session_;  // at one place, whichever net it is of
  Observer& recorder_;
  Phase& phase_;
  std::optional<RunReport> report_;          // on rank 0
  int64_t judged_step_ = -1;                 // that its findings are of
  bool judges_best_ = false;                 // whether they are of the best weights
  const Communicator* ranks_;                // null: one process
  std::optional<BatchAgreement> agreement_;  // of several ranks
  const int64_t micro_batches_;              // of one step
  const int64_t unfreezing_;  // unfreezing_step(): before it all layers begin to learn
  TrainingProgress progress_;
  std::unique_ptr<Loader> loader_;
  std::optional<TrainingTimeline> timeline_;  // once the run goes
  std::map<std::string, std::string> bad_;    // damaged images: why
  std::optional<DataWatch> data_watch_;       // once the run goes, with a folder
  int accuracy_ = -1;                         // index of the training accuracy among the scalars
  std::optional<SearchForNan> validation_not_finite_;
  bool has_advised_ = false, has_noted_equal_scores_ = false;
  int64_t first_ = 0, issued_ = 0, saved_ = -1;  // steps
  bool has_best_ = false;
  int64_t tests_without_better_ = 0;
  bool test_due_ = false;        // an evaluation was cut short
  bool is_at_infinity_ = false;  // a loss was not finite, which the setup allows
  std::deque<Pending> pending_;
  std::optional<Batch> held_;
  double waited_ = 0;     // seconds for data, before all layers learned
  double step_loss_ = 0;  // of the micro-batches of the step so far
  int64_t skipped_ = 0;   // damaged samples of the step so far
  std::set<const Phase*> reported_given_up_;
  TrainResult result_;
};

}  // namespace tandem
