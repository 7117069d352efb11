#include "include/tandem/predict.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/png.h"
#include "core/base/shape.h"
#include "core/base/strings.h"
#include "core/data/display.h"
#include "core/train/checkpoint.h"
#include "core/train/evaluate.h"
#include "core/train/report/class_map.h"
#include "core/train/report/findings.h"
#include "core/train/run_folder.h"
#include "core/train/session.h"
#include "core/train/setup.h"
#include "include/tandem/evaluate.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr size_t worst_mistakes = 20;
constexpr int64_t prediction_batch = 32;

// A run loaded for use: its record, and once it is opened a session with its weights.
struct Loaded {
  Loaded(const fs::path& run, std::string on, const std::string& which)
      : registry(Registry::with_defaults()),
        folder(RunFolder::open(run)),
        record(folder.record()),
        devices(std::move(on)) {
    if (which != "best" && which != "last") {
      throw error("weights '{}': there are 'best' and 'last'", which);
    }
    name = which == "best" && has_checkpoint(run, "best") ? "best" : "last";
    if (!has_checkpoint(run, name)) {
      throw error("run '{}' has no checkpoint yet ('{}')", run.string(),
                  (run / "last.safetensors").string());
    }
    require_computing(registry, devices);
  }

  // precision: "" is the run's.
  void open(int64_t batch, const std::string& precision, PixelForm pixels,
            const PixelScale& scale) {
    SessionOptions options;
    options.devices = devices;
    options.testing_pixels = pixels;
    options.pixel_scale = scale;
    options.batch = batch > 0 ? batch : record.options.batch;
    options.data = record.data;
    options.precision = parse_precision(precision.empty() ? record.options.precision : precision);
    options.training = false;
    open_session(options, !precision.empty());
    const Checkpoint checkpoint = read_checkpoint(folder.path(), name, session->net(), false);
    session->set_weights(checkpoint.weights);
    if (!checkpoint.note.empty()) add_note(checkpoint.note);
  }

  // `given`: --pixels. Default: as the run was trained, if the data can be.
  PixelForm pixels_of(const Dataset& dataset, const std::string& given) {
    const bool decides = !given.empty() && given != "auto";
    if (decides) require_pixels_word(given);
    const std::string& pixels = decides ? given : record.options.pixels;
    if (pixels == "bytes" && !dataset.has_bytes()) {
      const std::string reason = dataset.why_no_bytes();
      if (decides) throw error("--pixels bytes: {}", reason);
      add_note(fmt::format("pixels are floats, not bytes as in the run: {}", reason));
    }
    return pixel_form(pixels, dataset);
  }

  void add_note(const std::string& text) { note += (note.empty() ? "" : "\n") + text; }

  // Where the devices cannot compute in the run's precision, float32 replaces it, unless it was
  // given explicitly.
  void open_session(SessionOptions options, bool is_explicit) {
    try {
      session.emplace(registry, folder.net(), options);
    } catch (const Error& refused) {
      if (is_explicit || options.precision == TANDEM_FLOAT32) throw;
      options.precision = TANDEM_FLOAT32;
      session.emplace(registry, folder.net(), options);
      add_note(fmt::format("in float32, not in the run's {}: {}", record.options.precision,
                           refused.what()));
    }
  }

  Registry registry;
  RunFolder folder;
  RunRecord record;
  std::string devices;
  std::string name, note;
  std::optional<Session> session;
};

}  // namespace

TestResult test_run(const TestOptions& options, Observer& observer) {
  if (options.batch < 0)
    throw error("--batch {}: the batch must have at least 1 image", options.batch);
  Loaded run(options.run, options.devices, options.weights);
  const auto dataset = open_dataset(run.registry, run.folder.net(), run.record, options.data,
                                    options.split, TANDEM_TEST);
  run.open(options.batch, options.precision, run.pixels_of(*dataset, options.pixels),
           dataset->pixel_scale());
  TestResult result;
  result.class_names = run.record.class_names;
  result.weights = (options.run / (run.name + ".safetensors")).string();
  result.precision = dtype_name(run.session->options().precision);
  result.pixels = run.session->options().testing_pixels == PixelForm::floats ? "floats" : "bytes";
  result.notes = dataset->notes();
  if (!run.note.empty())
    result.notes = run.note + (result.notes.empty() ? "" : "\n" + result.notes);
  FindingsCollector collector(run.session->net(), dataset->class_count(), worst_mistakes);
  result.evaluation =
      evaluate(*run.session, *dataset, {options.decode_threads, false, nullptr}, collector.sink());
  for (const Judgement& one : collector.take().mistakes) {
    result.worst.push_back(
        {dataset->sample_name(one.index), result.class_names.at(static_cast<size_t>(one.label)),
         result.class_names.at(static_cast<size_t>(one.predicted)), one.probability});
  }
  observer.on_evaluation(result.evaluation);
  return result;
}

struct Predictor::State {
  Loaded run;
  std::optional<ClassMapper> mapper{};
  fs::path folder{};  // of its pictures
  std::set<std::string> names{};

  // Writes the picture of a sample and returns its path. Two images of one name get two pictures.
  std::string explain(const std::vector<float>& pixels, const fs::path& image, int64_t label);
};

std::string Predictor::State::explain(const std::vector<float>& pixels, const fs::path& image,
                                      int64_t label) {
  const Display display(run.record.data_parameters, run.record.data);
  const ClassMap map = mapper->map(pixels, label);
  const Picture picture = explained_picture(display.picture(pixels.data()), map);
  std::string name = image.stem().string();
  for (int number = 2; !names.insert(name).second; ++number) {
    name = fmt::format("{}-{}", image.stem().string(), number);
  }
  const fs::path file = folder / (name + ".explained.png");
  write_text_file(file, to_png(picture.width, picture.height, picture.pixels));
  return file.string();
}

Predictor::Predictor(const fs::path& run, const std::string& devices, const std::string& weights)
    : state_(new State{Loaded(run, devices, weights)}) {
  // The files are not known yet, so the loader converts bytes to floats, with the same bits.
  const bool as_bytes = state_->run.record.options.pixels == "bytes";
  state_->run.open(prediction_batch, dtype_name(TANDEM_FLOAT32),
                   as_bytes ? PixelForm::rounded : PixelForm::floats, {});
  if (state_->run.session->net().prediction >= 0) return;
  throw error(
      "net '{}' gives no class scores: it has neither a loss with labels nor an accuracy; `tandem "
      "test` measures its losses",
      state_->run.record.net_name);
}
Predictor::~Predictor() = default;

const std::vector<std::string>& Predictor::class_names() const {
  return state_->run.record.class_names;
}

const std::string& Predictor::note() const {
  return state_->run.note;
}

std::string Predictor::explain(const fs::path& folder) {
  Loaded& run = state_->run;
  (void)Display(run.record.data_parameters, run.record.data);  // refuses what cannot be drawn
  state_->mapper.emplace(run.registry, run.folder.net(), run.record.data, run.session->weights(),
                         true);
  std::error_code code;
  fs::create_directories(folder, code);
  if (!fs::is_directory(folder, code)) {
    throw error("'{}' is no folder and cannot be made one", folder.string());
  }
  state_->folder = folder;
  return state_->mapper->method();
}

std::vector<Prediction> Predictor::predict(const std::vector<fs::path>& paths, int top) {
  Loaded& run = state_->run;
  std::string source;
  for (const fs::path& path : paths) {
    std::error_code code;
    const fs::path absolute = fs::absolute(path, code);
    if (code || !fs::exists(absolute, code)) throw error("'{}' does not exist", path.string());
    source += absolute.string() + "\n";
  }
  // The data set's split "predict" takes a list of files and folders, one per line, and gives every
  // file label 0.
  const auto dataset =
      open_dataset(run.registry, run.folder.net(), run.record, source, "predict", TANDEM_TEST);
  std::vector<Prediction> result(static_cast<size_t>(dataset->size()));
  std::vector<float> pixels(static_cast<size_t>(element_count(run.record.data)));
  for (size_t i = 0; i < result.size(); ++i)
    result[i].path = dataset->sample_name(static_cast<int64_t>(i));

  const bool already = gives_probabilities(run.session->net());
  std::vector<bool> seen(result.size(), false);
  std::vector<int64_t> first(result.size());  // classes
  const PredictionSink sink = [&](int64_t index, int64_t, const float* scores, int64_t classes) {
    const std::vector<double> p = probabilities(scores, classes, already);
    std::vector<size_t> order(p.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] > p[b]; });
    Prediction& prediction = result[static_cast<size_t>(index)];
    seen[static_cast<size_t>(index)] = true;
    first[static_cast<size_t>(index)] = static_cast<int64_t>(order[0]);
    for (size_t i = 0; i < order.size() && i < static_cast<size_t>(top); ++i) {
      const std::vector<std::string>& names = run.record.class_names;
      const std::string name =
          order[i] < names.size() ? names[order[i]] : fmt::format("class {}", order[i]);
      prediction.scores.push_back({name, p[order[i]]});
    }
  };
  (void)evaluate(*run.session, *dataset, {0, true, nullptr}, sink);
  for (size_t i = 0; i < result.size(); ++i) {
    if (seen[i] && !state_->mapper) continue;
    float label = 0;
    dataset->get(static_cast<int64_t>(i), 0, pixels.data(), &label, &result[i].error);
    if (seen[i] && result[i].error.empty()) {
      result[i].explanation = state_->explain(pixels, result[i].path, first[i]);
    } else if (result[i].error.empty()) {
      result[i].error = "the image could not be used";
    }
  }
  return result;
}

}  // namespace tandem
