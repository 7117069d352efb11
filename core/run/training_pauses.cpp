// What a run does between steps: it begins from a checkpoint, evaluates, keeps the best and saves.
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/text/strings.h"
#include "core/run/setup/setup_data.h"
#include "core/run/training_run.h"
#include "core/session/diagnose.h"
#include "core/session/evaluate.h"

namespace tandem {

void TrainingRun::start_from(const Checkpoint& checkpoint) {
  const auto wanted = size_t(session_.net().weight_floats * session_.options().rule.states);
  if (checkpoint.state.size() != wanted) {
    throw error(
        "the checkpoint in '{}' holds {} values of solver state, but solver type '{}' keeps {}: it "
        "is of another solver",
        chosen_.out.string(), checkpoint.state.size(), setup_.solver.type, wanted);
  }
  session_.set_weights(checkpoint.weights);
  session_.set_state(checkpoint.state);
  first_ = checkpoint.step;
  result_.steps = first_;
  const auto read = [&](const char* key, double* value) {
    const auto found = checkpoint.metadata.find(key);
    return found != checkpoint.metadata.end() && parse_number(found->second, value);
  };
  const auto due = checkpoint.metadata.find("test_due");
  test_due_ =
      due != checkpoint.metadata.end() && due->second == "1" && setup_.validation_data != nullptr;
  double tests = 0, best_step = 0;
  if (read("best_step", &best_step)) result_.best.step = static_cast<int64_t>(best_step);
  if (read("tests_without_better", &tests)) tests_without_better_ = static_cast<int64_t>(tests);
  has_best_ = read("best_loss", &result_.best.loss) && read("best_top1", &result_.best.score);
  result_.best.top1 = result_.best.score;
  const auto sums = checkpoint.metadata.find("epoch_sums");
  if (sums != checkpoint.metadata.end()) progress_.read_sums(sums->second);
}

// The head alone reaches what it can before all layers learn.
bool TrainingRun::lost_patience() const {
  return chosen_.patience > 0 && !setup_.head_net && tests_without_better_ >= chosen_.patience;
}

bool TrainingRun::tests(int64_t done) const {
  if (setup_.validation_data == nullptr) return false;
  if (done == chosen_.steps) return true;
  if (chosen_.test_interval > 0) return done % chosen_.test_interval == 0;
  return progress_.ends_epoch(done);
}

bool TrainingRun::takes_snapshot(int64_t done) const {
  return chosen_.snapshot > 0 && done % chosen_.snapshot == 0;
}

bool TrainingRun::due(int64_t done) const {
  return done == chosen_.steps || takes_snapshot(done) || tests(done) ||
         progress_.ends_epoch(done) || (setup_.head_net && done == unfreezing_);
}

// If an error ends the evaluation, the steps are saved all the same, and a resumed run begins with
// the evaluation.
void TrainingRun::pause(int64_t done, bool with_test) {
  while (!pending_.empty()) finish_oldest();
  phase_.executor->drain();
  note_changed_data(false);
  const double begin = progress_.seconds();
  Checkpoint checkpoint = checkpoint_of(done);
  test_due_ = with_test;
  progress_.count_time(waited_seconds());
  bool best = false;
  try {
    if (with_test) best = run_test(checkpoint);
  } catch (...) {
    save(checkpoint, false);
    throw;
  }
  progress_.add_test(progress_.seconds() - begin);
  const bool is_over = done > 0 && (done == chosen_.steps || progress_.ends_epoch(done));
  if (is_over && !test_due_ && progress_.has_steps()) report_epoch(done);
  save(checkpoint, best);
  if (is_over || with_test || stopping()) write_report(checkpoint);
  progress_.add_pause(progress_.seconds() - begin);
}

void TrainingRun::write_report(const Checkpoint& checkpoint) {
  if (!report_) return;
  const bool is_last = checkpoint.step == chosen_.steps || lost_patience();
  const ReportMoment moment = is_last      ? ReportMoment::end
                              : stopping() ? ReportMoment::stopped
                                           : ReportMoment::during;
  const bool is_written =
      report_->write([&] { return judged_weights(checkpoint); }, loader_->bad_samples(), moment);
  const bool is_drawn = judged_step_ != checkpoint.step && moment == ReportMoment::during;
  if (!is_written || is_drawn) return;
  for (const PictureReport& picture : report_->pictures(judged_step_)) {
    recorder_.on_picture(picture);
  }
}

// Caffe's test_initialization: an evaluation of the initial weights, which never counts as the
// best.
void TrainingRun::first_test() {
  const bool wanted = setup_.solver.test_interval > 0 && setup_.solver.test_initialization;
  if (!wanted || setup_.validation_data == nullptr || stopping()) return;
  const double begin = progress_.seconds();
  Evaluation now = evaluated(0);
  if (!stopping()) recorder_.on_evaluation(now);
  progress_.add_pause(progress_.seconds() - begin);
}

EvaluateOptions TrainingRun::evaluating() {
  EvaluateOptions options;
  options.decode_threads = decode_threads_of(ranks_, chosen_.decode_threads);
  options.stop = chosen_.stop;
  options.agreement = agreement_ ? &*agreement_ : nullptr;
  options.sample_limit = setup_.test_samples;
  options.seed = *chosen_.seed;
  return options;
}

// Looked for once, as samples are read again for it.
void TrainingRun::report_loss_not_finite() {
  const std::string data = setup_.validation_data->type_name();
  const std::string module = foreign_module_text(registry_, data);
  if (!validation_not_finite_.has_value()) {
    const bool are_bytes = setup_.validation_data->has_bytes() && module.empty();
    const bool can_look = (ranks_ == nullptr || ranks_->rank() == 0) && !are_bytes;
    validation_not_finite_ =
        can_look ? first_sample_not_finite(session_, *setup_.validation_data, evaluating())
                 : SearchForNan();
  }
  const SearchForNan& search = *validation_not_finite_;
  const std::string part =
      search.is_cut_short
          ? fmt::format(
                " ({} of the {} were searched for values that are not finite, and have none)",
                search.samples, setup_.validation_data->size())
          : "";
  recorder_.on_message(
      search.found.empty()
          ? "the validation loss is not finite, though that of training is: look at the running "
            "statistics of BatchNorm (a smaller --lr or a larger --batch makes them steadier) and "
            "at the validation images" +
                part
          : fmt::format("the validation loss is not finite, as the validation data are not: in "
                        "data set '{}'{}, {}",
                        data, module, search.found));
}

Evaluation TrainingRun::evaluated(int64_t done) {
  const EvaluateOptions options = evaluating();
  constexpr size_t pictures = 12;
  std::optional<FindingsCollector> collector;
  if (report_) {
    collector.emplace(session_.testing().net, setup_.validation_data->class_count(), pictures);
  }
  EqualScores equal;
  Evaluation now = evaluate(session_, *setup_.validation_data, options,
                            equal.sink(collector ? collector->sink() : PredictionSink()));
  report_given_up();
  if (ranks_ != nullptr) now.bad = tandem::gather_bad_samples(*ranks_, now.bad);
  for (const BadSample& sample : now.bad) bad_[sample.name] = sample.reason;
  if (chosen_.bad_share_limit <= 0 && !now.bad.empty()) {
    if (ranks_ != nullptr && ranks_->rank() > 0) let_root_report();
    throw error("validation image '{}' cannot be used, and every one must be: {}", now.bad[0].name,
                now.bad[0].reason);
  }
  if (equal.holds() && done > 0 && !stopping()) note_equal_scores(equal.samples());
  now.step = done;
  now.epoch = progress_.epochs_of(done);
  if (report_ && !stopping()) {
    Findings findings = collector->take();
    findings.figures = now.figures;
    judge(std::move(findings), now);
  }
  return now;
}

// The page shows what the best weights find, which are kept for use. For a resumed run these
// findings are in the page that it left; where that is gone, others are shown until there are
// better weights.
void TrainingRun::judge(Findings findings, const Evaluation& now) {
  const bool best = now.step > 0 && is_best(now);
  if (!best && (judges_best_ || (has_best_ && report_->has_page_with_findings()))) return;
  judges_best_ = best;
  judged_step_ = now.step;
  std::string judged = fmt::format("validation after step {}", now.step);
  if (best) {
    judged += ", whose weights are the best so far";
  } else if (has_best_) {
    judged += fmt::format(
        " (not of the best weights, which are those of step {}; 'tandem test' "
        "shows what they find)",
        result_.best.step);
  }
  report_->judge(std::move(findings), judged, now.bad);
}

std::vector<float> TrainingRun::judged_weights(const Checkpoint& last) const {
  if (judges_best_ && judged_step_ != last.step) {
    return read_checkpoint(folder_->path(), "best", phase_.net, false).weights;
  }
  return keeps_average() ? averaged(last).weights : last.weights;
}

Checkpoint TrainingRun::averaged(const Checkpoint& checkpoint) const {
  Checkpoint result;
  result.step = checkpoint.step;
  result.weights = checkpoint.weights;
  const auto whole = size_t(phase_.net.weight_floats);
  const float* average = checkpoint.state.data() + (checkpoint.state.size() - whole);
  for (const WeightArray& weight : phase_.net.weights) {
    if (!weight.trained()) continue;
    std::copy_n(average + weight.offset, weight.count, result.weights.begin() + weight.offset);
  }
  return result;
}

// Only rank 0 knows the weights of all.
void TrainingRun::set_weights_of_all(std::vector<float> weights) {
  if (ranks_ != nullptr) {
    ranks_->broadcast(weights.data(), static_cast<int64_t>(weights.size() * sizeof(float)),
                      "the weights");
  }
  session_.set_weights(weights);
}

bool TrainingRun::is_best(const Evaluation& now) const {
  const Evaluation& old = result_.best;
  // Without a result the last weights are kept as the best.
  const bool better = now.has_score
                          ? now.score > old.score || (now.score == old.score && now.loss < old.loss)
                          : !now.has_loss || now.loss < old.loss;
  return std::isfinite(now.loss) && (!has_best_ || better);
}

void TrainingRun::note_equal_scores(int64_t samples) {
  if (has_noted_equal_scores_ || ranks_ != nullptr) return;
  std::string layer;
  try {
    layer = first_constant(registry_, definition(), session_.weights(), diagnose_inputs(0, 0));
  } catch (const Error&) {  // no memory for it, as may be
  }
  if (layer.empty()) return;  // or the images are equal, or nearly so
  has_noted_equal_scores_ = true;
  recorder_.on_message(fmt::format(
      "note: all {} validation images have the same scores: {} makes the same of every image. Its "
      "limits or factors do so, or the weights before it, as after too high a --lr",
      samples, layer));
}

// Returns whether the evaluation is the best so far. A stopped evaluation gives no result and stays
// due.
bool TrainingRun::run_test(const Checkpoint& checkpoint) {
  const int64_t done = checkpoint.step;
  if (keeps_average()) set_weights_of_all(averaged(checkpoint).weights);
  Evaluation now = evaluated(done);
  if (keeps_average()) set_weights_of_all(checkpoint.weights);
  if (stopping()) return false;
  test_due_ = false;
  now.ends_epoch = done == chosen_.steps || progress_.ends_epoch(done);
  now.best = is_best(now);
  tests_without_better_ = now.best ? 0 : tests_without_better_ + 1;
  result_.last = now;
  if (now.best) {
    result_.best = now;
    has_best_ = true;
  }
  recorder_.on_evaluation(now);
  if (now.has_loss && !std::isfinite(now.loss)) report_loss_not_finite();
  return now.best;
}

// Weights that are not finite never replace a good checkpoint. Their loss has not been computed
// yet.
Checkpoint TrainingRun::checkpoint_of(int64_t done) const {
  Checkpoint checkpoint;
  checkpoint.step = done;
  checkpoint.weights = session_.weights();
  checkpoint.state = session_.state();
  if (folder_ == nullptr) return checkpoint;
  for (const WeightArray& weight : phase_.net.weights) {
    for (int64_t i = weight.offset; i < weight.offset + weight.count; ++i) {
      if (std::isfinite(checkpoint.weights[size_t(i)])) continue;
      throw error("step {}: the weights '{}' are not finite after the update, {}", done,
                  weight.name,
                  advice_after_not_finite(phase_.net, weight.kind == TANDEM_TRAINED,
                                          setup_.solver.base_rate, last_good_run()));
    }
  }
  return checkpoint;
}

void TrainingRun::save(Checkpoint& checkpoint, bool best) {
  saved_ = checkpoint.step;
  if (folder_ == nullptr) return;
  folder_->require_in_place();
  checkpoint.metadata["seed"] = fmt::format("{}", *chosen_.seed);
  checkpoint.metadata["tests_without_better"] = fmt::format("{}", tests_without_better_);
  checkpoint.metadata["test_due"] = test_due_ ? "1" : "0";
  if (has_best_) {
    checkpoint.metadata["best_step"] = fmt::format("{}", result_.best.step);
    checkpoint.metadata["best_loss"] = fmt::format("{:.17g}", result_.best.loss);
    checkpoint.metadata["best_top1"] = fmt::format("{:.17g}", result_.best.score);
  }
  checkpoint.metadata["epoch_sums"] = progress_.sums();
  sync_file(folder_->metrics_file());  // a resumed run continues it from this step
  write_checkpoint(folder_->path(), "last", phase_.net, checkpoint,
                   other_names(checkpoint.step, best));
  // Afterwards: a run can go on from the last checkpoint only.
  if (best && keeps_average()) save_average(checkpoint);
}

void TrainingRun::save_average(const Checkpoint& checkpoint) const {
  Checkpoint average = averaged(checkpoint);
  average.metadata = checkpoint.metadata;
  write_checkpoint(folder_->path(), "best", phase_.net, average);
}

std::vector<std::string> TrainingRun::other_names(int64_t done, bool best) const {
  std::vector<std::string> names;
  if (best && !keeps_average()) names.emplace_back("best");
  if (takes_snapshot(done)) {
    names.push_back(fmt::format("{}_iter_{}", setup_.solver.snapshot_prefix, done));
  }
  return names;
}

void TrainingRun::complete_names(const Checkpoint& checkpoint) const {
  const bool is_best = has_best_ && result_.best.step == first_;
  tandem::complete_names(folder_->path(), "last", other_names(first_, is_best));
  if (is_best && keeps_average() && !is_checkpoint_of(folder_->path(), "best", first_)) {
    save_average(checkpoint);
  }
}

}  // namespace tandem
