#include "core/train/trainer.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <memory>

#include "core/base/error.h"
#include "core/base/strings.h"
#include "core/model/solver_definition.h"
#include "core/schedule/report.h"
#include "core/train/checkpoint.h"
#include "core/train/diagnose.h"
#include "core/train/evaluate.h"
#include "core/train/recorder.h"
#include "core/train/run_options.h"
#include "core/train/safetensors.h"
#include "core/train/setup.h"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t traced_steps = 4;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Pending {
  int64_t step = 0, epoch = 0, samples = 0;
  double rate = 0;
};

// One run, from its first step to its last.
class Run {
 public:
  Run(Registry& registry, TrainSetup& setup, const RunFolder& folder, Session& session,
      Recorder& recorder)
      : registry_(registry),
        setup_(setup),
        chosen_(setup.record.options),
        folder_(folder),
        session_(session),
        recorder_(recorder),
        phase_(session.training()) {}

  void start_fresh() { session_.set_weights(initial_weights(session_.net(), *chosen_.seed)); }

  void start_from(const Checkpoint& checkpoint) {
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

  TrainResult go() {
    result_.run = folder_.path();
    LoaderOptions loading;
    loading.batch = chosen_.batch;
    loading.first_batch = first_;
    loading.seed = *chosen_.seed;
    loading.threads = chosen_.decode_threads;
    loader_ = std::make_unique<Loader>(*setup_.training_data, loading, session_.allocator());
    try {
      demand_sample(phase_.net, loader_->layout().sample);
      loop();
    } catch (...) {
      list_bad_samples();
      // Copies out of the ring may still be under way: the executor sees them out, or leaves all
      // behind.
      phase_.executor.reset();
      if (session_.runtime().abandoned()) static_cast<void>(loader_.release());
      throw;
    }
    loader_.reset();
    result_.stopped = result_.steps < chosen_.steps || test_due_;
    result_.seconds = seconds_since(begin_);
    return result_;
  }

 private:
  [[nodiscard]] bool stopping() const { return chosen_.stop != nullptr && *chosen_.stop; }

  void loop() {
    begin_ = Clock::now();
    recent_.emplace_back(0.0, first_);
    if (test_due_) pause(first_, true);  // the evaluation that the interrupted run did not finish
    for (int64_t step = first_; step < chosen_.steps && !stopping(); ++step) {
      issue(step);
      if (due(step + 1)) pause(step + 1, tests(step + 1));
    }
    const int64_t done = result_.steps + static_cast<int64_t>(pending_.size());
    if (done > saved_) pause(done, false);
    release_held(true);
    write_timeline();
    list_bad_samples();
  }

  void issue(int64_t step) {
    const Batch batch = loader_->next();
    const double rate = learning_rate(setup_.solver, step);
    const tandem_step control{*chosen_.seed,
                              static_cast<uint64_t>(step),
                              static_cast<float>(rate),
                              static_cast<float>(batch.samples),
                              {0, 0}};
    std::memcpy(batch.memory, &control, sizeof(control));
    while (pending_.size() >= 2) finish_oldest();
    phase_.executor->issue(step, {{phase_.batch_buffer, batch.memory}});
    pending_.push_back({step, batch.epoch, batch.samples, rate});
    release_held(false);
    held_ = batch;
  }

  // A batch goes back to the ring when the copies of its step are done.
  void release_held(bool drained) {
    if (!held_) return;
    if (!drained) {
      for (const int task : phase_.input_tasks) phase_.executor->wait_task(held_->number, task);
    }
    loader_->release(*held_);
    held_.reset();
  }

  void finish_oldest() {
    const Pending done = pending_.front();
    phase_.executor->wait(done.step);
    const std::vector<float> scalars = phase_.scalars(done.step);
    double loss = 0;
    for (size_t i = 0; i < scalars.size(); ++i)
      loss += phase_.net.scalars[i].loss_weight * scalars[i];
    if (!phase_.finite(done.step)) stop_not_finite(done, loss);
    pending_.pop_front();
    // The first steps are slower; a short run shows them all the same.
    const int64_t first_traced =
        first_ + (chosen_.steps - first_ > 2 * traced_steps ? traced_steps - 1 : 0);
    if (chosen_.timeline && done.step >= first_traced && done.step < first_traced + traced_steps) {
      const std::vector<TraceEvent> events = phase_.executor->trace(done.step);
      trace_.insert(trace_.end(), events.begin(), events.end());
      if (done.step + 1 == first_traced + traced_steps) write_timeline();
    }
    report(done, loss);
  }

  void report(const Pending& done, double loss) {
    result_.steps = done.step + 1;
    result_.loss = loss;
    const double now = seconds_since(begin_) - paused_;
    recent_.emplace_back(now, done.step + 1);
    while (recent_.size() > 20) recent_.pop_front();
    const double span = now - recent_.front().first;
    const auto steps = static_cast<double>(done.step + 1 - recent_.front().second);
    StepReport r;
    r.step = done.step + 1;
    r.steps = chosen_.steps;
    r.epoch = done.epoch;
    const auto size = static_cast<double>(setup_.record.training_samples);
    r.epochs = static_cast<double>(chosen_.steps) * static_cast<double>(chosen_.batch) / size;
    r.loss = loss;
    r.rate = done.rate;
    r.images_per_second = span > 0 ? steps * static_cast<double>(chosen_.batch) / span : 0;
    r.seconds_left = steps > 0 ? static_cast<double>(r.steps - r.step) * span / steps : -1;
    r.waited_seconds = loader_->waited_seconds();
    r.skipped = chosen_.batch - done.samples;
    if (now > 0) {
      result_.images_per_second = static_cast<double>((r.step - first_) * chosen_.batch) / now;
    }
    recorder_.on_step(r);
  }

  [[noreturn]] void stop_not_finite(const Pending& done, double loss) {
    while (pending_.size() > 1) {
      phase_.executor->wait(pending_.back().step);
      pending_.pop_back();
    }
    phase_.executor->drain();
    DiagnoseInputs inputs{session_.machine().kind(),
                          chosen_.batch,
                          setup_.record.data,
                          *chosen_.seed,
                          static_cast<uint64_t>(done.step),
                          setup_.training_data.get()};
    std::string where;
    try {
      where = first_not_finite(registry_, setup_.net, session_.weights(), inputs);
    } catch (const Error& failure) {
      where = fmt::format("unknown ({})", failure.what());
    }
    if (where.empty()) where = "the loss alone";
    throw error(
        "step {}: the loss is not finite ({}); the first to go was {}. The update was left out and "
        "the run stops{}. Try "
        "a smaller learning rate (--lr, here {:.3g})",
        done.step + 1, loss, where, where_to_go_back(), done.rate);
  }

  [[nodiscard]] bool tests(int64_t done) const {
    if (setup_.validation_data == nullptr) return false;
    if (done == chosen_.steps) return true;
    if (chosen_.test_interval > 0) return done % chosen_.test_interval == 0;
    return ends_epoch(done);
  }
  [[nodiscard]] bool ends_epoch(int64_t done) const {
    const int64_t size = setup_.record.training_samples;
    return done * chosen_.batch / size != (done - 1) * chosen_.batch / size;
  }
  [[nodiscard]] bool due(int64_t done) const {
    const bool snapshot = chosen_.snapshot > 0 && done % chosen_.snapshot == 0;
    return done == chosen_.steps || snapshot || tests(done) || ends_epoch(done);
  }

  // Between steps, with nothing in flight: evaluate, keep the best, save. Whatever cuts the
  // evaluation short, the steps are saved, and the evaluation is done first when the run goes on.
  void pause(int64_t done, bool with_test) {
    while (!pending_.empty()) finish_oldest();
    phase_.executor->drain();
    const Clock::time_point begin = Clock::now();
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
    paused_ += seconds_since(begin);
  }

  // True if it is the best so far. Cut short by a stop it is no result, and stays due.
  bool run_test(int64_t done) {
    Evaluation now =
        evaluate(session_, *setup_.validation_data, {chosen_.decode_threads, false, chosen_.stop});
    for (const BadSample& sample : now.bad) bad_[sample.name] = sample.reason;
    if (stopping()) return false;
    test_due_ = false;
    now.step = done;
    now.epoch = done * chosen_.batch / setup_.record.training_samples;
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
  Checkpoint checkpoint_of(int64_t done) {
    Checkpoint checkpoint;
    checkpoint.step = done;
    checkpoint.weights = session_.weights();
    checkpoint.state = session_.state();
    for (const WeightArray& weight : phase_.net.weights) {
      for (int64_t i = weight.offset; i < weight.offset + weight.count; ++i) {
        if (std::isfinite(checkpoint.weights[static_cast<size_t>(i)])) continue;
        throw error(
            "step {}: the weights '{}' are not finite after the update, and the run stops{}. Try a "
            "smaller "
            "learning rate (--lr, here {:.3g})",
            done, weight.name, where_to_go_back(), learning_rate(setup_.solver, done - 1));
      }
    }
    return checkpoint;
  }

  [[nodiscard]] std::string where_to_go_back() const {
    if (!has_checkpoint(folder_.path(), "last")) return "";
    return fmt::format("; the last good checkpoint is in '{}'", folder_.path().string());
  }

  void save(Checkpoint& checkpoint, bool best) {
    checkpoint.metadata["seed"] = fmt::format("{}", *chosen_.seed);
    checkpoint.metadata["test_due"] = test_due_ ? "1" : "0";
    if (has_best_) {
      checkpoint.metadata["best_loss"] = fmt::format("{:.17g}", result_.best.loss);
      checkpoint.metadata["best_top1"] = fmt::format("{:.17g}", result_.best.top1);
    }
    if (best) write_checkpoint(folder_.path(), "best", phase_.net, checkpoint);
    write_checkpoint(folder_.path(), "last", phase_.net, checkpoint);
    saved_ = checkpoint.step;
  }

  void write_timeline() {
    if (trace_.empty()) return;
    write_text_file(folder_.timeline_file(), to_chrome_trace(phase_.plan, trace_));
    trace_.clear();
  }

  void list_bad_samples() {
    for (const BadSample& sample : loader_->bad_samples()) bad_[sample.name] = sample.reason;
    if (bad_.empty()) return;
    const std::filesystem::path file = folder_.path() / "skipped.txt";
    std::string text;
    for (const auto& [name, reason] : bad_) text += fmt::format("{}: {}\n", name, reason);
    try {
      write_text_file(file, text);
    } catch (const Error& failure) {
      recorder_.on_message(failure.what());
    }
    recorder_.on_message(
        fmt::format("{} damaged image{} left out, listed in '{}' (the first: {}: {})", bad_.size(),
                    bad_.size() == 1 ? " was" : "s were", file.string(), bad_.begin()->first,
                    bad_.begin()->second));
  }

  Registry& registry_;
  TrainSetup& setup_;
  const TrainOptions& chosen_;
  const RunFolder& folder_;
  Session& session_;
  Recorder& recorder_;
  Phase& phase_;
  std::unique_ptr<Loader> loader_;
  std::map<std::string, std::string> bad_;  // damaged images: why
  Clock::time_point begin_;
  double paused_ = 0;
  int64_t first_ = 0, saved_ = -1;
  bool has_best_ = false;
  bool test_due_ = false;  // an evaluation was cut short
  std::deque<Pending> pending_;
  std::optional<Batch> held_;
  std::deque<std::pair<double, int64_t>> recent_;
  std::vector<TraceEvent> trace_;
  TrainResult result_;
};

// What the machine and the strategy chose, so that a resumed run has the same.
void record_choices(RunRecord& record, Session& session) {
  record.split = session.training().plan.split_layer;
  int threads = 0;
  for (int device = 0; device < session.machine().device_count(); ++device) {
    threads += session.machine().device_info(device).threads;
  }
  record.options.machine.threads = threads;
}

}  // namespace

TrainResult train(const TrainOptions& options, Observer& observer) {
  Registry registry = Registry::with_defaults();
  std::optional<RunFolder> folder;
  if (options.resume) {
    folder.emplace(RunFolder::open(options.out));
    folder->lock();
  }
  TrainSetup setup =
      folder ? resolve_resumed(registry, options, *folder) : resolve(registry, options);

  demand_computing(registry, setup.record.options.devices);
  Session session(registry, setup.net, session_options(registry, setup));
  const Plan& plan = session.training().plan;
  std::optional<Checkpoint> checkpoint;
  if (folder) {
    if (!has_checkpoint(folder->path(), "last")) {
      throw error(
          "run '{}' has no checkpoint to resume from: it stopped before its first one. Remove the "
          "folder, or name "
          "another with --out, and begin again",
          folder->path().string());
    }
    checkpoint = read_checkpoint(folder->path(), "last", session.net(), true);
    record_choices(setup.record, session);
    folder->write(setup.record, setup.net, setup.solver);
  } else {
    record_choices(setup.record, session);
    if (setup.record.options.out.empty())
      setup.record.options.out = RunFolder::free_name(setup.record.net_name);
    folder.emplace(RunFolder::create(setup.record.options.out));
    folder->write(setup.record, setup.net, setup.solver);
  }
  const TrainOptions& chosen = setup.record.options;
  Recorder recorder(*folder, observer, chosen.display, checkpoint ? checkpoint->step : 0);
  write_text_file(folder->plan_file(), to_text(plan));
  recorder.on_message(
      fmt::format("{} net '{}' on {}: {} training images, {} classes, batch {}, {} steps, strategy "
                  "{} on {}, seed {}",
                  checkpoint ? "going on with" : "training", setup.record.net_name, chosen.data,
                  setup.record.training_samples, setup.record.class_names.size(), chosen.batch,
                  chosen.steps, chosen.strategy, chosen.devices, *chosen.seed));
  for (const std::string& message : setup.messages) recorder.on_message(message);
  for (const std::string& note : plan.notes) recorder.on_message(note);
  recorder.on_message("memory: " + session.memory_forecast());
  recorder.on_message("run folder: " + folder->path().string());

  Run run(registry, setup, *folder, session, recorder);
  if (checkpoint) {
    const auto due = checkpoint->metadata.find("test_due");
    const bool test_due = due != checkpoint->metadata.end() && due->second == "1";
    if (checkpoint->step >= chosen.steps && !test_due) {
      throw error(
          "run '{}' is complete: it has done {} of {} steps; ask for more with --steps or --epochs",
          folder->path().string(), checkpoint->step, chosen.steps);
    }
    run.start_from(*checkpoint);
    recorder.on_message(fmt::format("resumed after step {}", checkpoint->step));
  } else {
    run.start_fresh();
  }
  TrainResult result = run.go();
  if (result.stopped) {
    recorder.on_message(
        fmt::format("stopped after step {} and saved; go on with: tandem train --out {} --resume",
                    result.steps, folder->path().string()));
  }
  return result;
}

}  // namespace tandem
