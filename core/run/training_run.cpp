#include "core/run/training_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/running_note.h"
#include "core/data/loader/batch_filler.h"
#include "core/data/remark_lines.h"
#include "core/model/adapted/adapted.h"
#include "core/model/adapted/models.h"
#include "core/model/file/learning_rate.h"
#include "core/model/file/solver_definition.h"
#include "core/model/passes/results.h"
#include "core/ranks/agreement.h"
#include "core/report/run_page.h"
#include "core/run/setup/setup_data.h"
#include "core/session/diagnose.h"

namespace tandem {
namespace {

constexpr size_t batches_in_flight = 2;

}  // namespace

TrainingRun::TrainingRun(Registry& registry, TrainSetup& setup, const RunFolder* folder,
                         std::optional<Session>& session, Observer& observer)
    : registry_(registry),
      setup_(setup),
      chosen_(setup.record.options),
      folder_(folder),
      opened_(session),
      session_(*session),
      recorder_(observer),
      phase_(session->training()),
      ranks_(session->options().ranks),
      micro_batches_(setup.solver.micro_batches_per_step),
      unfreezing_(unfreezing_step(setup.record, micro_batches_)),
      progress_({chosen_.steps, chosen_.batch * micro_batches_, setup.record.training_samples,
                 setup.solver.average_loss}) {
  if (ranks_ != nullptr) agreement_.emplace(*ranks_, chosen_.stop);
  if (folder_ != nullptr) report_.emplace(registry_, setup_, *folder_, recorder_);
}

void TrainingRun::find_accuracy() {
  const std::string name = training_accuracy(setup_.net);
  for (size_t i = 0; i < phase_.net.scalars.size() && !name.empty(); ++i) {
    if (phase_.net.scalars[i].name == name) accuracy_ = static_cast<int>(i);
  }
}

LoaderOptions TrainingRun::loading() const {
  LoaderOptions loading;
  loading.batch = chosen_.batch;
  loading.first_batch = first_ * micro_batches_;
  loading.seed = *chosen_.seed;
  loading.threads = decode_threads_of(ranks_, chosen_.decode_threads);
  loading.slots = chosen_.prefetch;
  loading.balanced = chosen_.balance;
  loading.targets = target_options(setup_);
  loading.pixels = phase_.pixels;
  loading.rows = phase_.rows;
  loading.bad_share_limit = chosen_.bad_share_limit;
  if (chosen_.timeline) timeline_->ask(&loading);
  return loading;
}

TrainResult TrainingRun::go() {
  if (folder_ != nullptr) {
    result_.run = folder_->path();
    data_watch_.emplace(data_source(registry_, setup_.record),
                        std::vector<DataWatch::Watched>{
                            {setup_.training_data.get(), std::move(setup_.training_files)},
                            {setup_.validation_data.get(), std::move(setup_.validation_files)}});
  }
  open();
  try {
    begin_net();
    loop();
  } catch (...) {
    if (opened_) report_given_up();
    list_bad_samples();
    if (ranks_ != nullptr) ranks_->abort();  // tasks that wait for messages end
    // Copies out of the ring may still run: the executor waits for them, or abandons the machine.
    if (opened_) phase_.executor.reset();
    if (opened_ && session_.runtime().abandoned()) static_cast<void>(loader_.release());
    throw;
  }
  loader_.reset();
  result_.stopped = (result_.steps < chosen_.steps && !lost_patience()) || test_due_;
  result_.seconds = progress_.seconds();
  return result_;
}

// From step first_ on.
void TrainingRun::open() {
  timeline_.emplace(session_, first_ * micro_batches_, chosen_.steps * micro_batches_,
                    folder_ != nullptr ? folder_->timeline_file().string() : "");
  loader_ = std::make_unique<Loader>(*setup_.training_data, loading(), session_.allocator());
}

void TrainingRun::begin_net() {
  require_sample(phase_.net, loader_->layout().sample);
  if (chosen_.timeline) timeline_->compare_clocks();
  phase_.executor->trace_only(timeline_->begin(), timeline_->end());
  if (phase_.executor->has_graphs()) {
    recorder_.on_message("steps run as captured graphs (--graphs off: task by task)");
  }
  find_accuracy();
}

void TrainingRun::end_net() {
  release_held(true);
  timeline_->write(*loader_);
  note_slow_layers();
  gather_bad_samples();
}

// The solver's state begins anew, as a run that goes on here must find it; so does the average.
void TrainingRun::unfreeze(int64_t step) {
  const double begin = progress_.seconds();
  end_net();
  for (const BadSample& sample : loader_->bad_samples()) bad_[sample.name] = sample.reason;
  waited_ = waited_seconds();
  loader_.reset();
  reported_given_up_.clear();
  std::vector<float> weights = session_.weights();
  setup_.head_net.reset();
  tests_without_better_ = 0;
  SessionOptions options = session_.options();
  options.strategy = chosen_.strategy;
  options.strategy_options = chosen_.strategy_options;
  opened_.emplace(registry_, setup_.net, options);
  set_weights_of_all(std::move(weights));
  session_.begin_average();
  if (folder_ != nullptr) {
    write_text_file(folder_->plan_file(), to_text(session_.training().whole_plan()));
  }
  first_ = step;
  open();
  begin_net();
  recorder_.on_message(fmt::format("after step {} all layers learn (--unfreeze-after)", step));
  progress_.add_pause(progress_.seconds() - begin);
}

void TrainingRun::loop() {
  progress_.begin(first_);
  result_.steps_before = first_;
  issued_ = saved_ = first_;  // nothing to save before a step is done
  if (first_ == 0) session_.begin_average();
  if (test_due_) pause(first_, true);  // the evaluation that the interrupted run did not finish
  if (first_ == 0) first_test();
  progress_.begin_steps();
  for (int64_t step = first_; step < chosen_.steps && !stopping() && !lost_patience(); ++step) {
    if (setup_.head_net && step == unfreezing_) unfreeze(step);
    issue(step);
    if (due(step + 1)) pause(step + 1, tests(step + 1));
  }
  if (issued_ > saved_) pause(issued_, false);
  if (lost_patience() && issued_ < chosen_.steps) {
    recorder_.on_message(fmt::format(
        "ended after step {}: {} evaluation{} not better than that of step {} (--patience)",
        issued_, tests_without_better_, tests_without_better_ == 1 ? " was" : "s were",
        result_.best.step));
  }
  note_changed_data(true);
  end_net();
  list_bad_samples();
}

void TrainingRun::report_epoch(int64_t done) {
  progress_.count_time(waited_seconds());
  EpochReport report = progress_.end_epoch(done, learning_rate(setup_.solver, done - 1));
  report.has_accuracy = accuracy_ >= 0;
  report.has_validation = result_.last.step == done && result_.last.samples > 0;
  if (report.has_validation) report.validation = result_.last;
  recorder_.on_epoch(report);
  advise(report);
}

// Once, after the first epoch of the process.
void TrainingRun::advise(const EpochReport& report) {
  if (std::exchange(has_advised_, true)) return;
  const std::string line = advice_on_waiting(report.waiting_share, report.seconds);
  if (!line.empty()) recorder_.on_message("advice: " + line);
  constexpr int64_t few = 100;
  const int64_t samples = report.validation.samples;
  if (report.has_validation && report.validation.has_accuracy && samples < few) {
    recorder_.on_message(
        fmt::format("advice: with {} validation image{} one image is {:.1f} points of accuracy, "
                    "and the best step is partly luck",
                    samples, samples == 1 ? "" : "s", 100.0 / static_cast<double>(samples)));
  }
}

void TrainingRun::issue(int64_t step) {
  const double rate = learning_rate(setup_.solver, step);
  if (ranks_ != nullptr) report_crashes_after(step + 1);
  for (int64_t i = 0; i < micro_batches_; ++i) issue_batch(step, step * micro_batches_ + i, rate);
  issued_ = step + 1;
}

void TrainingRun::issue_batch(int64_t step, int64_t number, double rate) {
  const Batch batch = in_step(ranks_, step + 1, [&] { return loader_->next(); });
  int64_t samples = batch.samples;
  if (agreement_) {
    const int64_t offset = loader_->layout().label_offset;
    samples = in_step(ranks_, step + 1, [&] {
      return agreement_->agree(reinterpret_cast<float*>(batch.memory + offset), chosen_.batch);
    });
  }
  const int64_t begin = step >= unfreezing_ ? unfreezing_ : 0;  // of the solver's state
  const tandem_step control{*chosen_.seed,
                            static_cast<uint64_t>(step),
                            static_cast<float>(rate * new_state_factor(setup_.solver, step, begin)),
                            static_cast<float>(samples),
                            first_row(number),
                            0};
  std::memcpy(batch.memory, &control, sizeof(control));
  while (pending_.size() >= batches_in_flight) finish_oldest();
  in_step(ranks_, step + 1, [&] {
    phase_.executor->issue(number, {{phase_.batch_buffer, batch.memory}});
  });
  report_given_up();
  int64_t judged = 0;
  if (accuracy_ >= 0) {
    const auto* labels =
        reinterpret_cast<const float*>(batch.memory + loader_->layout().label_offset);
    judged = rows_of_mean(phase_.net, phase_.net.scalars[size_t(accuracy_)],
                          {labels, size_t(chosen_.batch)});
  }
  pending_.push_back({number, step, samples, rate, judged});
  release_held(false);
  held_ = batch;
}

// Returns a batch to the ring when its copies are done.
void TrainingRun::release_held(bool drained) {
  if (!held_) return;
  if (!drained) {
    for (const int task : phase_.input_tasks) phase_.executor->wait_task(held_->number, task);
  }
  loader_->release(*held_);
  held_.reset();
}

void TrainingRun::finish_oldest() {
  const Pending done = pending_.front();
  in_step(ranks_, done.step + 1, [&] { phase_.executor->wait(done.number); });
  const std::vector<float> scalars = phase_.scalars(done.number);
  double loss = 0;
  for (size_t i = 0; i < scalars.size(); ++i)
    loss += phase_.net.scalars[i].loss_weight * scalars[i];
  const bool is_finite = phase_.finite(done.number);
  if (!is_finite && !setup_.ends_at_infinity) stop_not_finite(done, loss);
  pending_.pop_front();
  if (!is_finite) {
    is_at_infinity_ = true;
    return;
  }
  if (chosen_.timeline) timeline_->add(done.number, *loader_);
  note_slow_layers();
  step_loss_ += loss;
  if (accuracy_ >= 0) {
    progress_.add_accuracy(done.judged, scalars[size_t(accuracy_)]);
  }
  skipped_ += chosen_.batch - done.samples;
  if ((done.number + 1) % micro_batches_ != 0) return;
  report(done, step_loss_ / static_cast<double>(micro_batches_));
  step_loss_ = 0;
  skipped_ = 0;
}

void TrainingRun::report(const Pending& done, double loss) {
  result_.steps = done.step + 1;
  result_.loss = loss;
  StepReport report = progress_.add_step(done.step + 1, loss, done.rate);
  report.waited_seconds = waited_seconds();
  report.skipped = skipped_;
  report.is_shown = report.step == 1 || report.step % std::max<int64_t>(1, chosen_.display) == 0 ||
                    report.step == report.steps;
  result_.images_per_second = progress_.images_per_second();
  recorder_.on_step(report);
}

DiagnoseInputs TrainingRun::diagnose_inputs(int64_t step, int64_t batch) const {
  return {parse_devices(session_.options().devices, registry_),
          session_.options().precision,
          setup_.record.data,
          loading(),
          static_cast<uint64_t>(step),
          batch,
          first_row(batch),
          setup_.training_data.get()};
}

int32_t TrainingRun::first_row(int64_t number) const {
  return static_cast<int32_t>(number % micro_batches_ * chosen_.batch);
}

void TrainingRun::stop_not_finite(const Pending& done, double loss) {
  while (pending_.size() > 1) {
    phase_.executor->wait(pending_.back().number);
    pending_.pop_back();
  }
  phase_.executor->drain();
  if (std::isnan(loss)) loss = std::abs(loss);  // "-nan" says no more
  const DiagnoseInputs inputs = diagnose_inputs(done.step, done.number);
  const std::string of_data = BatchFiller(*inputs.dataset, inputs.loading).not_finite(done.number);
  if (!of_data.empty()) {
    const std::string data = inputs.dataset->type_name();
    throw error(
        "step {}: the loss is not finite ({}), as the data are not: in data set '{}'{}, {}. The "
        "update was left out {}",
        done.step + 1, loss, data, foreign_module_text(registry_, data), of_data,
        how_it_stops(last_good_run()));
  }
  std::string where;
  try {
    // The other ranks do not know that there is something to look for.
    where = ranks_ != nullptr
                ? "not looked for, as the weights are on several ranks"
                : first_not_finite(registry_, definition(), session_.weights(), inputs);
  } catch (const Error& failure) {
    where = fmt::format("unknown ({})", failure.what());
  }
  if (where.empty()) where = "the loss alone";
  const bool weights = where.starts_with("the weights");
  throw error(
      "step {}: the loss is not finite ({}); the first value that is not: {}. {} {}", done.step + 1,
      loss, where,
      weights ? "An earlier update made them so; this step's update was left out,"
              : "The update was left out",
      advice_after_not_finite(phase_.net, weights,
                              done.step > 0 ? std::optional(setup_.solver.base_rate) : std::nullopt,
                              last_good_run()));
}

std::string TrainingRun::last_good_run() const {
  const bool has_last = folder_ != nullptr && has_checkpoint(folder_->path(), "last");
  return has_last ? folder_->path().string() : "";
}

void TrainingRun::report_given_up() {
  for (const Phase* phase : {&phase_, &session_.testing()}) {
    if (phase->executor == nullptr || reported_given_up_.contains(phase)) continue;
    const std::string& why = phase->executor->graphs_given_up();
    if (why.empty()) continue;
    reported_given_up_.insert(phase);
    recorder_.on_message(fmt::format("{} steps run task by task, not as graphs: {}",
                                     phase == &phase_ ? "training" : "testing", why));
  }
}

void TrainingRun::gather_bad_samples() {
  if (ranks_ == nullptr) return;
  for (const BadSample& sample : tandem::gather_bad_samples(*ranks_, loader_->bad_samples())) {
    bad_[sample.name] = sample.reason;
  }
}

void TrainingRun::list_bad_samples() {
  const Dataset& data = *setup_.training_data;
  for (const std::string& line : remark_lines(data)) recorder_.on_message(line);
  if (loader_ != nullptr) {
    for (const BadSample& sample : loader_->bad_samples()) bad_[sample.name] = sample.reason;
  }
  if (bad_.empty() || folder_ == nullptr) return;
  try {
    folder_->write_skipped(bad_);
  } catch (const Error& failure) {
    recorder_.on_message(failure.what());
  }
  recorder_.on_message(fmt::format("{} image{} left out, listed in '{}' (the first: {}: {})",
                                   bad_.size(), bad_.size() == 1 ? " was" : "s were",
                                   folder_->skipped_file().string(), bad_.begin()->first,
                                   bad_.begin()->second));
}

// The extents of a known model's layers are not the user's. To know one takes reading all of them.
void TrainingRun::note_slow_layers() {
  const std::vector<std::string> lines = timeline_->take_slow_passes();
  if (lines.empty()) return;
  const bool is_known = is_model_name(chosen_.net) || !model_of_net(setup_.net.name).empty() ||
                        !find_pretrained_net(chosen_.net).empty();
  if (is_known) return;
  for (const std::string& line : lines) recorder_.on_message("advice: " + line);
}

// Images are read while training, so that a run with two sets of them cannot be repeated.
void TrainingRun::note_changed_data(bool all) {
  if (!data_watch_) return;  // another rank does
  for (const std::string& line : data_watch_->news(all)) recorder_.on_message(line);
}

}  // namespace tandem
