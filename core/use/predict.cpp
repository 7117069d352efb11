#include "include/tandem/predict.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/files/memory_file.h"
#include "core/base/parallel.h"
#include "core/base/text/strings.h"
#include "core/data/dataset_source.h"
#include "core/data/dataset_statistics.h"
#include "core/data/remark_lines.h"
#include "core/report/captions.h"
#include "core/report/class_map.h"
#include "core/report/display.h"
#include "core/report/explained.h"
#include "core/report/findings.h"
#include "core/report/page/png.h"
#include "core/run/setup/images_text.h"
#include "core/run/setup/setup.h"
#include "core/run/setup/setup_data.h"
#include "core/session/evaluate.h"
#include "core/session/net_runner.h"
#include "core/use/loaded_run.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Throws Error for a picture without data, or whose bytes are not those of its extents.
void require_sense(const Picture& picture, size_t index) {
  if (picture.data == nullptr) throw error("picture {} has no data", index);
  if (picture.height == 0) return;
  constexpr int64_t max_side = 1 << 20;
  const auto [data, bytes, height, width, channels] = picture;
  if (height < 1 || width < 1 || height > max_side || width > max_side ||
      (channels != 1 && channels != 3) || bytes != size_t(height * width * channels)) {
    throw error(
        "picture {} has {} bytes, but {} rows of {} pixels with {} channels: channels are 1 or 3, "
        "and bytes rows times pixels times channels",
        index, bytes, height, width, channels);
  }
}

// The bytes as a file that the data set reads.
MemoryFile as_file(const Picture& picture) {
  if (picture.height == 0) return {picture.data, picture.bytes};
  return MemoryFile::picture(static_cast<const uint8_t*>(picture.data), picture.height,
                             picture.width, picture.channels);
}

// The absolute path of a file or folder. Throws Error if there is none, or if its path would be two
// lines of a list or of what is printed.
fs::path existing(const fs::path& path) {
  if (path.empty()) throw Error("'' does not exist");
  fs::path absolute = absolute_path(path);
  if (!path_status(absolute).exists()) throw error("'{}' does not exist", path.string());
  if (absolute.string().find_first_of("\n\r") != std::string::npos) {
    throw error("the path '{}' contains a line break: rename it", absolute.string());
  }
  return absolute;
}

// A path that was given, and the absolute one that the data set reads.
struct GivenPath {
  std::string given, absolute;
};

// The names of samples begin with the path that was given, as in the messages of other commands.
// `at`: the paths before it are done; samples are in the order of the paths.
std::string as_given(const std::string& sample, const std::vector<GivenPath>& paths, size_t& at) {
  const auto begins = [&](const GivenPath& path) {
    return sample.starts_with(path.absolute) &&
           (sample.size() == path.absolute.size() || path.absolute.ends_with('/') ||
            sample[path.absolute.size()] == '/');
  };
  size_t found = at;
  while (found < paths.size() && !begins(paths[found])) ++found;
  if (found == paths.size()) return sample;
  at = found;
  return paths[at].given + sample.substr(paths[at].absolute.size());
}

constexpr const char* not_finite =
    "the net gives it scores that are not finite: the weights are of no use (training diverged?)";

}  // namespace

struct Predictor::State {
  State(const fs::path& folder, const std::string& devices, const std::string& weights)
      : registry(Registry::with_defaults()), run(registry, folder, devices, weights) {}
  // What predictions say of the net's scores.
  [[nodiscard]] std::vector<double> values_of(const float* scores, int64_t classes) const;
  // Fills in the best classes, or why there are none. Returns the first of them.
  int64_t judge(const float* scores, int64_t classes, int top, Prediction& prediction) const;
  // Pictures [first, end), as Predictor::scores().
  void predict(const std::vector<Picture>& pictures, size_t first, size_t end, float* results,
               std::vector<std::string>& errors);

  // Writes the picture of a sample and returns its path. Two images of one name get two pictures.
  std::string explain(const std::vector<float>& pixels, const fs::path& image, int64_t label,
                      const std::string& caption);
  // The file as a picture of its own size, at most 1600 pixels on a side, and what of it the net
  // saw. Without a size of its own: what the net read, `pixels`.
  std::pair<DrawnPicture, SeenPart> photo_of(const fs::path& image,
                                             const std::vector<float>& pixels);

  Registry registry;
  LoadedRun run;
  bool has_probabilities =
      run.record.task == TANDEM_TASK_LABELS ||
      (run.record.task == TANDEM_TASK_CLASSES && learns_probabilities(run.folder.net()));
  double threshold = 0.5;
  bool all_views = false;
  std::vector<std::string> remarks;  // on the images of the last predict()
  std::optional<NetRunner> runner;
  std::mutex opening;    // of data sets, for which the registry may load modules
  std::mutex computing;  // one batch at a time
  std::optional<ClassMapper> mapper;
  fs::path explanations;  // the folder of the mapper's pictures
  std::set<std::string> names;
};

std::vector<double> Predictor::State::values_of(const float* scores, int64_t classes) const {
  if (run.record.task != TANDEM_TASK_CLASSES) return run.values_of(scores, classes);
  const bool shown_as_they_are = !has_probabilities || gives_probabilities(run.session->net());
  return probabilities(scores, classes, shown_as_they_are);
}

int64_t Predictor::State::judge(const float* scores, int64_t classes, int top,
                                Prediction& prediction) const {
  if (!are_usable(scores, classes)) {
    prediction.error = not_finite;
    return 0;
  }
  const std::vector<double> values = values_of(scores, classes);
  const int64_t task = run.record.task;
  std::vector<size_t> order(values.size());  // the classes of the largest values first
  std::iota(order.begin(), order.end(), size_t{0});
  if (task != TANDEM_TASK_VALUES) {
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return values[a] > values[b]; });
  }
  const std::vector<std::string>& titles = run.record.class_names;
  const size_t shown = task == TANDEM_TASK_CLASSES ? size_t(top) : order.size();
  for (size_t i = 0; i < order.size() && i < shown; ++i) {
    const size_t one = order[i];
    if (task == TANDEM_TASK_LABELS && values[one] < threshold) break;
    prediction.scores.push_back(
        {one < titles.size() ? titles[one] : fmt::format("class {}", one), values[one]});
  }
  return static_cast<int64_t>(order[0]);
}

std::pair<DrawnPicture, SeenPart> Predictor::State::photo_of(const fs::path& image,
                                                             const std::vector<float>& pixels) {
  constexpr double most_side = 1600;
  const Shape& input = run.record.data;
  const std::string path = absolute_path(image).string() + "\n";
  std::string reason;
  RunRecord whole = run.record;
  const auto stored = run.open_pictures(path)[0]->describe(0, &reason);
  const auto declared = declared_parameters(registry, path, "predict");
  if (!stored || stored->width < 1 || stored->height < 1 || !declared.contains("fit")) {
    return {Display(run.record.data_parameters, input).picture(pixels.data()), SeenPart{}};
  }
  const auto number = [&](const char* name) {
    double value = 0;
    (void)parse_number(parameter(run.record, name), &value);
    return static_cast<int64_t>(value);
  };
  center_crop::Wanted wanted{input.w, input.h, number("resize"), number("resize_width")};
  const std::string fit = parameter(run.record, "fit");
  if (fit == "squash") wanted.fit = center_crop::Fit::squash;
  if (fit == "pad") wanted.fit = center_crop::Fit::pad;
  const double factor = std::min(1.0, most_side / double(std::max(stored->width, stored->height)));
  whole.data.w = std::max<int64_t>(1, std::llround(factor * double(stored->width)));
  whole.data.h = std::max<int64_t>(1, std::llround(factor * double(stored->height)));
  for (const auto& [name, value] :
       {std::pair("fit", "crop"), std::pair("resize", "0"), std::pair("resize_width", "0"),
        std::pair("mean", "0"), std::pair("scale", "1"), std::pair("resampling", "direct"),
        std::pair("view", "middle"), std::pair("mirror_view", "false")}) {
    whole.data_parameters[name] = value;
  }
  whole.data_parameters.erase("mean_image");
  const auto dataset =
      open_dataset(registry, run.folder.net(), whole, path, "predict", TANDEM_TEST);
  std::vector<float> values(size_t(element_count(whole.data)));
  float label = 0;
  if (dataset->get(0, 0, values.data(), &label, &reason) != SampleStatus::good) {
    throw error("{}: {}", image.string(), reason);
  }
  return {Display(whole.data_parameters, whole.data).picture(values.data()),
          seen_part(center_crop::middle_of(stored->width, stored->height, wanted), stored->width,
                    stored->height, input.w, input.h)};
}

std::string Predictor::State::explain(const std::vector<float>& pixels, const fs::path& image,
                                      int64_t label, const std::string& caption) {
  const auto [photo, seen] = photo_of(image, pixels);
  const DrawnPicture picture = explained_picture(photo, mapper->map(pixels, label), seen, caption);
  std::string name = image.stem().string();
  for (int number = 2; !names.insert(name).second; ++number) {
    name = fmt::format("{}-{}", image.stem().string(), number);
  }
  const fs::path file = explanations / (name + ".explained.png");
  write_text_file(file, to_png(picture.width, picture.height, picture.pixels));
  return file.string();
}

Predictor::Predictor(const fs::path& run, const std::string& devices, const std::string& weights,
                     int64_t batch)
    : state_(new State(run, devices, weights)) {
  if (batch < 1) throw error("batch {}: a predictor computes at least 1 picture at a time", batch);
  // The files are not known yet, so the loader converts bytes to floats, with the same bits.
  state_->run.open(batch, dtype_name(TANDEM_FLOAT32),
                   state_->run.rounds_pixels() ? PixelForm::rounded : PixelForm::floats, {});
  state_->runner.emplace(*state_->run.session);
}
Predictor::~Predictor() = default;

const std::vector<std::string>& Predictor::class_names() const {
  return state_->run.record.class_names;
}

int64_t Predictor::class_count() const {
  return state_->runner->classes();
}

bool Predictor::has_probabilities() const {
  return state_->has_probabilities;
}

std::string Predictor::task() const {
  return task_word(state_->run.record.task);
}

std::string Predictor::images() const {
  const std::string own = state_->run.own_preparation();
  return own.empty() ? images_text(state_->run.record)
                     : fmt::format("images: as data set '{}' prepares them", own);
}

std::vector<std::string> Predictor::remarks() const {
  const std::lock_guard computing(state_->computing);
  return state_->remarks;
}

void Predictor::set_threshold(double threshold) {
  state_->run.require_threshold(threshold);
  state_->threshold = threshold;
}

void Predictor::use_views() {
  state_->all_views = true;
}

std::string Predictor::explain(const fs::path& folder) {
  const std::scoped_lock lock(state_->opening, state_->computing);
  LoadedRun& run = state_->run;
  if (run.record.task != TANDEM_TASK_CLASSES) {
    throw error("--explain: shows what speaks for a class, and run '{}' has learned {}",
                run.folder.path().string(), task_text(run.record.task));
  }
  if (const std::string own = run.own_preparation(); !own.empty()) {
    throw error("--explain: what the pixels of data set '{}' look like is not known", own);
  }
  (void)Display(run.record.data_parameters, run.record.data);  // refuses what cannot be drawn
  make_folders(folder);
  state_->mapper.emplace(run.registry, run.folder.net(), run.record.data, run.session->weights(),
                         true);
  state_->explanations = folder;
  return state_->mapper->method();
}

void Predictor::scores(const std::vector<Picture>& pictures, float* results,
                       std::vector<std::string>* errors) {
  // A picture takes a descriptor while it is read, and many threads may call this.
  constexpr size_t at_once = 16;
  for (size_t i = 0; i < pictures.size(); ++i) require_sense(pictures[i], i);
  errors->assign(pictures.size(), "");
  std::fill_n(results, pictures.size() * size_t(class_count()), 0.0F);
  for (size_t first = 0; first < pictures.size(); first += at_once) {
    const size_t end = std::min(first + at_once, pictures.size());
    state_->predict(pictures, first, end, results, *errors);
  }
}

void Predictor::State::predict(const std::vector<Picture>& pictures, size_t first, size_t end,
                               float* results, std::vector<std::string>& errors) {
  std::vector<MemoryFile> files;
  std::string paths;
  for (size_t i = first; i < end; ++i) {
    files.push_back(as_file(pictures[i]));
    paths += files.back().path() + "\n";
  }
  std::unique_lock open_lock(opening);
  const auto dataset = std::move(run.open_pictures(paths)[0]);
  open_lock.unlock();
  const auto elements = size_t(runner->row_elements());
  const auto classes = size_t(runner->classes());
  const auto count = static_cast<int64_t>(end - first);
  std::vector<float> rows((end - first) * elements), scores((end - first) * classes);
  const auto threads = static_cast<int>(std::min<int64_t>(count, processor_count()));
  parallel_for(count, threads, [&](int64_t i, int) {
    const auto at = size_t(i);
    (void)read_row(*dataset, i, run.rounds_pixels(), rows.data() + at * elements,
                   &errors[first + at]);
  });
  files.clear();  // none is kept open while other calls compute
  std::unique_lock compute_lock(computing);
  runner->run(rows.data(), count, scores.data());
  compute_lock.unlock();
  for (size_t i = first; i < end; ++i) {
    if (!errors[i].empty()) continue;
    const float* mine = scores.data() + (i - first) * classes;
    if (!are_usable(mine, runner->classes())) {
      errors[i] = not_finite;
      continue;
    }
    const auto values = values_of(mine, runner->classes());
    std::copy(values.begin(), values.end(), results + i * classes);
  }
}

std::vector<Prediction> Predictor::predict(const std::vector<fs::path>& paths, int top) {
  LoadedRun& run = state_->run;
  std::string source;
  std::vector<GivenPath> given;
  for (const fs::path& path : paths) {
    given.push_back({path.string(), existing(path).string()});
    source += given.back().absolute + "\n";
  }
  std::unique_lock opening(state_->opening);
  const auto views = run.open_pictures(source, state_->all_views);
  const auto& dataset = views[0];
  opening.unlock();
  std::vector<Prediction> result(size_t(dataset->size()));
  std::vector<float> pixels(size_t(element_count(run.record.data)));
  size_t at = 0;
  for (size_t i = 0; i < result.size(); ++i)
    result[i].path = as_given(dataset->sample_name(static_cast<int64_t>(i)), given, at);

  std::vector<bool> seen(result.size(), false);
  std::vector<int64_t> first(result.size());  // classes
  const PredictionSink sink = [&](int64_t index, int64_t, const float* scores, int64_t classes) {
    seen[size_t(index)] = true;
    first[size_t(index)] = state_->judge(scores, classes, top, result[size_t(index)]);
  };
  const std::lock_guard computing(state_->computing);
  EvaluateOptions how;
  how.allow_none = true;
  (void)evaluate_views(*run.session, pointers(views), how, sink);
  state_->remarks = remark_lines(*views[0]);
  for (size_t i = 0; i < result.size(); ++i) {
    Prediction& one = result[i];
    if (seen[i] && (!state_->mapper || !one.error.empty())) continue;
    float label = 0;
    dataset->get(static_cast<int64_t>(i), 0, pixels.data(), &label, &one.error);
    if (!one.error.empty()) continue;
    if (seen[i]) {
      const Prediction::Score& best = one.scores.at(0);
      const std::string name = drawable(best.name);
      one.explanation = state_->explain(
          pixels, one.path, first[i],
          fmt::format("{} {}", name.empty() ? fmt::format("CLASS {}", first[i]) : name,
                      has_probabilities() ? fmt::format("{:.1f} %", 100 * best.value)
                                          : fmt::format("SCORE {:.4g}", best.value)));
    } else {
      one.error = "the image could not be used";
    }
  }
  return result;
}

}  // namespace tandem
