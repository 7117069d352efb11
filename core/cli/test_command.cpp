#include <nlohmann/json.hpp>

#include "core/cli/commands.h"
#include "core/cli/progress.h"
#include "core/train/predict.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

struct ClassScore {
  double precision = 0, recall = 0;
  int64_t count = 0;
};

ClassScore class_score(const std::vector<std::vector<int64_t>>& confusion, size_t c) {
  ClassScore score;
  int64_t predicted = 0;
  for (size_t other = 0; other < confusion.size(); ++other) {
    score.count += confusion[c][other];
    predicted += confusion[other][c];
  }
  const auto right = static_cast<double>(confusion[c][c]);
  score.precision = predicted > 0 ? right / static_cast<double>(predicted) : 0;
  score.recall = score.count > 0 ? right / static_cast<double>(score.count) : 0;
  return score;
}

json to_json(const TestResult& result) {
  const Evaluation& e = result.evaluation;
  json tree = {{"weights", result.weights},
               {"precision", result.precision},
               {"pixels", result.pixels},
               {"images", e.samples},
               {"skipped", e.skipped},
               {"loss", e.loss},
               {"top1", e.top1},
               {"top5", e.top5},
               {"classes", json::array()}};
  for (const auto& [name, value] : e.scalars) tree["scalars"][name] = value;
  for (size_t c = 0; c < e.confusion.size(); ++c) {
    const ClassScore score = class_score(e.confusion, c);
    tree["classes"].push_back({{"name", result.class_names[c]},
                               {"images", score.count},
                               {"precision", score.precision},
                               {"recall", score.recall}});
  }
  tree["confusion"] = e.confusion;
  for (const TestResult::Mistake& m : result.worst) {
    tree["worst_mistakes"].push_back({{"path", m.path},
                                      {"class", m.truth},
                                      {"predicted", m.predicted},
                                      {"probability", m.probability}});
  }
  return tree;
}

void print(const TestResult& result) {
  const Evaluation& e = result.evaluation;
  if (!result.notes.empty()) fmt::print("{}\n", result.notes);
  fmt::print("{} with {}, in {}\n", evaluation_text(e), result.weights, result.precision);
  const size_t told = e.has_accuracy ? 2 : 1;  // the line above has the loss and top-1
  if (e.scalars.size() > told) {
    for (const auto& [name, value] : e.scalars) fmt::print("  {} {:.4f}\n", name, value);
  }
  constexpr size_t most = 30;
  if (!e.confusion.empty() && e.confusion.size() <= most) {
    fmt::print("\n{:<20} {:>8} {:>10} {:>8}\n", "class", "images", "precision", "recall");
    for (size_t c = 0; c < e.confusion.size(); ++c) {
      const ClassScore score = class_score(e.confusion, c);
      fmt::print("{:<20} {:>8} {:>8.2f} % {:>6.2f} %\n", result.class_names[c], score.count,
                 100 * score.precision, 100 * score.recall);
    }
  }
  if (!result.worst.empty()) fmt::print("\nmost confident mistakes:\n");
  for (const TestResult::Mistake& m : result.worst) {
    fmt::print("  {:.1f} % {} instead of {}: {}\n", 100 * m.probability, m.predicted, m.truth,
               m.path);
  }
}

}  // namespace

void add_test(CLI::App& app, Action& action) {
  struct Arguments {
    TestOptions options;
    bool as_json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("test", "Measure a run's accuracy on a data set, exactly");
  TestOptions& o = arguments->options;
  command->add_option("--run", o.run, "Run folder")->required();
  command->add_option("--data", o.data,
                      "Folder with test/ or val/, or with one folder a class (default: the run's)");
  command->add_option("--split", o.split, "test (val if there is none), val or train")
      ->capture_default_str();
  command->add_option("--devices", o.devices, "cpu, cpu:2, ...")->capture_default_str();
  command->add_option("--weights", o.weights, "best or last")->capture_default_str();
  command->add_option("--batch", o.batch, "Images in the global batch (default: the run's)");
  command->add_option("--decode-threads", o.decode_threads,
                      "Threads that read images (default: by cores)");
  add_precision_option(*command, o.precision, "the run's");
  add_pixels_option(*command, o.pixels, "as the run was trained");
  command->add_flag("--json", arguments->as_json, "Print JSON");
  command->callback([&action, arguments] {
    action = [arguments] {
      Observer quiet;
      const TestResult result = test_run(arguments->options, quiet);
      if (arguments->as_json) {
        fmt::print("{}\n", to_json(result).dump(2, ' ', false, json::error_handler_t::replace));
      } else {
        print(result);
      }
      return 0;
    };
  });
}

void add_predict(CLI::App& app, Action& action) {
  struct Arguments {
    std::filesystem::path run;
    std::vector<std::filesystem::path> paths;
    std::string devices = default_kind, weights = "best";
    int top = 5;
    bool as_json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("predict", "Name what is on images, with a run's best weights");
  command->add_option("--run", arguments->run, "Run folder")->required();
  command->add_option("paths", arguments->paths, "Image files or folders")->required();
  command->add_option("--top", arguments->top, "Classes to print for each image")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--devices", arguments->devices, "cpu, cpu:2, ...")->capture_default_str();
  command->add_option("--weights", arguments->weights, "best or last")->capture_default_str();
  command->add_flag("--json", arguments->as_json, "Print JSON");
  command->callback([&action, arguments] {
    action = [arguments] {
      Predictor predictor(arguments->run, arguments->devices, arguments->weights);
      bool all_good = true;
      json tree = json::array();
      for (const Prediction& p : predictor.predict(arguments->paths, arguments->top)) {
        all_good = all_good && p.error.empty();
        if (arguments->as_json) {
          json entry = {{"path", p.path}};
          if (!p.error.empty()) entry["error"] = p.error;
          for (const auto& score : p.scores) {
            entry["scores"].push_back({{"class", score.name}, {"probability", score.probability}});
          }
          tree.push_back(entry);
          continue;
        }
        if (!p.error.empty()) {
          fmt::print("{}: not used: {}\n", p.path, p.error);
          continue;
        }
        std::string text;
        for (const auto& score : p.scores) {
          text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", score.name,
                              100 * score.probability);
        }
        fmt::print("{}: {}\n", p.path, text);
      }
      if (arguments->as_json)
        fmt::print("{}\n", tree.dump(2, ' ', false, json::error_handler_t::replace));
      return all_good ? 0 : 1;
    };
  });
}

}  // namespace tandem::cli
