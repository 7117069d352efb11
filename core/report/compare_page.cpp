#include "core/report/compare_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/report/page/page.h"
#include "core/report/run_page.h"
#include "core/run/folder/progress.h"
#include "core/run/folder/run_folder.h"

namespace tandem {
namespace {

using nlohmann::json;

// Best figures of a run as text; "" where there is none.
struct BestFigures {
  std::string accuracy, loss, epoch, epochs, seconds, speed;
};

BestFigures best_figures(const ComparedRun& run) {
  BestFigures best;
  if (const MetricRow* row = best_of(run.metrics)) {
    if (std::isfinite(row->top1)) best.accuracy = fmt::format("{:.2f} %", 100 * row->top1);
    if (std::isfinite(row->loss)) best.loss = fmt::format("{:.4f}", row->loss);
    best.epoch = epochs_text(epochs_after(row->step, run.epochs_per_step));
  }
  if (!run.metrics.empty()) {
    best.epochs = epochs_text(epochs_after(run.metrics.back().step, run.epochs_per_step));
  }
  double seconds = 0, speed = 0;
  const std::vector<MetricRow> epochs = rows_of(run.metrics, "epoch");
  for (const MetricRow& row : epochs) {
    seconds += row.seconds;
    speed += row.images_per_second / double(epochs.size());
  }
  if (!epochs.empty()) {
    best.seconds = duration_text(seconds);
    best.speed = fmt::format("{:.0f}", speed);
  }
  return best;
}

// What says nothing of how a run trains: how often it prints, and the name in its net file.
constexpr std::array internal{"display", "net_name"};

// The options of which not all runs have the same value: a row for each, with its name and a column
// for each run.
json different_options(const std::vector<ComparedRun>& runs) {
  std::vector<std::map<std::string, std::string>> values;
  std::set<std::string> names;
  for (const ComparedRun& run : runs) {
    auto& mine = values.emplace_back();
    for (const auto& [name, value] : option_list(run.record)) {
      if (std::find(internal.begin(), internal.end(), name) != internal.end()) continue;
      mine[name] = value;
      names.insert(name);
    }
  }
  json rows = json::array();
  for (const std::string& name : names) {
    std::vector<std::string> row;
    for (const auto& mine : values) row.push_back(mine.count(name) > 0 ? mine.at(name) : "");
    if (std::adjacent_find(row.begin(), row.end(), std::not_equal_to<>()) == row.end()) continue;
    row.insert(row.begin(), name);
    std::transform(row.begin(), row.end(), row.begin(), shown);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

ComparedRun read_compared_run(const std::filesystem::path& path) {
  const RunFolder folder = RunFolder::open(path);
  ComparedRun run;
  run.name = path.string();
  while (run.name.size() > 1 && run.name.back() == '/') run.name.pop_back();
  run.record = folder.record();
  if (is_imported(run.record)) {
    throw error(
        "run '{}' was imported and has not been trained, so it has no metrics to compare: leave it "
        "out",
        run.name);
  }
  run.epochs_per_step = epochs_per_step(run.record, folder.solver());
  run.metrics = read_metrics(folder.metrics_file());
  return run;
}

std::string compare_page(const std::vector<ComparedRun>& runs) {
  json rows = json::array();
  for (const ComparedRun& run : runs) {
    const BestFigures best = best_figures(run);
    rows.push_back({{"name", run.name},
                    {"best",
                     {shown(run.name), best.accuracy, best.loss, best.epoch, best.epochs,
                      best.seconds, best.speed}},
                    {"curves", curves_json(run.metrics, run.epochs_per_step)}});
  }
  return html_page(fmt::format("{} runs", runs.size()),
                   {{"page", "compare"}, {"runs", rows}, {"options", different_options(runs)}});
}

std::string compare_text(const std::vector<ComparedRun>& runs) {
  size_t longest = 3;
  for (const ComparedRun& run : runs) longest = std::max(longest, run.name.size());
  std::string text = fmt::format("{:<{}}  {:>9} {:>9} {:>13} {:>12}\n", "run", longest, "accuracy",
                                 "loss", "after epochs", "time");
  for (const ComparedRun& run : runs) {
    const BestFigures best = best_figures(run);
    text += fmt::format("{:<{}}  {:>9} {:>9} {:>13} {:>12}\n", run.name, longest, best.accuracy,
                        best.loss, best.epoch, best.seconds);
  }
  return text;
}

}  // namespace tandem
