// The search for options by successive halving (Jamieson and Talwalkar, 2016): many trials get few
// epochs, the best third of them three times as many, and the best third of those all.
#include "include/tandem/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/numbers/random.h"
#include "core/base/text/strings.h"
#include "core/ranks/ranks.h"
#include "core/report/compare_page.h"
#include "core/run/folder/checkpoint.h"
#include "core/run/folder/run_folder.h"
#include "core/run/setup/recipe.h"
#include "core/run/setup/setup.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr int64_t reduction = 3, max_trials = 1000;

struct Trial {
  int64_t number = 0;
  TrainOptions options;
  std::string text;  // what was drawn
};

struct Done {
  const Trial* trial = nullptr;
  ComparedRun run;
  double score = 0;
};

// What the options alone would take.
struct Usual {
  double rate = 0;
  int64_t image_size = 0;
  bool has_published_size = false;
  int64_t epochs = 0;
};

Usual usual_of(Registry& registry, const TrainOptions& options) {
  const TrainSetup setup = resolve(registry, options);
  return {setup.solver.base_rate, setup.net.input_shape().h, setup.published.has_value(),
          usual_epochs(setup.record.options.recipe)};
}

double two_digits(double value) {
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 1);
  return std::round(value / unit) * unit;
}

// The first one is what the options alone would be. What is given is not drawn.
Trial draw(const SearchOptions& options, int64_t number, std::map<std::string, Usual>& known,
           Registry& registry) {
  Trial trial{number, options.base, ""};
  TrainOptions& one = trial.options;
  Random random(one.seed.value_or(1), stream_of("search") + static_cast<uint64_t>(number));
  // Each value has a draw of its own, given or not.
  const double place = random.uniform();
  const uint64_t augment = random.below(3), size = random.below(3), model = random.below(1 << 20);
  std::vector<std::string> words;
  if (!options.models.empty()) {
    const size_t chosen = number == 1 ? 0 : size_t(model) % options.models.size();
    one.net = options.models[chosen];
    words.push_back("model " + one.net);
  }
  if (number > 1) {
    if (!known.contains(one.net)) known[one.net] = usual_of(registry, one);
    const Usual& usual = known[one.net];
    if (!one.rate) {
      one.rate = two_digits(usual.rate * std::pow(10.0, 1.5 * place - 1));  // 0.1 to 3.2 times
      words.push_back(fmt::format("rate {:.2g}", *one.rate));
    }
    if (one.augment.empty() && one.data != "synthetic") {
      constexpr const char* kinds[] = {"light", "photos", "strong"};
      one.augment = kinds[augment];
      words.push_back("augmentation " + one.augment);
    }
    if (one.image_size == 0 && !usual.has_published_size) {
      const int64_t step = usual.image_size > 64 ? 32 : 4;
      const int64_t sizes[] = {usual.image_size * 3 / 4 / step * step, usual.image_size,
                               usual.image_size * 5 / 4 / step * step};
      one.image_size = sizes[size];
      words.push_back(fmt::format("image size {}", one.image_size));
    }
  }
  trial.text = words.empty() ? "the usual options" : fmt::format("{}", fmt::join(words, ", "));
  return trial;
}

double score_of(const ComparedRun& run) {
  const MetricRow* best = best_of(run.metrics);
  if (best == nullptr) return -std::numeric_limits<double>::infinity();
  const bool has_share = run.record.task != TANDEM_TASK_VALUES && std::isfinite(best->top1);
  return has_share ? best->top1 : -best->loss;
}

double seconds_of(const ComparedRun& run) {
  double seconds = 0;
  for (const MetricRow& row : rows_of(run.metrics, "epoch")) seconds += row.seconds;
  return seconds;
}

bool is_begun(const fs::path& folder) {
  return path_status(folder / "run.json").exists();
}

bool is_complete(const ComparedRun& run) {
  return !run.metrics.empty() && run.metrics.back().step >= run.record.options.steps;
}

// Only the progress of the runs, and a run's end when the time is over.
class SearchObserver : public Observer {
 public:
  SearchObserver(Observer& next, bool tells, double seconds, const std::atomic<bool>* user)
      : next_(next), tells_(tells), user_(user), end_(Clock::now()) {
    if (std::isfinite(seconds)) {
      end_ += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    } else {
      end_ = Clock::time_point::max();
    }
  }
  void on_message(const std::string& line) override {
    if (tells_) next_.on_message(line);
  }
  void on_step(const StepReport& report) override {
    next_.on_step(report);
    is_over = is_over || Clock::now() > end_;
    if (is_over || (user_ != nullptr && *user_)) stop = true;
  }
  std::atomic<bool> stop = false;
  bool is_over = false;

 private:
  using Clock = std::chrono::steady_clock;
  Observer& next_;
  bool tells_;
  const std::atomic<bool>* user_;
  Clock::time_point end_;
};

// What a trial was begun with is in its record, where weights may have named another net, and a
// rate that was drawn another base. Those of the search itself have been compared with search.json.
void leave_to_record(TrainOptions& options) {
  options.data.clear();
  options.net.clear();
  options.rate.reset();
  options.solver_type.clear();
  options.solver_fields.clear();
  options.data_parameters.clear();
  options.loss.clear();
  options.train_state.reset();
  options.test_state.reset();
}

class Search {
 public:
  Search(const SearchOptions& options, Observer& observer)
      : options_(options), observer_(observer), registry_(Registry::with_defaults()) {
    result_.folder = options.base.out.empty() ? RunFolder::free_name("search") : options.base.out;
  }

  SearchResult go() {
    open_folder();
    std::map<std::string, Usual> known;
    if (options_.base.steps == 0 && options_.base.epochs == 0) set_usual_epochs();
    for (int64_t number = 1; number <= options_.trials; ++number) {
      trials_.push_back(draw(options_, number, known, registry_));
    }
    std::vector<const Trial*> candidates;
    for (const Trial& trial : trials_) candidates.push_back(&trial);
    rounds_ = options_.trials <= 1 ? 1 : options_.trials <= reduction ? 2 : 3;
    for (int round = 1; round <= rounds_ && !result_.stopped; ++round) {
      std::vector<Done> done = run_round(round, candidates);
      std::stable_sort(done.begin(), done.end(),
                       [](const Done& a, const Done& b) { return a.score > b.score; });
      if (done.empty()) break;
      const auto kept = round == rounds_ ? size_t(1) : (done.size() + reduction - 1) / reduction;
      candidates.clear();
      for (size_t i = 0; i < std::min(kept, done.size()); ++i) candidates.push_back(done[i].trial);
      remember(done);
    }
    if (!best_.empty()) write_page();
    return std::move(result_);
  }

 private:
  // The options of a search that goes on are those that it was begun with.
  void open_folder() {
    const fs::path file = result_.folder / "search.json";
    nlohmann::json given(options_.base.given);
    for (const char* name : {"--resume", "--time", "--out", "--display"}) given.erase(name);
    const nlohmann::json mine{{"options", given}, {"trials", options_.trials}};
    if (!path_status(file).exists()) {
      if (path_status(result_.folder).exists() && !entries_of(result_.folder).empty()) {
        throw error("folder '{}' holds other files: name another with --out",
                    result_.folder.string());
      }
      make_folders(result_.folder);
      return write_text_file(file, mine.dump(2) + "\n");
    }
    if (!options_.base.resume) {
      throw error("folder '{}' holds a search: --resume goes on with it, --out begins another",
                  result_.folder.string());
    }
    const auto before = nlohmann::json::parse(read_text_file(file), nullptr, false);
    if (before == mine) return;
    throw error("the search in '{}' was begun with other options ({}): give the same ones",
                result_.folder.string(), before.dump());
  }

  [[nodiscard]] fs::path folder_of(int round, const Trial& trial) const {
    return result_.folder / fmt::format("round-{}-trial-{:02}", round, trial.number);
  }

  // Those of the longest of the models that may be drawn: with weights, a run is shorter.
  void set_usual_epochs() {
    TrainOptions one = options_.base;
    std::vector<std::string> nets = options_.models;
    if (nets.empty()) nets.push_back(one.net);
    for (const std::string& net : nets) {
      one.net = net;
      usual_epochs_ = std::max(usual_epochs_, usual_of(registry_, one).epochs);
    }
  }

  // Epochs or steps: all in the last round, a third in each one before.
  void set_length(int round, TrainOptions& one) const {
    const auto share = static_cast<int64_t>(std::pow(reduction, rounds_ - round));
    const auto part = [&](int64_t whole) {
      return std::max<int64_t>(1, (whole + share / 2) / share);
    };
    if (one.unfreeze_after) *one.unfreeze_after /= static_cast<double>(share);
    if (options_.base.steps > 0) {
      one.steps = part(options_.base.steps);
    } else {
      one.epochs = part(options_.base.epochs > 0 ? options_.base.epochs : usual_epochs_);
    }
  }

  // The trials that there is time for. Each round may take as much of it as every other one.
  std::vector<Done> run_round(int round, const std::vector<const Trial*>& candidates) {
    std::vector<Done> done;
    double in_round = 0;
    for (const Trial* const& trial : candidates) {
      const double until = options_.seconds * round / rounds_;
      const double usual = done.empty() ? 0 : in_round / double(done.size());
      if (!done.empty() && spent_ + usual > until) {
        observer_.on_message(
            fmt::format("round {} of {}: {} of {} trials, as --time allows no more", round, rounds_,
                        done.size(), candidates.size()));
        break;
      }
      std::optional<ComparedRun> run =
          run_trial(round, *trial,
                    fmt::format("{} of {}", &trial - candidates.data() + 1, candidates.size()));
      if (result_.stopped) break;
      if (!run) continue;
      const double seconds = seconds_of(*run);
      spent_ += seconds;
      in_round += seconds;
      done.push_back({trial, std::move(*run), 0});
      done.back().score = score_of(done.back().run);
    }
    return done;
  }

  // Nothing if it fails, as where its loss is not finite.
  std::optional<ComparedRun> run_trial(int round, const Trial& trial, const std::string& place) {
    const fs::path folder = folder_of(round, trial);
    const std::string title = fmt::format("round {} of {}, trial {} ({}): {}", round, rounds_,
                                          trial.number, place, trial.text);
    if (is_begun(folder)) {
      ComparedRun run = read_compared_run(folder);
      if (is_complete(run)) return run;
    }
    observer_.on_message(title);
    std::error_code ignored;
    if (is_begun(folder) && !has_checkpoint(folder, "last")) fs::remove_all(folder, ignored);
    TrainOptions one = trial.options;
    one.resume = is_begun(folder);
    if (one.resume) leave_to_record(one);
    set_length(round, one);
    one.out = folder;
    one.given.clear();
    SearchObserver watcher(observer_, round == 1 && trial.number == 1, options_.seconds - spent_,
                           options_.base.stop);
    one.stop = &watcher.stop;
    try {
      const TrainResult result = train(one, watcher);
      result_.stopped = result.stopped;
      if (watcher.is_over) observer_.on_message("the time of --time is over");
    } catch (const Error& failure) {
      if (trial.number == 1) throw;
      observer_.on_message(fmt::format("trial {} failed: {}", trial.number, failure.what()));
      return {};
    }
    if (result_.stopped) return {};
    ComparedRun run = read_compared_run(folder);
    observer_.on_message(fmt::format("trial {}: {}", trial.number, figures_text(run)));
    return run;
  }

  static std::string figures_text(const ComparedRun& run) {
    const MetricRow* best = best_of(run.metrics);
    if (best == nullptr) return "no evaluation";
    const bool is_share = run.record.task != TANDEM_TASK_VALUES && std::isfinite(best->top1);
    return fmt::format("{} in {:.0f} s",
                       is_share ? fmt::format("{:.2f} %", 100 * best->top1)
                                : fmt::format("validation loss {:.4g}", best->loss),
                       seconds_of(run));
  }

  // Of each trial its longest run; the best of the last round first. Weights of others go.
  void remember(std::vector<Done>& done) {
    std::vector<Done> all;
    for (Done& one : done) {
      const bool is_first = all.empty();
      if (!is_first) remove_weights(one.run.name);
      all.push_back(std::move(one));
    }
    for (Done& one : best_) {
      remove_weights(one.run.name);
      const bool is_later = std::any_of(
          all.begin(), all.end(), [&](const Done& later) { return later.trial == one.trial; });
      if (!is_later) all.push_back(std::move(one));
    }
    best_ = std::move(all);
  }

  static void remove_weights(const fs::path& run) {
    std::error_code ignored;
    for (const fs::path& entry : entries_of(run, ignored)) {
      if (entry.extension() == ".safetensors") fs::remove(entry, ignored);
    }
  }

  void write_page() {
    std::vector<ComparedRun> runs;
    for (const Done& one : best_) runs.push_back(one.run);
    const Trial& trial = *best_.front().trial;
    const TrainOptions& chosen = runs.front().record.options;
    result_.best = runs.front().name;
    result_.text = runs.size() > 1 ? compare_text(runs) : "";
    result_.text += fmt::format("best: trial {} ({}), {}\n", trial.number, trial.text,
                                figures_text(runs.front()));
    result_.command = command_of(trial.options, chosen.net);
    result_.page = result_.folder / "search.html";
    write_text_file(result_.page, compare_page(runs));
  }

  // What was given, with what was drawn.
  std::string command_of(const TrainOptions& drawn, const std::string& net) {
    std::map<std::string, std::string> all = options_.base.given;
    for (const char* name : {"--trials", "--time", "--models", "--out", "--resume", "--net"}) {
      all.erase(name);
    }
    all["--lr"] = fmt::format("{:.4g}", drawn.rate ? *drawn.rate : usual_of(registry_, drawn).rate);
    if (!drawn.augment.empty()) all["--augment"] = drawn.augment;
    if (drawn.image_size > 0) all["--image-size"] = std::to_string(drawn.image_size);
    std::string text = "tandem train";
    if (!net.empty()) text += " --net " + net;
    for (const auto& [name, value] : all) {
      const bool is_plain = value.find_first_of(" '\"$*\\") == std::string::npos;
      const std::string quote = is_plain ? "" : "'";
      text += " " + name + (value.empty() ? "" : " " + quote + value + quote);
    }
    return text;
  }

  const SearchOptions& options_;
  Observer& observer_;
  Registry registry_;
  SearchResult result_;
  std::vector<Trial> trials_;
  std::vector<Done> best_;
  int rounds_ = 1;
  int64_t usual_epochs_ = 0;  // where no length is given
  double spent_ = 0;          // seconds of complete runs
};

}  // namespace

SearchResult search(const SearchOptions& options, Observer& observer) {
  if (options.trials < 1 || options.trials > max_trials) {
    throw error("--trials {}: at least 1 and at most {}", options.trials, max_trials);
  }
  if (!(options.seconds > 0)) throw error("--time: it must be above 0, as 30m");
  if (options.base.ranks > 1 || launched_ranks() > 1) {
    throw error("tandem search is for one process, not for several ranks");
  }
  if (options.models.size() > 1 && !options.base.net.empty()) {
    throw error("--models and --net {}: give one of them", options.base.net);
  }
  return Search(options, observer).go();
}

}  // namespace tandem
