#include "core/train/trainer.h"

#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/data/splits.h"
#include "core/train/event_file.h"
#include "core/train/ranks.h"
#include "core/train/resume.h"
#include "core/train/run_options.h"
#include "core/train/training_run.h"

namespace tandem {
namespace {

// Records what the machine and the strategy have chosen, so that a resumed run has the same.
void record_choices(RunRecord& record, Session& session) {
  record.options.strategy_options = session.training().whole_plan().options;
  record.machine.topology = session.options().machine.topology;
  record.algorithms = session.options().tuning.choices;
  int threads = 0;
  for (int device = 0; device < session.machine().device_count(); ++device) {
    threads += session.machine().device_info(device).threads;
  }
  record.machine.threads = threads;
}

// Writes which images were held out, so that another run can have the same split.
void keep_split(TrainSetup& setup, const RunFolder& folder) {
  if (setup.validation_data == nullptr || !setup.training_data->split_is_drawn()) return;
  const std::string list = split_list(*setup.training_data, *setup.validation_data);
  if (list.empty()) return;
  const std::string file = (folder.path() / "split.csv").string();
  write_text_file(file, list);
  setup.messages.push_back(fmt::format("the split is kept: --data {} gives it again", file));
}

// Removes what is written before the first step, and the folder if nothing else is in it.
void remove_unbegun(const std::filesystem::path& run) {
  std::error_code ignored;
  for (const char* file : {"run.json", "net.prototxt", "solver.prototxt", "plan.txt", "metrics.csv",
                           "log.txt", "classes.txt", "split.csv", "skipped.txt", report_file}) {
    std::filesystem::remove(run / file, ignored);
  }
  std::vector<std::filesystem::path> events;
  for (const auto& entry : std::filesystem::directory_iterator(run, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(event_file_prefix)) events.push_back(entry.path());
  }
  for (const auto& file : events) std::filesystem::remove(file, ignored);
  std::filesystem::remove(run, ignored);  // fails where something is left in it
}

// Gives each rank its share of the cores, unless the user has. Returns where the ranks are.
std::string divide_cores(const Communicator& ranks, TrainSetup& setup) {
  const RankHosts hosts = find_hosts(ranks);
  if (setup.record.machine.threads == 0) setup.record.machine.threads = threads_of_rank(hosts);
  return hosts.text();
}

// "cpu:2", or "2 ranks of cpu:2 (2 ranks on host1)"
std::string devices_text(const TrainOptions& chosen, const std::string& hosts) {
  if (hosts.empty()) return chosen.devices;
  return fmt::format("{} ranks of {} ({})", chosen.ranks, chosen.devices, hosts);
}

// The only process, or rank 0 of several.
TrainResult lead(Registry& registry, const TrainOptions& options, Observer& observer,
                 const Strategies& strategies, const Communicator* ranks) {
  // Reading data and making kernels ready may take a while.
  observer.on_message(options.resume ? fmt::format("reading run '{}'", options.out.string())
                                     : fmt::format("reading data '{}'", options.data));
  std::optional<RunFolder> folder;
  if (options.resume) {
    folder.emplace(RunFolder::open(options.out));
    folder->lock();
  }
  TrainSetup setup = folder ? resolve_resumed(registry, options, *folder, strategies)
                            : resolve(registry, options, strategies);

  require_computing(registry, setup.record.options.devices);
  std::string hosts;
  if (ranks != nullptr) {
    TrainOptions given = options;
    given.devices = setup.record.options.devices;
    given.strategy = setup.record.options.strategy;
    require_supported_by_ranks(registry, given);
    send_setup(*ranks, setup);
    hosts = divide_cores(*ranks, setup);
  }
  const KernelChoices known = setup.record.algorithms;
  Session session(registry, setup.net, session_options(registry, setup, ranks));
  if (setup.record.options.tune) {
    setup.messages.push_back(
        tuning_text(session.options().tuning, known, session.machine().kind()));
  }
  const Plan& plan = session.training().whole_plan();
  std::optional<Checkpoint> checkpoint;
  FirstState first;
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
    if (setup.first_weights.empty()) {
      session.set_initial_weights(*setup.record.options.seed);
    } else {
      session.set_weights(setup.first_weights);
      first.checkpoint.weights = std::move(setup.first_weights);
    }
    record_choices(setup.record, session);
    if (setup.record.options.out.empty())
      setup.record.options.out = RunFolder::free_name(setup.record.net_name);
    folder.emplace(RunFolder::create(setup.record.options.out));
    folder->write(setup.record, setup.net, setup.solver);
    keep_split(setup, *folder);
  }
  const TrainOptions& chosen = setup.record.options;
  const int64_t first_step = checkpoint ? checkpoint->step : 0;
  Recorder recorder(*folder, observer, chosen.display, first_step,
                    first_step * chosen.batch * setup.solver.micro_batches_per_step /
                        setup.record.training_samples);
  write_text_file(folder->plan_file(), to_text(plan));
  recorder.on_message(
      fmt::format("{} net '{}' on {}: {} training images, {} classes, batch {}, {} steps, strategy "
                  "{} on {}, seed {}",
                  checkpoint ? "continuing" : "training", setup.record.net_name, chosen.data,
                  setup.record.training_samples, setup.record.class_names.size(), chosen.batch,
                  chosen.steps, chosen.strategy, devices_text(chosen, hosts), *chosen.seed));
  for (const std::string& message : setup.messages) recorder.on_message(message);
  // With one device nothing travels, and how the work is split has no effect. plan.txt has the
  // notes.
  if (plan.devices > 1) {
    for (const std::string& note : plan.notes) recorder.on_message(note);
  }
  recorder.on_message("memory: " + session.memory_forecast());
  recorder.on_message("run folder: " + folder->path().string());

  TrainingRun run(registry, setup, &*folder, session, recorder);
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
    if (!checkpoint->note.empty()) recorder.on_message(checkpoint->note);
  }
  if (ranks != nullptr) {
    if (checkpoint) first = {true, *checkpoint};
    share_first_state(*ranks, first);
  }
  TrainResult result = run.go();
  if (!checkpoint && result.steps == 0) {
    recorder.on_message("stopped before the first step: nothing is kept");
    remove_unbegun(folder->path());
    result.run.clear();
  } else if (result.stopped) {
    recorder.on_message(
        fmt::format("stopped after step {} and saved; go on with: tandem train --out {} --resume",
                    result.steps, folder->path().string()));
  }
  return result;
}

// A rank other than 0. It has no folder and says nothing but why it fails.
TrainResult follow(Registry& registry, const TrainOptions& options, const Strategies& strategies,
                   const Communicator& ranks) {
  try {
    TrainSetup setup = receive_setup(ranks, registry, options, strategies);
    static_cast<void>(divide_cores(ranks, setup));
    Session session(registry, setup.net, session_options(registry, setup, &ranks));
    FirstState first;
    share_first_state(ranks, first);
    if (!first.is_resumed && first.checkpoint.weights.empty()) {
      session.set_initial_weights(*setup.record.options.seed);
    } else if (!first.is_resumed) {
      session.set_weights(first.checkpoint.weights);
    }
    Observer silent;
    TrainingRun run(registry, setup, nullptr, session, silent);
    if (first.is_resumed) run.start_from(first.checkpoint);
    TrainResult result = run.go();
    result.rank = ranks.rank();
    return result;
  } catch (const Error& failure) {
    throw error("rank {} of {}: {}", ranks.rank(), ranks.size(), failure.what());
  }
}

}  // namespace

TrainResult train(const TrainOptions& options, Observer& observer) {
  return train(options, observer, built_in_strategies());
}

TrainResult train(const TrainOptions& options, Observer& observer, const Strategies& strategies) {
  Registry registry = Registry::with_defaults();
  const std::unique_ptr<Communicator> ranks = open_ranks(registry, options.ranks);
  try {
    TrainOptions present = options;
    present.ranks = ranks == nullptr ? 1 : ranks->size();
    if (ranks != nullptr && ranks->rank() > 0) return follow(registry, present, strategies, *ranks);
    return lead(registry, present, observer, strategies, ranks.get());
  } catch (...) {
    if (ranks != nullptr) ranks->abort();  // nobody waits for this rank to close
    throw;
  }
}

}  // namespace tandem
