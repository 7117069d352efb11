#include <cmath>
#include <nlohmann/json.hpp>

#include "core/cli/commands.h"
#include "core/cli/progress.h"
#include "core/report/confusion.h"
#include "include/tandem/evaluate.h"

namespace tandem::cli {
namespace {

json figure_json(const TargetFigure& one, bool are_values) {
  if (are_values) {
    return {{"name", one.name}, {"mean_absolute_error", one.mean_absolute_error}, {"r2", one.r2}};
  }
  return {{"name", one.name},
          {"images", one.images},
          {"average_precision", one.average_precision},
          {"precision", one.precision},
          {"recall", one.recall},
          {"f1", one.f1}};
}

json result_json(const TestResult& result) {
  const Evaluation& e = result.evaluation;
  json tree = {{"weights", result.weights},
               {"precision", result.precision},
               {"pixels", result.pixels},
               {"images", e.samples},
               {"skipped", e.skipped},
               {"loss", e.has_loss ? json(e.loss) : json()},
               {"top1", e.has_accuracy ? json(e.top1) : json()},
               {"top5", e.has_accuracy ? json(e.top5) : json()},
               {"classes", json::array()}};
  for (const auto& [name, value] : e.scalars) tree["scalars"][name] = value;
  tree["task"] = result.task;
  for (const Metric& metric : e.metrics) tree["metrics"][metric.name] = metric.value;
  for (const TargetFigure& one : e.figures) {
    tree["figures"].push_back(figure_json(one, result.task == "regression"));
  }
  const std::vector<ClassScore> scores = Confusion(e.confusion).scores();
  for (size_t c = 0; c < scores.size(); ++c) {
    const ClassScore& score = scores[c];
    tree["classes"].push_back(
        {{"name", result.class_names[c]},
         {"images", score.count},
         {"precision", score.predicted > 0 ? json(score.precision()) : json()},
         {"recall", score.count > 0 ? json(score.recall()) : json()}});
  }
  tree["confusion"] = e.confusion;
  for (const TestResult::Mistake& m : result.worst) {
    json one{{"path", m.path}, {"class", m.truth}, {"predicted", m.predicted}};
    if (result.has_probabilities) one["probability"] = m.probability;
    tree["worst_mistakes"].push_back(std::move(one));
  }
  return tree;
}

// "-" of no images.
std::string percent(double share, int64_t images) {
  return images == 0 ? "-" : fmt::format("{:.2f} %", 100 * share);
}

// A line for each label or number.
void print_figures(const TestResult& result) {
  const std::vector<TargetFigure>& figures = result.evaluation.figures;
  if (figures.empty()) return;
  const auto share = [](double value) {
    return std::isfinite(value) ? fmt::format("{:.2f} %", 100 * value) : std::string("-");
  };
  if (result.task == "regression") {
    say("\n{:<20} {:>20} {:>10}\n", "value", "mean absolute error", "R2");
    for (const TargetFigure& one : figures) {
      print_names("{:<20} {:>20.6g} {:>10.4f}\n", one.name, one.mean_absolute_error, one.r2);
    }
    return;
  }
  say("\n{:<20} {:>8} {:>18} {:>10} {:>10} {:>10}\n", "label", "images", "average precision",
      "precision", "recall", "F1");
  for (const TargetFigure& one : figures) {
    print_names("{:<20} {:>8} {:>18} {:>10} {:>10} {:>10}\n", one.name, one.images,
                share(one.average_precision), share(one.precision), share(one.recall),
                share(one.f1));
  }
}

void print(const TestResult& result) {
  const Evaluation& e = result.evaluation;
  if (!result.notes.empty()) print_names("{}\n", result.notes);
  print_names("{} with {}, in {}\n", evaluation_text(e), result.weights, result.precision);
  // The line above has the loss and top-1.
  const size_t printed = (e.has_loss ? 1 : 0) + (e.has_accuracy ? 1 : 0);
  if (e.scalars.size() > printed) {
    for (const auto& [name, value] : e.scalars) print_names("  {} {:.4f}\n", name, value);
  }
  print_figures(result);
  constexpr size_t max = 30;
  if (!e.confusion.empty() && e.confusion.size() <= max) {
    say("\n{:<20} {:>8} {:>10} {:>8}\n", "class", "images", "precision", "recall");
    const std::vector<ClassScore> scores = Confusion(e.confusion).scores();
    for (size_t c = 0; c < scores.size(); ++c) {
      const ClassScore& score = scores[c];
      print_names("{:<20} {:>8} {:>10} {:>8}\n", result.class_names[c], score.count,
                  percent(score.precision(), score.predicted),
                  percent(score.recall(), score.count));
    }
  }
  if (!result.worst.empty()) {
    say("\n{}:\n", result.has_probabilities
                       ? "most confident mistakes"
                       : "mistakes (the net has no softmax, so nothing says how sure it is)");
  }
  for (const TestResult::Mistake& m : result.worst) {
    const std::string probability =
        result.has_probabilities ? fmt::format("{:.1f} % ", 100 * m.probability) : "";
    print_names("  {}{} instead of {}: {}\n", probability, m.predicted, m.truth, m.path);
  }
  if (!result.report.empty()) {
    print_names("\n{} shows this test{}\n", result.report,
                e.figures.empty() ? ": the confusion matrix, and mistakes as pictures" : "");
  }
}

// What the test has to say besides its result.
class Messages : public Observer {
 public:
  void on_message(const std::string& text) override { say(stderr, "{}\n", text); }
};

struct TestArguments {
  TestOptions options;
  std::vector<std::string> data_options;
  double threshold = 0.5;
  bool as_json = false;
};

int run_test(TestArguments& a, const Command& command) {
  Messages messages;
  a.options.data_parameters = read_pairs(a.data_options, "--data-option", "val_fraction=1");
  a.options.given = command.given_values();
  if (command.given("--threshold")) a.options.threshold = a.threshold;
  const TestResult result = test_run(a.options, messages);
  if (result.rank > 0) return 0;
  if (a.as_json) return print_json(result_json(result));
  print(result);
  return 0;
}

}  // namespace

void add_test(CommandLine& line) {
  Command& command = line.add("test", "Measure a run's accuracy on a data set, exactly");
  TestArguments& a = command.runs(run_test);
  TestOptions& o = a.options;
  o.writes_report = true;
  command.add({
      run_option(o.run),
      {"--data PATH", &o.data,
       "Folder with test/ or val/, or with one folder per class (default: the run's)"},
      {"--split test|val|train", &o.split, "Split of the data; test: val if there is none",
       show_default},
      {"--data-option NAME=VALUE", &a.data_options,
       "A parameter of the data set in place of the run's, as val_fraction=1"},
      devices_option(o.devices),
      ranks_option(o.ranks),
      weights_option(o.weights),
      {"--tta", &o.all_views,
       "Test with ten views of each image, the corners and the middle, each as it is and mirrored: "
       "the mean of their scores"},
      {"--threshold P", &a.threshold,
       "Of a run with several labels: the probability from which on one counts as predicted",
       show_default},
      {"--batch N", &o.batch, "Images in the global batch (default: the run's)"},
      decode_threads_option(o.decode_threads),
      precision_option(o.precision, "the run's"),
      pixels_option(o.pixels, "as the run was trained"),
      watchdog_option("batch", o.watchdog_seconds),
      json_option(a.as_json),
      {"--no-report", [&o] { o.writes_report = false; },
       "Leave report.html in the run folder as it is"},
  });
}

}  // namespace tandem::cli
