#include "core/run/trainer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/data/dataset_statistics.h"
#include "core/data/fingerprint.h"
#include "core/data/loader/loader.h"
#include "core/data/splits.h"
#include "core/device/parse.h"
#include "core/formats/event_file.h"
#include "core/model/file/learning_rate.h"
#include "core/ranks/ranks.h"
#include "core/report/run_page.h"
#include "core/run/folder/first_state.h"
#include "core/run/long_run.h"
#include "core/run/plugin_trial.h"
#include "core/run/setup/rank_setup.h"
#include "core/run/setup/resume.h"
#include "core/run/setup/session_options.h"
#include "core/run/training_run.h"
#include "core/schedule/kernels/guarded_pass.h"

namespace tandem {
namespace {

// Records what the machine and the strategy have chosen, so that a resumed run has the same.
void record_choices(RunRecord& record, Session& session) {
  record.options.strategy_options = session.training().whole_plan().options;
  const SessionOptions& options = session.options();
  record.machine.topology =
      options.ranks == nullptr ? options.machine.topology : options.rank_topology;
  record.algorithms = options.tuning.choices;
  record.layer_types.clear();
  for (const Layer& layer : session.training().net.layers) {
    record.layer_types.insert(layer.type->name);
  }
  record.machine.threads = 0;
  for (int device = 0; device < session.machine().device_count(); ++device) {
    record.machine.threads += session.machine().device_info(device).threads;
  }
}

// Writes which images were held out, so that another run can have the same split.
void keep_split(TrainSetup& setup, const RunFolder& folder) {
  if (setup.validation_data == nullptr || !setup.training_data->split_is_drawn()) return;
  const std::string list = split_list(*setup.training_data, *setup.validation_data);
  if (list.empty()) return;
  const std::string file = (folder.path() / "split.csv").string();
  write_text_file(file, list);
  setup.note("the split is kept: --data {} gives it again", file);
}

// Records what the data look like. Notes if a resumed run's data have changed.
void recognize_data(TrainSetup& setup) {
  struct Split {
    const char* name;
    const Dataset* dataset;
    std::vector<FileState>& files;
  };
  const Split splits[] = {{"train", setup.training_data.get(), setup.training_files},
                          {"val", setup.validation_data.get(), setup.validation_files}};
  std::map<std::string, Fingerprint>& known = setup.record.fingerprints;
  for (const auto& [split, dataset, files] : splits) {
    if (dataset == nullptr) continue;
    files = file_states(*dataset);
    Fingerprint now = fingerprint_of(*dataset, files);
    const auto before = known.find(split);
    const std::string differs =
        before == known.end() ? "" : difference(before->second, now, *dataset);
    if (!differs.empty()) {
      setup.note(
          "note: the {} images in '{}' are not those that the run has read so far ({}); it goes on "
          "with these",
          *split == 't' ? "training" : "validation", setup.record.options.data, differs);
    }
    known[split] = std::move(now);
  }
}

// The folder of a new run until its first step is done: a failure before removes it, so that the
// same command can be given again. A list of damaged images, which the failure names, stays.
class FolderUntilBegun {
 public:
  explicit FolderUntilBegun(const RunFolder& folder) : folder_(folder) {}
  FolderUntilBegun(const FolderUntilBegun&) = delete;
  FolderUntilBegun& operator=(const FolderUntilBegun&) = delete;
  ~FolderUntilBegun() {
    std::error_code ignored;
    const bool keeps_list = std::filesystem::exists(folder_.skipped_file(), ignored);
    if (!is_begun_ && !keeps_list && folder_.is_in_place()) folder_.remove_unbegun();
  }
  void begin() { is_begun_ = true; }

 private:
  const RunFolder& folder_;
  bool is_begun_ = false;
};

// Gives each rank its share of the cores, unless the user has.
void divide_cores(const Communicator& ranks, TrainSetup& setup) {
  int& threads = setup.record.machine.threads;
  if (threads == 0) threads = ranks.hosts().processors;
}

// "cpu:2", or "2 ranks of cpu:2 (2 ranks on host1)"
std::string devices_text(const TrainOptions& chosen, const std::string& hosts) {
  if (hosts.empty()) return chosen.devices;
  return fmt::format("{} ranks of {} ({})", chosen.ranks, chosen.devices, hosts);
}

// Adds guards around third parties' kernels if the user asks for them.
SessionOptions checked_options(Registry& registry, const TrainOptions& options, TrainSetup& setup,
                               const Communicator* ranks, PluginGuards& guards) {
  SessionOptions result = session_options(registry, setup, ranks);
  if (!options.check_plugins) return result;
  const std::string kind = parse_devices(setup.record.options.devices, registry).kind;
  if (!is_host_addressable(registry.backend(kind))) {
    throw error(
        "--check-plugins needs devices whose memory the host reaches, and not '{0}': use cpu, or "
        "'tandem plugin check NAME --device {0}'",
        kind);
  }
  result.executor.guards = &guards;
  return result;
}

// What ran between guards.
void report_guards(const PluginGuards& guards, const TrainSetup& setup, Observer& observer) {
  int64_t samples = 0;
  for (const Dataset* data : {setup.training_data.get(), setup.validation_data.get()}) {
    if (data != nullptr) samples += std::max<int64_t>(data->guarded_samples(), 0);
  }
  if (samples > 0) {
    observer.on_message(
        fmt::format("--check-plugins: {} samples of data set '{}' were read between guards",
                    samples, setup.record.dataset));
  }
  if (samples == 0 || guards.has_passes()) observer.on_message(guards.text());
}

// Makes the last checkpoint of a resumed run whole.
void require_checkpoint(const RunFolder& folder) {
  complete_pairs(folder.path());
  if (has_checkpoint(folder.path(), "last")) return;
  if (const auto weights = weights_without_last(folder.path()); !weights.empty()) {
    throw error(
        "run '{}' cannot be resumed: its last.safetensors is gone, from which it would go on. A "
        "new run begins with the weights that are there by --weights '{}' and another --out",
        folder.path().string(), weights.string());
  }
  throw error(
      "run '{}' has no checkpoint to resume from: it stopped before its first one. Remove the "
      "folder, or name another with --out, and begin again",
      folder.path().string());
}

// Reads the last checkpoint of a resumed run.
Checkpoint continue_in(const RunFolder& folder, TrainSetup& setup, Session& session) {
  require_checkpoint(folder);
  Checkpoint checkpoint = read_checkpoint(folder.path(), "last", session.net(), true);
  folder.remove_unfinished();
  folder.write(setup.record, setup.net, setup.solver);
  return checkpoint;
}

// Opens the session of the whole net, which needs the most memory, and has the record and `lines`
// say what it has chosen; then that of the head's net, if the head learns alone at first.
// `done`: the steps before, of a run that goes on.
void open_session(Registry& registry, TrainSetup& setup, const SessionOptions& options,
                  int64_t done, std::optional<Session>& session, std::vector<std::string>& lines) {
  const KernelChoices known = setup.record.algorithms;
  session.emplace(registry, setup.net, options);
  if (may_take_days(setup, *session)) {
    const std::string text = long_run_text(setup, setup.record.options.steps - done, *session);
    if (!text.empty()) setup.messages.push_back(text);
    const SessionOptions same = session->options();
    session.emplace(registry, setup.net, same);
  }
  record_choices(setup.record, *session);
  // With one device nothing travels, and how the work is split has no effect. plan.txt has the
  // notes.
  const Plan& plan = session->training().whole_plan();
  if (plan.devices > 1) lines = plan.notes;
  if (!plan.recomputation.empty()) lines.push_back(plan.recomputation);
  lines.push_back("memory: " + session->memory_forecast());
  if (setup.head_net) {
    lines.back() += ", when all layers learn";
    // What the strategy has chosen need not fit the head's net, whose gradients are small.
    SessionOptions of_head = session->options();
    of_head.strategy = "sequential";
    of_head.strategy_options.clear();
    session.emplace(registry, *setup.head_net, of_head);
    setup.record.algorithms = session->options().tuning.choices;
  }
  if (setup.record.options.tune) {
    setup.messages.push_back(
        tuning_text(session->options().tuning, known, session->machine().kind()));
  }
}

// Sets the first weights of a new run and makes its folder.
RunFolder begin_run(TrainSetup& setup, Session& session) {
  TrainOptions& chosen = setup.record.options;
  session.set_first_weights(setup.first_weights, *chosen.seed);
  if (chosen.out.empty()) chosen.out = RunFolder::free_name(setup.record.net_name);
  return RunFolder::create(chosen.out);
}

void write_first_files(TrainSetup& setup, const RunFolder& folder) {
  folder.write_net_before_tuning(setup.record, setup.untuned_net);
  folder.write(setup.record, setup.net, setup.solver);
  keep_split(setup, folder);
}

// Reports what is trained, on what, and what was chosen.
void report_setup(const TrainSetup& setup, Session& session, const RunFolder& folder,
                  const std::string& hosts, const std::vector<std::string>& lines,
                  bool is_continued, Observer& observer) {
  const TrainOptions& chosen = setup.record.options;
  observer.on_message(fmt::format(
      "{} net '{}' on {}: {} training images, {} {}, batch {}, {} steps, strategy "
      "{} on {}, seed {}",
      is_continued ? "continuing" : "training", setup.record.net_name, chosen.data,
      setup.record.training_samples, setup.record.class_names.size(), task_text(setup.record.task),
      chosen.batch, chosen.steps, chosen.strategy, devices_text(chosen, hosts), *chosen.seed));
  if (const std::string path = session.message_path(); !path.empty()) observer.on_message(path);
  for (const std::string& message : setup.messages) observer.on_message(message);
  const std::string kernels = session.machine().device_info(0).kernels;
  if (parse_precision(chosen.precision) != TANDEM_FLOAT32 && !kernels.empty()) {
    observer.on_message(fmt::format("{}: {}", chosen.precision, kernels));
  }
  for (const std::string& line : lines) observer.on_message(line);
  observer.on_message("run folder: " + folder.path().string());
}

// The report is written after the last checkpoint; a run that ended in between has none of its end.
std::string missing_report(const RunFolder& folder, int64_t step) {
  const std::filesystem::path file = folder.path() / report_file;
  std::error_code code;
  const bool is_there = std::filesystem::is_regular_file(file, code);
  if (is_there && read_text_file(file).find(last_step_mark(step)) != std::string::npos) return "";
  return fmt::format("; {} is {}: tandem test --run {} writes it", report_file,
                     is_there ? "older" : "missing", folder.path().string());
}

// Throws CompleteRun if there is no step left.
void start_from(const Checkpoint& checkpoint, const TrainOptions& chosen, const RunFolder& folder,
                TrainingRun& run) {
  run.start_from(checkpoint);
  run.complete_names(checkpoint);
  const auto due = checkpoint.metadata.find("test_due");
  const bool test_due = due != checkpoint.metadata.end() && due->second == "1";
  if (checkpoint.step >= chosen.steps && !test_due) {
    throw CompleteRun(fmt::format(
        "run '{}' is complete: it has done {} of {} steps; ask for more with --steps or --epochs{}",
        folder.path().string(), checkpoint.step, chosen.steps,
        missing_report(folder, checkpoint.step)));
  }
}

// The rate of some policies follows the length of the run, which a resumed run may change.
void report_other_rate(const TrainSetup& setup, int64_t step, Observer& observer) {
  SolverDefinition before = setup.solver;
  before.max_steps = setup.steps_before;
  const double next = learning_rate(setup.solver, step);
  constexpr double tolerance = 0.01;
  if (std::abs(next - learning_rate(before, step)) <= tolerance * next) return;
  observer.on_message(fmt::format(
      "learning rate: lr_policy '{}' ends with the run, which has {} steps now instead of {}: the "
      "rate goes from {:.3g} in step {} to {:.3g} in step {}; for another schedule begin a new run "
      "with --weights {}",
      before.rate_policy, setup.solver.max_steps, before.max_steps, learning_rate(before, step - 1),
      step, next, step + 1, setup.record.options.out.string()));
}

// Sends the setup to the other ranks. Returns the text of their hosts.
std::string share_setup(const Communicator& ranks, Registry& registry, const TrainOptions& options,
                        TrainSetup& setup) {
  TrainOptions given = options;
  given.devices = setup.record.options.devices;
  given.strategy = setup.record.options.strategy;
  require_supported_by_ranks(registry, given);
  send_setup(ranks, setup);
  divide_cores(ranks, setup);
  return ranks.hosts().text();
}

// Sends what the run begins with to the other ranks.
void send_first_state(const Communicator& ranks, const std::optional<Checkpoint>& checkpoint,
                      TrainSetup& setup) {
  FirstState first;
  first.is_resumed = checkpoint.has_value();
  if (checkpoint) first.checkpoint = *checkpoint;
  if (!checkpoint) first.checkpoint.weights = std::move(setup.first_weights);
  share_first_state(ranks, first);
}

// Says how the run ended. A run that has not begun leaves nothing.
void conclude(TrainResult& result, bool is_new, const RunFolder& folder, Observer& observer) {
  if (!folder.is_in_place()) {
    observer.on_message(
        fmt::format("run folder '{}' was moved, replaced or removed after step {}: the run is "
                    "where the folder is now{}",
                    folder.path().string(), result.steps,
                    result.stopped && result.steps > 0 ? ", and goes on there with --resume" : ""));
    result.run.clear();
  } else if (is_new && result.steps == 0) {
    observer.on_message("stopped before the first step: nothing is kept");
    folder.remove_unbegun();
    result.run.clear();
  } else if (result.stopped) {
    observer.on_message(
        fmt::format("stopped after step {} and saved; go on with: tandem train --out {} --resume",
                    result.steps, folder.path().string()));
  }
}

// Reading data and making kernels ready may take a while.
void say_what_is_read(const TrainOptions& options, Observer& observer) {
  if (options.resume) {
    observer.on_message(fmt::format("reading run '{}'", options.out.string()));
  } else if (!options.data.empty()) {  // else it is refused
    observer.on_message(fmt::format("reading data '{}'", options.data));
  }
}

// Trains as the only process, or as rank 0 of several.
TrainResult train_as_root(Registry& registry, const TrainOptions& options, Observer& observer,
                          const Strategies& strategies, const Communicator* ranks) {
  say_what_is_read(options, observer);
  std::optional<RunFolder> folder;
  if (options.resume) {
    folder.emplace(RunFolder::open(options.out));
    folder->lock();
  }
  TrainSetup setup = folder ? resolve_resumed(registry, options, *folder, strategies)
                            : resolve(registry, options, strategies);
  recognize_data(setup);
  int64_t done = 0;
  if (folder) {
    require_checkpoint(*folder);
    done = std::max<int64_t>(0, checkpoint_step(folder->path(), "last"));
  }
  begin_with_head(registry, done, setup);
  const TrainOptions& chosen = setup.record.options;
  require_computing(registry, chosen.devices);
  if (options.try_plugins) {
    for (std::string& line :
         try_plugins(registry, setup, options.plugin_check_without, ranks != nullptr)) {
      setup.messages.push_back(std::move(line));
    }
  }
  const std::string hosts = ranks != nullptr ? share_setup(*ranks, registry, options, setup) : "";
  if (const std::string limits = core_limits(ranks); !limits.empty()) setup.note("{}", limits);
  PluginGuards guards;
  setup.watch =
      tell_work([&](const std::string& line) { observer.on_message(line); }, options.stop);
  std::optional<Session> session;
  std::vector<std::string> lines;
  open_session(registry, setup, checked_options(registry, options, setup, ranks, guards), done,
               session, lines);
  std::optional<Checkpoint> checkpoint;
  std::optional<FolderUntilBegun> until_begun;
  if (folder) {
    checkpoint = continue_in(*folder, setup, *session);
  } else {
    folder.emplace(begin_run(setup, *session));
    until_begun.emplace(*folder);
    write_first_files(setup, *folder);
  }
  const int64_t first_step = checkpoint ? checkpoint->step : 0;
  Recorder recorder(*folder, observer, setup.record.task, first_step,
                    first_step * chosen.batch * setup.solver.micro_batches_per_step /
                        setup.record.training_samples);
  write_text_file(folder->plan_file(), to_text(session->training().whole_plan()));

  TrainingRun run(registry, setup, &*folder, session, recorder);
  if (checkpoint) start_from(*checkpoint, chosen, *folder, run);
  report_setup(setup, *session, *folder, hosts, lines, checkpoint.has_value(), recorder);
  if (checkpoint) {
    recorder.on_message(fmt::format("resumed after step {}", first_step));
    report_other_rate(setup, checkpoint->step, recorder);
  }
  if (ranks != nullptr) send_first_state(*ranks, checkpoint, setup);
  TrainResult result;
  try {
    result = run.go();
  } catch (...) {
    if (until_begun && run.steps_done() > 0) until_begun->begin();
    throw;
  }
  if (until_begun) until_begun->begin();
  if (options.check_plugins) report_guards(guards, setup, recorder);
  conclude(result, !checkpoint, *folder, recorder);
  return result;
}

// Trains as a rank other than 0, which has no folder and prints only its failure.
TrainResult train_as_other_rank(Registry& registry, const TrainOptions& options,
                                const Strategies& strategies, const Communicator& ranks) {
  TrainSetup setup = receive_setup(ranks, registry, options, strategies);
  divide_cores(ranks, setup);
  PluginGuards guards;
  std::optional<Session> session;
  std::vector<std::string> unsaid;
  open_session(registry, setup, checked_options(registry, options, setup, &ranks, guards), 0,
               session, unsaid);
  FirstState first;
  share_first_state(ranks, first);
  if (!first.is_resumed) {
    session->set_first_weights(first.checkpoint.weights, *setup.record.options.seed);
  }
  Observer silent;
  TrainingRun run(registry, setup, nullptr, session, silent);
  if (first.is_resumed) run.start_from(first.checkpoint);
  TrainResult result = run.go();
  result.rank = ranks.rank();
  return result;
}

}  // namespace

TrainResult train(const TrainOptions& options, Observer& observer) {
  return train(options, observer, built_in_strategies());
}

TrainResult train(const TrainOptions& options, Observer& observer, const Strategies& strategies) {
  Registry registry = Registry::with_defaults();
  const std::unique_ptr<Communicator> ranks =
      open_ranks(registry, options.ranks, options.watchdog_seconds, options.given);
  return as_rank(ranks.get(), [&] {
    require_decode_threads(options.decode_threads);  // before there is a run folder
    TrainOptions present = options;
    present.ranks = ranks == nullptr ? 1 : ranks->size();
    if (ranks != nullptr && ranks->rank() > 0)
      return train_as_other_rank(registry, present, strategies, *ranks);
    return train_as_root(registry, present, observer, strategies, ranks.get());
  });
}

}  // namespace tandem
