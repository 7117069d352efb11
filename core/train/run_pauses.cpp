// What a training run does between steps: begin, evaluate, keep the best, save.
#include <cmath>

#include "core/base/error.h"
#include "core/base/strings.h"
#include "core/model/learning_rate.h"
#include "core/model/loss_scale.h"
#include "core/train/evaluate.h"
#include "core/train/training_run.h"

namespace tandem {

void TrainingRun::start_from(const Checkpoint& checkpoint) {
  const auto wanted =
      static_cast<size_t>(session_.net().weight_floats * session_.options().rule.states);
  if (checkpoint.state.size() != wanted) {
    throw error(
        "the checkpoint in '{}' holds {} values of solver state, but solver type '{}' keeps {}: it "
        "is of another solver",
        folder_.path().string(), checkpoint.state.size(), setup_.solver.type, wanted);
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
  has_best_ = read("best_loss", &result_.best.loss) && read("best_top1", &result_.best.top1);
}

bool TrainingRun::tests(int64_t done) const {
  if (setup_.validation_data == nullptr) return false;
  if (done == chosen_.steps) return true;
  if (chosen_.test_interval > 0) return done % chosen_.test_interval == 0;
  return ends_epoch(done);
}

bool TrainingRun::takes_snapshot(int64_t done) const {
  return chosen_.snapshot > 0 && done % chosen_.snapshot == 0;
}

bool TrainingRun::ends_epoch(int64_t done) const {
  const int64_t size = setup_.record.training_samples;
  return done * images_of_step() / size != (done - 1) * images_of_step() / size;
}

bool TrainingRun::due(int64_t done) const {
  return done == chosen_.steps || takes_snapshot(done) || tests(done) || ends_epoch(done);
}

// Whatever cuts the evaluation short, the steps are saved, and the evaluation is done first when
// the run goes on.
void TrainingRun::pause(int64_t done, bool with_test) {
  while (!pending_.empty()) finish_oldest();
  phase_.executor->drain();
  const double begin = seconds();
  Checkpoint checkpoint = checkpoint_of(done);
  test_due_ = with_test;
  bool best = false;
  try {
    if (with_test) best = run_test(done);
  } catch (...) {
    save(checkpoint, false);
    throw;
  }
  save(checkpoint, best);
  paused_ += seconds() - begin;
}

// Caffe's test_initialization: shows where the net begins, and that testing works. Never the best.
void TrainingRun::first_test() {
  const bool wanted = setup_.solver.test_interval > 0 && setup_.solver.test_initialization;
  if (!wanted || setup_.validation_data == nullptr || stopping()) return;
  const double begin = seconds();
  Evaluation now = evaluated(0);
  if (!stopping()) recorder_.on_evaluation(now);
  paused_ += seconds() - begin;
}

Evaluation TrainingRun::evaluated(int64_t done) {
  EvaluateOptions options;
  options.decode_threads = chosen_.decode_threads;
  options.stop = chosen_.stop;
  options.sample_limit = setup_.test_samples;
  options.seed = *chosen_.seed;
  Evaluation now = evaluate(session_, *setup_.validation_data, options);
  tell_given_up();
  for (const BadSample& sample : now.bad) bad_[sample.name] = sample.reason;
  if (chosen_.bad_share_limit <= 0 && !now.bad.empty()) {
    throw error("validation image '{}' is damaged, and none may be: {}", now.bad[0].name,
                now.bad[0].reason);
  }
  now.step = done;
  now.epoch = done * images_of_step() / setup_.record.training_samples;
  return now;
}

// True if it is the best so far. Cut short by a stop it is no result, and stays due.
bool TrainingRun::run_test(int64_t done) {
  Evaluation now = evaluated(done);
  if (stopping()) return false;
  test_due_ = false;
  const Evaluation& old = result_.best;
  const bool better = now.has_accuracy
                          ? now.top1 > old.top1 || (now.top1 == old.top1 && now.loss < old.loss)
                          : now.loss < old.loss;
  now.best = std::isfinite(now.loss) && (!has_best_ || better);
  result_.last = now;
  if (now.best) {
    result_.best = now;
    has_best_ = true;
  }
  recorder_.on_evaluation(now);
  return now.best;
}

// Weights that are no numbers never replace a good checkpoint: the next loss would not have been
// finite.
Checkpoint TrainingRun::checkpoint_of(int64_t done) const {
  Checkpoint checkpoint;
  checkpoint.step = done;
  checkpoint.weights = session_.weights();
  checkpoint.state = session_.state();
  for (const WeightArray& weight : phase_.net.weights) {
    for (int64_t i = weight.offset; i < weight.offset + weight.count; ++i) {
      if (std::isfinite(checkpoint.weights[static_cast<size_t>(i)])) continue;
      throw error(
          "step {}: the weights '{}' are not finite after the update, and the run stops{}. {}",
          done, weight.name, where_to_go_back(),
          way_out(weight.kind == TANDEM_TRAINED, learning_rate(setup_.solver, done - 1)));
    }
  }
  return checkpoint;
}

std::string TrainingRun::way_out(bool weights, double rate) const {
  if (!weights || !computes_in_float16(phase_.net)) {
    return fmt::format("Try a smaller learning rate (--lr, here {:.3g})", rate);
  }
  constexpr double largest_float16 = 65504;
  const double scale = loss_scale(phase_.net);
  return fmt::format(
      "Gradients above {:.0f} overflow float16, as they are times {:.0f}: {} {}--precision "
      "bfloat16, "
      "or begin with a smaller learning rate (--lr, here {:.3g}) if float32 fails, too",
      largest_float16 / scale, scale,
      has_checkpoint(folder_.path(), "last") ? "go on with --resume and" : "begin again with",
      scale > 1 ? "a smaller --loss-scale or " : "", rate);
}

std::string TrainingRun::where_to_go_back() const {
  if (!has_checkpoint(folder_.path(), "last")) return "";
  return fmt::format("; the last good checkpoint is in '{}'", folder_.path().string());
}

void TrainingRun::save(Checkpoint& checkpoint, bool best) {
  checkpoint.metadata["seed"] = fmt::format("{}", *chosen_.seed);
  checkpoint.metadata["test_due"] = test_due_ ? "1" : "0";
  if (has_best_) {
    checkpoint.metadata["best_loss"] = fmt::format("{:.17g}", result_.best.loss);
    checkpoint.metadata["best_top1"] = fmt::format("{:.17g}", result_.best.top1);
  }
  if (best) write_checkpoint(folder_.path(), "best", phase_.net, checkpoint);
  if (takes_snapshot(checkpoint.step)) {
    write_checkpoint(folder_.path(),
                     fmt::format("{}_iter_{}", setup_.solver.snapshot_prefix, checkpoint.step),
                     phase_.net, checkpoint);
  }
  write_checkpoint(folder_.path(), "last", phase_.net, checkpoint);
  saved_ = checkpoint.step;
}

}  // namespace tandem
