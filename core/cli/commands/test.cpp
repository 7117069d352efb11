#include <nlohmann/json.hpp>

#include "core/cli/arguments.h"
#include "core/cli/commands.h"
#include "core/cli/print.h"
#include "core/cli/progress.h"
#include "core/report/confusion.h"
#include "include/tandem/evaluate.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

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
    nlohmann::json one{{"path", m.path}, {"class", m.truth}, {"predicted", m.predicted}};
    if (result.has_probabilities) one["probability"] = m.probability;
    tree["worst_mistakes"].push_back(std::move(one));
  }
  return tree;
}

// "-" of no images.
std::string percent(double share, int64_t images) {
  return images == 0 ? "-" : fmt::format("{:.2f} %", 100 * share);
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
  constexpr size_t most = 30;
  if (!e.confusion.empty() && e.confusion.size() <= most) {
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
    print_names("\n{} shows this test: the confusion matrix, and mistakes as pictures\n",
                result.report);
  }
}

// What the test has to say besides its result.
class Messages : public Observer {
 public:
  void on_message(const std::string& text) override { say(stderr, "{}\n", text); }
};

}  // namespace

void add_test(CommandLine& line) {
  struct Arguments {
    TestOptions options;
    std::vector<std::string> data_options;
    bool as_json = false, no_report = false;
  };
  auto arguments = std::make_shared<Arguments>();
  Command& command = line.add("test", "Measure a run's accuracy on a data set, exactly");
  TestOptions& o = arguments->options;
  command.option("--run FOLDER", &o.run, "Run folder").required();
  command.option("--data PATH", &o.data,
                 "Folder with test/ or val/, or with one folder per class (default: the run's)");
  command
      .option("--split test|val|train", &o.split, "Split of the data; test: val if there is none")
      .show_default();
  command.option("--data-option NAME=VALUE", &arguments->data_options,
                 "A parameter of the data set in place of the run's, as val_fraction=1");
  add_devices_option(command, o.devices);
  command.option("--ranks N", &o.ranks,
                 "Processes that mpirun or srun has started, each with as many --devices; another "
                 "number of them is an error (default: any)");
  command.option("--weights best|last", &o.weights, "Weights of the best or the last step")
      .show_default();
  command.option("--batch N", &o.batch, "Images in the global batch (default: the run's)");
  command.option("--decode-threads N", &o.decode_threads,
                 "Threads that read images (default: by the number of cores)");
  add_precision_option(command, o.precision, "the run's");
  add_pixels_option(command, o.pixels, "as the run was trained");
  add_watchdog_option(command, "batch", o.watchdog_seconds);
  add_json_option(command, arguments->as_json);
  command.flag("--no-report", arguments->no_report, "Leave report.html in the run folder as it is");
  command.action([arguments, &command] {
    Messages messages;
    arguments->options.writes_report = !arguments->no_report;
    arguments->options.data_parameters =
        read_pairs(arguments->data_options, "--data-option", "val_fraction=1");
    arguments->options.given = command.given_values();
    const TestResult result = test_run(arguments->options, messages);
    if (result.rank > 0) return 0;
    if (arguments->as_json) {
      print_json(result_json(result));
    } else {
      print(result);
    }
    return 0;
  });
}

}  // namespace tandem::cli
