#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/data/dataset_source.h"
#include "core/data/remark_lines.h"
#include "core/ranks/agreement.h"
#include "core/ranks/ranks.h"
#include "core/report/findings.h"
#include "core/report/run_report.h"
#include "core/run/folder/checkpoint.h"
#include "core/run/setup/images_text.h"
#include "core/run/setup/setup.h"
#include "core/run/setup/setup_data.h"
#include "core/session/evaluate.h"
#include "core/use/loaded_run.h"
#include "include/tandem/evaluate.h"

namespace tandem {
namespace {

using nlohmann::json;

constexpr size_t worst_mistakes = 20;
constexpr const char* val_fraction = "val_fraction";  // of data sets that draw a split

// The run's training data, for the figures that the page has of them; null if they are not there
// any more.
std::unique_ptr<Dataset> training_data_of(LoadedRun& run) {
  if (is_imported(run.record)) return nullptr;
  try {
    return open_dataset(run.registry, run.folder.net(), run.record, "", "train", TANDEM_TRAIN);
  } catch (const Error&) {
    return nullptr;
  }
}

// The training images among those that the run has left out, whose list has both splits.
std::vector<BadSample> left_out_of(const Dataset& training, const LoadedRun& run) {
  // Names are from where the run began, or, as those of the data may be, from here.
  const auto key = [&](const std::string& name) { return (run.record.folder / name).string(); };
  std::map<std::string, BadSample> left_out;
  for (BadSample& sample : run.folder.skipped()) left_out[key(sample.name)] = std::move(sample);
  std::vector<BadSample> found;
  for (int64_t i = 0; i < training.size() && !left_out.empty(); ++i) {
    auto one = left_out.extract(key(training.sample_name(i)));
    if (!one.empty()) found.push_back(std::move(one.mapped()));
  }
  return found;
}

// Writes the run's page again: what the test has found takes the place of what the last validation
// has, or, for data that are not the run's, is a section of its own. Whether it could.
bool write_report(LoadedRun& run, const TestOptions& options, bool is_validation,
                  std::unique_ptr<Dataset> tested, Findings findings,
                  const std::vector<BadSample>& bad, Observer& observer) {
  if (findings.samples == 0) return false;
  TrainSetup setup;
  setup.record = run.record;
  setup.net = run.folder.net();
  setup.solver = run.folder.solver();
  setup.training_data = training_data_of(run);
  const std::string note = tested->notes();
  setup.validation_data = std::move(tested);
  const std::string source = options.data.empty() ? run.record.options.data : options.data;
  RunFolder folder = run.folder;
  try {
    folder.lock();
  } catch (const Error&) {
    observer.on_message(fmt::format("{} was not written: another process trains or tests in '{}'",
                                    report_file, run.folder.path().string()));
    return false;
  }
  const std::string split = options.split == "train" ? "train, tested" : options.split;
  RunReport report(run.registry, setup, folder, observer, split);
  report.judge(std::move(findings),
               fmt::format("test of the {} weights on the split '{}' of '{}'", run.name,
                           options.split, source),
               bad, note);
  const std::vector<BadSample> training_bad =
      setup.training_data ? left_out_of(*setup.training_data, run) : std::vector<BadSample>();
  return report.write([&] { return run.session->weights(); }, training_bad,
                      is_validation ? ReportMoment::end : ReportMoment::other_data);
}

// How the samples relate to those of a split of the run, also as a copy or a pack.
bool share_with(const RunRecord& record, const char* split, const Fingerprint& now) {
  const auto known = record.fingerprints.find(split);
  return known != record.fingerprints.end() && share_samples(known->second, now);
}
bool are_held_out(const RunRecord& record, const Fingerprint& now) {
  const auto known = record.fingerprints.find("val");
  return known != record.fingerprints.end() && same_samples(known->second, now);
}

// The samples to test, and what is said of them. A share that is drawn for validation means
// something where training held out the same one: else every sample is tested.
struct Tested {
  std::unique_ptr<Dataset> dataset;
  bool is_validation = true;  // what training validates on, or would
  std::string note;
};

std::string text_of_all(const std::string& data, int64_t count, bool was_trained_on, bool is_val) {
  if (was_trained_on) {
    return fmt::format(
        "'{}' has images that the run was trained on: all of its {} images are tested, and the "
        "figures are not those of new images",
        data, count);
  }
  if (is_val) return fmt::format("all of the {} images of '{}' are tested", count, data);
  return fmt::format(
      "'{}' is not the data that the run was trained on: all of its {} images are tested", data,
      count);
}

Tested open_tested(LoadedRun& run, const TestOptions& options, RunRecord& record) {
  const auto open = [&] {
    return open_dataset(run.registry, run.folder.net(), record, options.data, options.split,
                        TANDEM_TEST);
  };
  const bool is_chosen =
      options.data.empty() || options.split == "train" ||
      options.data_parameters.contains(val_fraction) ||
      !declared_parameters(run.registry, options.data, options.split).contains(val_fraction);
  Tested tested;
  bool was_trained_on = false, is_val = false, is_held_out = options.data.empty();
  const auto look = [&] {
    if (options.data.empty()) return;
    const Fingerprint now = fingerprint_of(*tested.dataset, file_states(*tested.dataset));
    was_trained_on = was_trained_on || share_with(run.record, "train", now);
    is_val = is_val || share_with(run.record, "val", now);
    is_held_out = are_held_out(run.record, now);
  };
  try {
    tested.dataset = open();
    look();
  } catch (const Error&) {
    if (is_chosen) throw;  // else there may be too few images to draw a share of them
  }
  const bool is_drawn = tested.dataset == nullptr || tested.dataset->split_is_drawn();
  if (!is_chosen && !is_held_out && is_drawn) {
    record.data_parameters[val_fraction] = "1";
    tested.dataset = open();
    look();
    if (tested.dataset->split_is_drawn()) {
      tested.note = text_of_all(options.data, tested.dataset->size(), was_trained_on, is_val);
    }
  }
  tested.is_validation =
      options.split != "train" && !was_trained_on && (options.data.empty() || is_val);
  return tested;
}

// What several ranks test, as rank 0 tells the others: what it has read, and how it was asked to.
struct SharedTest {
  RunRecord record;
  NetDefinition net;
  std::string source, split, devices;
  int decode_threads = 0;
  int64_t batch = 0, samples = 0;
  bool all_views = false;
  int32_t precision = TANDEM_FLOAT32;
  PixelForm pixels = PixelForm::floats;
};

constexpr const char* test_message = "the options and the net";

// Calls take(key, value) for what is sent as it is.
template <class Test, class Take>
void for_each_shared(Test& test, const Take& take) {
  take("source", test.source);
  take("split", test.split);
  take("devices", test.devices);
  take("decode_threads", test.decode_threads);
  take("batch", test.batch);
  take("samples", test.samples);
  take("all_views", test.all_views);
  take("precision", test.precision);
  take("pixels", test.pixels);
}

void send(const Communicator& ranks, const SharedTest& test) {
  json tree = {{"record", to_json(test.record)}, {"net", write_net(test.net)}};
  for_each_shared(test, [&](const char* key, const auto& value) { tree[key] = value; });
  static_cast<void>(ranks.broadcast_text(tree.dump(), test_message));
}

SharedTest receive(const Communicator& ranks) {
  const json tree = json::parse(ranks.broadcast_text("", test_message));
  SharedTest test;
  test.record = run_record_from_json(tree.at("record").get<std::string>(), "of rank 0");
  test.net = read_net_text(tree.at("net").get<std::string>());
  for_each_shared(test, [&](const char* key, auto& value) { tree.at(key).get_to(value); });
  return test;
}

// Adds what a rank needs besides the options of one process. Returns where the ranks are.
std::string join(const Communicator& ranks, double watchdog_seconds, SessionOptions& options) {
  options.ranks = &ranks;
  options.machine.threads = ranks.hosts().processors;
  options.executor.watchdog_seconds = watchdog_seconds;
  return ranks.hosts().text();
}

// Rank 0 then has the result of all.
Evaluation evaluate_together(Session& session, const std::vector<const Dataset*>& views,
                             EvaluateOptions how, const PredictionSink& sink) {
  const Communicator& ranks = *session.options().ranks;
  auto weights = ranks.rank() == 0 ? session.weights()
                                   : std::vector<float>(size_t(session.net().weight_floats));
  ranks.broadcast(weights.data(), static_cast<int64_t>(weights.size() * sizeof(float)),
                  "the weights");
  if (ranks.rank() > 0) session.set_weights(weights);
  BatchAgreement agreement(ranks, nullptr);
  how.decode_threads = decode_threads_of(&ranks, how.decode_threads);
  how.agreement = &agreement;
  Evaluation result = evaluate_views(session, views, how, sink);
  result.bad = gather_bad_samples(ranks, result.bad);
  return result;
}

// A rank other than 0. It reads no run and says nothing but why it fails.
TestResult follow(Registry& registry, const TestOptions& options, const Communicator& ranks) {
  const SharedTest test = receive(ranks);
  const auto dataset =
      open_dataset(registry, test.net, test.record, test.source, test.split, TANDEM_TEST);
  const std::string source = test.source.empty() ? test.record.options.data : test.source;
  if (dataset->size() != test.samples) {
    throw error("the data in '{}' are not those of rank 0: {} images here, {} there", source,
                dataset->size(), test.samples);
  }
  require_same_samples(test.record.fingerprints.at(test.split), *dataset, source, test.split);
  SessionOptions session_options;
  session_options.devices = test.devices;
  session_options.testing_pixels = test.pixels;
  session_options.pixel_scale = dataset->pixel_scale();
  session_options.batch = test.batch;
  session_options.data = test.record.data;
  session_options.precision = test.precision;
  session_options.training = false;
  static_cast<void>(join(ranks, options.watchdog_seconds, session_options));
  Session session(registry, test.net, session_options);
  EvaluateOptions how;
  how.decode_threads = test.decode_threads;
  std::vector<std::unique_ptr<Dataset>> views;
  if (test.all_views) {
    views = open_views(registry, test.net, test.record, test.source, test.split);
  }
  static_cast<void>(evaluate_together(
      session, views.empty() ? std::vector<const Dataset*>{dataset.get()} : pointers(views), how,
      {}));
  TestResult result;
  result.rank = ranks.rank();
  return result;
}

// Makes the run's session, with the other ranks if there are any. `record`: what the data set was
// opened with.
void open(LoadedRun& run, const TestOptions& options, const RunRecord& record,
          const Dataset& dataset, const Communicator* ranks, Observer& observer) {
  SessionOptions chosen =
      run.testing_options(options.batch, options.precision, run.pixels_of(dataset, options.pixels),
                          dataset.pixel_scale());
  if (ranks != nullptr) {
    require_messages_from(run.registry, run.devices);
    RunRecord shared = record;
    shared.fingerprints = {{options.split, fingerprint_of(dataset, file_states(dataset))}};
    send(*ranks, {shared, run.folder.net(), options.data, options.split, run.devices,
                  options.decode_threads, chosen.batch, dataset.size(), options.all_views,
                  chosen.precision, chosen.testing_pixels});
    const std::string hosts = join(*ranks, options.watchdog_seconds, chosen);
    observer.on_message(
        fmt::format("testing on {} ranks of {} ({})", ranks->size(), run.devices, hosts));
  }
  if (const std::string limits = core_limits(ranks); !limits.empty()) observer.on_message(limits);
  chosen.executor.watchdog_seconds = options.watchdog_seconds;
  run.open(chosen, !options.precision.empty());
  if (const std::string path = run.session->message_path(); !path.empty()) {
    observer.on_message(path);
  }
}

// The only process, or rank 0 of several.
TestResult lead(Registry& registry, const TestOptions& options, Observer& observer,
                const Communicator* ranks) {
  if (options.batch < 0)
    throw error("--batch {}: the batch must have at least 1 image", options.batch);
  LoadedRun run(registry, options.run, options.devices, options.weights);
  if (options.data.empty() && is_imported(run.record)) {
    throw error("run '{}' was imported and has no data of its own: name them with --data FOLDER",
                options.run.string());
  }
  RunRecord record = run.record;
  std::string left_out;
  if (!options.data.empty()) left_out = leave_out_undeclared(registry, options.data, record);
  if (options.data_parameters.contains("mean")) record.data_parameters.erase("mean_image");
  for (const auto& [name, value] : options.data_parameters) record.data_parameters[name] = value;
  auto [dataset, is_validation, all_tested] = open_tested(run, options, record);
  open(run, options, record, *dataset, ranks, observer);
  TestResult result;
  result.class_names = run.record.class_names;
  result.weights = weights_file(options.run, run.name).string();
  result.precision = dtype_name(run.session->options().precision);
  result.pixels = run.session->options().testing_pixels == PixelForm::floats ? "floats" : "bytes";
  result.notes = dataset->notes();
  const std::string images = images_text(registry, record, options.data, options.split);
  for (const std::string& before : {images, all_tested, left_out, run.note}) {
    if (before.empty()) continue;
    result.notes = before + (result.notes.empty() ? "" : "\n" + result.notes);
  }
  EvaluateOptions how;
  how.decode_threads = options.decode_threads;
  if (options.threshold) run.require_threshold(*options.threshold);
  how.threshold = options.threshold.value_or(how.threshold);
  std::vector<std::unique_ptr<Dataset>> views;
  if (options.all_views) {
    views = open_views(registry, run.folder.net(), record, options.data, options.split);
    result.notes += std::string(result.notes.empty() ? "" : "\n") +
                    "of ten views of each image (--tta); the loss is the mean of theirs";
  }
  const std::vector<const Dataset*> seen =
      views.empty() ? std::vector<const Dataset*>{dataset.get()} : pointers(views);
  FindingsCollector collector(run.session->net(), dataset->class_count(), worst_mistakes);
  result.evaluation = ranks == nullptr
                          ? evaluate_views(*run.session, seen, how, collector.sink())
                          : evaluate_together(*run.session, seen, how, collector.sink());
  for (const std::string& line : remark_lines(*dataset)) {
    result.notes += (result.notes.empty() ? "" : "\n") + line;
  }
  Findings findings = collector.take();
  findings.figures = result.evaluation.figures;
  if (findings.without_scores > 0) {
    throw error(
        "the weights in '{}' give {} of {} images scores that are not finite: {}", result.weights,
        findings.without_scores, findings.samples,
        result.precision == "float32"
            ? "they are of no use (training diverged?)"
            : fmt::format("they are of no use, or their values are too large for {} (--precision "
                          "float32 tells)",
                          result.precision));
  }
  result.has_probabilities = learns_probabilities(run.folder.net());
  result.task = task_word(run.record.task);
  for (const Judgement& one : findings.mistakes) {
    result.worst.push_back({dataset->sample_name(one.index),
                            result.class_names.at(size_t(one.label)),
                            result.class_names.at(size_t(one.predicted)), one.probability});
  }
  observer.on_evaluation(result.evaluation);
  if (options.writes_report && write_report(run, options, is_validation, std::move(dataset),
                                            std::move(findings), result.evaluation.bad, observer)) {
    result.report = (options.run / report_file).string();
  }
  return result;
}

}  // namespace

TestResult test_run(const TestOptions& options, Observer& observer) {
  Registry registry = Registry::with_defaults();
  const std::unique_ptr<Communicator> ranks =
      open_ranks(registry, options.ranks, options.watchdog_seconds, options.given);
  return as_rank(ranks.get(), [&] {
    if (ranks != nullptr && ranks->rank() > 0) return follow(registry, options, *ranks);
    return lead(registry, options, observer, ranks.get());
  });
}

}  // namespace tandem
