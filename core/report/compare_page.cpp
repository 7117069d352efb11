#include "core/report/compare_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/report/page/chart.h"
#include "core/report/page/page.h"
#include "core/report/run_page.h"
#include "core/run/folder/progress.h"
#include "core/run/folder/run_folder.h"

namespace tandem {
namespace {

ChartLine compared_line(const ComparedRun& run, int number, const char* split,
                        double MetricRow::*figure) {
  ChartLine line{run.name, {}, false, number};
  for (const MetricRow& row : rows_of(run.metrics, split)) {
    line.points.emplace_back(static_cast<double>(row.step) * run.epochs_per_step, row.*figure);
  }
  return line;
}

std::string compared_charts(const std::vector<ComparedRun>& runs) {
  struct Chart {
    const char* title;
    const char* split;
    double MetricRow::*figure;
    bool shares;
  };
  const std::vector<Chart> charts = {
      {"Validation accuracy", "val", &MetricRow::top1, true},
      {"Validation loss", "val", &MetricRow::loss, false},
      {"Training accuracy", "epoch", &MetricRow::top1, true},
      {"Training loss", "epoch", &MetricRow::loss, false},
      {"Learning rate", "train", &MetricRow::rate, false},
      {"Seconds for each epoch, with its validation", "epoch", &MetricRow::seconds, false}};
  std::string html;
  for (const Chart& chart : charts) {
    std::vector<ChartLine> lines;
    for (size_t i = 0; i < runs.size(); ++i) {
      lines.push_back(compared_line(runs[i], static_cast<int>(i), chart.split, chart.figure));
    }
    html += line_chart({chart.title, "epoch", chart.shares}, std::move(lines));
  }
  return "<div class=charts>" + html + "</div>\n";
}

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
    speed += row.images_per_second / static_cast<double>(epochs.size());
  }
  if (!epochs.empty()) {
    best.seconds = duration_text(seconds);
    best.speed = fmt::format("{:.0f}", speed);
  }
  return best;
}

// The options of which not all runs have the same value: a row for each, a column for each run.
std::vector<std::vector<std::string>> different_options(const std::vector<ComparedRun>& runs) {
  std::vector<std::map<std::string, std::string>> values;
  std::set<std::string> names;
  for (const ComparedRun& run : runs) {
    auto& mine = values.emplace_back();
    for (const auto& [name, value] : option_list(run.record)) {
      mine[name] = value;
      names.insert(name);
    }
  }
  std::vector<std::vector<std::string>> rows;
  for (const std::string& name : names) {
    std::vector<std::string> row{name};
    for (const auto& mine : values) row.push_back(mine.count(name) > 0 ? mine.at(name) : "");
    if (std::adjacent_find(row.begin() + 1, row.end(), std::not_equal_to<>()) != row.end()) {
      rows.push_back(std::move(row));
    }
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
  std::vector<HtmlRow> rows;
  HtmlRow heading{"option"};
  for (const ComparedRun& run : runs) {
    const BestFigures best = best_figures(run);
    rows.push_back({shown(run.name), best.accuracy, best.loss, best.epoch, best.epochs,
                    best.seconds, best.speed});
    heading.push_back(shown(run.name));
  }
  std::string html = "<h2>Best evaluations</h2>\n" +
                     html_table({"run", "accuracy", "validation loss", "after epochs",
                                 "epochs done", "time", "images/s"},
                                rows, true);
  html += "<h2>Curves</h2>\n" + compared_charts(runs) + "<h2>Options that differ</h2>\n";
  std::vector<HtmlRow> options;
  for (const std::vector<std::string>& row : different_options(runs)) {
    HtmlRow& cells = options.emplace_back();
    for (const std::string& text : row) cells.push_back(shown(text));
  }
  html += options.empty() ? "<p>None.</p>\n" : html_table(heading, options);
  return html_page(fmt::format("{} runs", runs.size()), html);
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
