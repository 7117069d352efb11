#include "core/report/compare_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string_view>

#include "core/base/error.h"
#include "core/model/file/text_format.h"
#include "core/report/page/page.h"
#include "core/report/run_page.h"
#include "core/run/folder/progress.h"
#include "core/run/folder/recorder.h"
#include "core/run/folder/run_folder.h"

namespace tandem {
namespace {

using nlohmann::json;

// Best figures of a run as text; "" where there is none.
struct BestFigures {
  std::string accuracy, loss, epoch, epochs, seconds, speed;
};

// Accuracy or the like: a share, or a number in its own unit.
std::string metric_text(const RunRecord& record, double value) {
  return record.task == TANDEM_TASK_VALUES ? fmt::format("{:.4g}", value)
                                           : fmt::format("{:.2f} %", 100 * value);
}

// How the first metric of the runs is called.
std::string metric_name(const std::vector<ComparedRun>& runs) {
  const int64_t task = runs.at(0).record.task;
  const bool are_alike = std::all_of(
      runs.begin(), runs.end(), [&](const ComparedRun& run) { return run.record.task == task; });
  if (!are_alike) return "metric";
  return task == TANDEM_TASK_CLASSES ? "accuracy" : metric_columns(task)[0];
}

BestFigures best_figures(const ComparedRun& run) {
  BestFigures best;
  if (const MetricRow* row = best_of(run.metrics)) {
    if (std::isfinite(row->top1)) best.accuracy = metric_text(run.record, row->top1);
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

// A figure of the best evaluation of each fold.
struct FoldFigure {
  std::string name;
  double MetricRow::*figure;
  bool is_share;
};

std::vector<FoldFigure> fold_figures(const RunRecord& record) {
  const auto names = metric_columns(record.task);
  const bool are_shares = record.task != TANDEM_TASK_VALUES;
  return {{names[0], &MetricRow::top1, are_shares},
          {names[1], &MetricRow::top5, are_shares},
          {"loss", &MetricRow::loss, false}};
}

struct Spread {
  double mean = no_figure, deviation = no_figure;
  size_t count = 0;
};

Spread spread_of(const std::vector<ComparedRun>& runs, double MetricRow::*figure) {
  std::vector<double> values;
  for (const ComparedRun& run : runs) {
    const MetricRow* best = best_of(run.metrics);
    if (best != nullptr && std::isfinite(best->*figure)) values.push_back(best->*figure);
  }
  Spread spread;
  spread.count = values.size();
  if (values.empty()) return spread;
  const auto count = double(values.size());
  spread.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  if (values.size() > 1) spread.deviation = std::sqrt(squares / (count - 1));
  return spread;
}

// "83.20 % +- 1.40"
std::string spread_text(const Spread& spread, bool is_share) {
  const double factor = is_share ? 100 : 1;
  const std::string mean =
      is_share ? fmt::format("{:.2f} %", 100 * spread.mean) : fmt::format("{:.4g}", spread.mean);
  if (!std::isfinite(spread.deviation)) return mean;
  return is_share ? fmt::format("{} +- {:.2f}", mean, factor * spread.deviation)
                  : fmt::format("{} +- {:.2g}", mean, spread.deviation);
}

json fold_rows(const std::vector<ComparedRun>& runs) {
  json rows = json::array();
  for (const auto& [name, figure, is_share] : fold_figures(runs.at(0).record)) {
    const Spread spread = spread_of(runs, figure);
    if (spread.count == 0) continue;
    rows.push_back({name, spread_text(spread, is_share), spread.count});
  }
  return rows;
}

// What says nothing of how a run trains, or follows from other options: how often it prints, the
// name in its net file, the shape of its images; what the solver's fields say, too.
constexpr std::array internal{"display",         "net_name", "data_shape",           "snapshot",
                              "chosen_strategy", "rate",     "machine.link_latency", "solver_type"};
// Of the solver's file: what options say, too, and where files are.
constexpr std::array said_elsewhere{"net",           "max_iter", "display",         "test_iter",
                                    "test_interval", "snapshot", "snapshot_prefix", "random_seed"};

bool is_among_names(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Parameters of the data set that nobody gave follow from the image size and the augmentation;
// options of a strategy that nobody gave, from the devices.
bool is_internal(const std::string& name, const std::vector<ComparedRun>& runs) {
  const auto is_given = [&](std::string_view prefix, const auto& given) {
    return !name.starts_with(prefix) ||
           std::any_of(runs.begin(), runs.end(), [&](const ComparedRun& run) {
             return given(run.record).contains(name.substr(prefix.size()));
           });
  };
  return is_among_names(internal, name) || name.starts_with("solver_fields.") ||
         !is_given("data_parameters.",
                   [](const RunRecord& record) { return record.options.data_parameters; }) ||
         !is_given("strategy_options.",
                   [](const RunRecord& record) { return record.given_options; });
}

// The options of which not all runs have the same value: a row for each, with its name and a column
// for each run.
json different_options(const std::vector<ComparedRun>& runs) {
  std::vector<std::map<std::string, std::string>> values;
  std::set<std::string> names;
  for (const ComparedRun& run : runs) {
    auto& mine = values.emplace_back();
    for (const auto& [name, value] : option_list(run.record)) {
      if (is_internal(name, runs)) continue;
      mine[name] = value;
      names.insert(name);
    }
    for (const auto& [name, value] : run.solver) {
      if (is_among_names(said_elsewhere, name)) continue;
      mine["solver: " + name] = value;
      names.insert("solver: " + name);
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

std::map<std::string, std::string> fields_of(const SolverDefinition& solver) {
  std::map<std::string, std::string> fields;
  for (const Field& field : parse_text_format(write_solver(solver), "solver").fields) {
    std::string& text = fields[field.name];
    text += (text.empty() ? "" : ",") + field.text;
  }
  return fields;
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
  const SolverDefinition solver = folder.solver();
  run.epochs_per_step = epochs_per_step(run.record, solver);
  run.solver = fields_of(solver);
  run.metrics = read_metrics(folder.metrics_file());
  return run;
}

std::string folds_text(const std::vector<ComparedRun>& runs) {
  std::string text =
      fmt::format("{} folds (best evaluation of each, mean +- deviation):", runs.size());
  for (const auto& [name, figure, is_share] : fold_figures(runs.at(0).record)) {
    const Spread spread = spread_of(runs, figure);
    if (spread.count > 0) text += fmt::format(" {} {},", name, spread_text(spread, is_share));
  }
  text.back() = '\n';
  return text;
}

std::string folds_table(const std::vector<ComparedRun>& runs) {
  const std::vector<FoldFigure> figures = fold_figures(runs.at(0).record);
  std::string text = "fold,step";
  for (const FoldFigure& one : figures) text += "," + one.name;
  for (size_t fold = 0; fold < runs.size(); ++fold) {
    const MetricRow* best = best_of(runs[fold].metrics);
    text += fmt::format("\n{},{}", fold + 1, best == nullptr ? "" : std::to_string(best->step));
    for (const FoldFigure& one : figures) {
      const bool has = best != nullptr && std::isfinite(best->*one.figure);
      text += has ? fmt::format(",{:.6g}", best->*one.figure) : ",";
    }
  }
  for (const bool is_mean : {true, false}) {
    text += is_mean ? "\nmean," : "\ndeviation,";
    for (const FoldFigure& one : figures) {
      const Spread spread = spread_of(runs, one.figure);
      const double value = is_mean ? spread.mean : spread.deviation;
      text += std::isfinite(value) ? fmt::format(",{:.6g}", value) : ",";
    }
  }
  return text + "\n";
}

std::string compare_page(const std::vector<ComparedRun>& runs, bool are_folds) {
  json rows = json::array();
  for (const ComparedRun& run : runs) {
    const BestFigures best = best_figures(run);
    rows.push_back({{"name", run.name},
                    {"best",
                     {shown(run.name), best.accuracy, best.loss, best.epoch, best.epochs,
                      best.seconds, best.speed}},
                    {"curves", curves_json(run.metrics, run.epochs_per_step)}});
  }
  const int64_t task = runs.at(0).record.task;
  return html_page(fmt::format("{} {}", runs.size(), are_folds ? "folds" : "runs"),
                   {{"page", "compare"},
                    {"runs", rows},
                    {"metric", metric_name(runs)},
                    {"are_shares", task != TANDEM_TASK_VALUES},
                    {"folds", are_folds ? fold_rows(runs) : json::array()},
                    {"options", different_options(runs)}});
}

std::string compare_text(const std::vector<ComparedRun>& runs) {
  size_t longest = 3;
  for (const ComparedRun& run : runs) longest = std::max(longest, run.name.size());
  std::string text = fmt::format("{:<{}}  {:>9} {:>9} {:>13} {:>12}\n", "run", longest,
                                 metric_name(runs), "loss", "after epochs", "time");
  for (const ComparedRun& run : runs) {
    const BestFigures best = best_figures(run);
    text += fmt::format("{:<{}}  {:>9} {:>9} {:>13} {:>12}\n", run.name, longest, best.accuracy,
                        best.loss, best.epoch, best.seconds);
  }
  return text;
}

}  // namespace tandem
