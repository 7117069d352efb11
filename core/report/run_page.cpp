#include "core/report/run_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/version.h"
#include "core/report/audit_page.h"
#include "core/report/class_map.h"
#include "core/report/confusion_page.h"
#include "core/report/page/page.h"
#include "core/run/folder/progress.h"
#include "plugins/abi.h"

namespace tandem {
namespace {

using nlohmann::json;

json charts_of(const RunFigures& run) {
  const std::vector<MetricRow> steps = rows_of(run.metrics, "train");
  const std::vector<MetricRow> epochs = rows_of(run.metrics, "epoch");
  const std::vector<MetricRow> tests = rows_of(run.metrics, "val");
  const auto line = [&](const char* name, int color, const std::vector<MetricRow>& rows,
                        double MetricRow::*figure) {
    return chart_line(name, color, rows, figure, run.epochs_per_step);
  };
  ChartLine of_steps = line("training, each step", 0, steps, &MetricRow::loss);
  of_steps.faint = true;
  return charts_json({{"Loss",
                       false,
                       {of_steps, line("training", 0, epochs, &MetricRow::loss),
                        line("validation", 1, tests, &MetricRow::loss)}},
                      {"Accuracy",
                       true,
                       {line("training", 0, epochs, &MetricRow::top1),
                        line("validation", 1, tests, &MetricRow::top1),
                        line("validation, among the first five", 2, tests, &MetricRow::top5)}},
                      {"Learning rate", false, {line("learning rate", 3, steps, &MetricRow::rate)}},
                      {"Seconds for each epoch, with its validation",
                       false,
                       {line("seconds", 4, epochs, &MetricRow::seconds)}}});
}

std::string percent(double share) {
  return fmt::format("{:.2f} %", 100 * share);
}

// The figures at the top of the page, each with what it is.
json tiles_of(const RunFigures& run) {
  json tiles = json::array();
  const auto add = [&tiles](const std::string& value, const std::string& what) {
    tiles.push_back(json::array({value, what}));
  };
  if (const MetricRow* best = best_of(run.metrics)) {
    const double epochs = epochs_after(best->step, run.epochs_per_step);
    const std::string when =
        fmt::format("after {:.3g} {}", epochs, epochs == 1 ? "epoch" : "epochs");
    if (std::isfinite(best->top1)) add(percent(best->top1), "best accuracy, " + when);
    if (std::isfinite(best->loss)) {
      add(fmt::format("{:.4g}", best->loss), "validation loss, " + when);
    }
  }
  if (!run.metrics.empty()) {
    const int64_t done = run.metrics.back().step, all = run.record.options.steps;
    add(fmt::format("{} of {}", epochs_text(epochs_after(done, run.epochs_per_step)),
                    epochs_text(epochs_after(all, run.epochs_per_step))),
        fmt::format("epochs ({} of {} steps)", done, all));
  }
  double seconds = 0, speed = no_figure;
  for (const MetricRow& row : rows_of(run.metrics, "epoch")) {
    seconds += row.seconds;
    speed = row.images_per_second;
  }
  if (seconds > 0) add(duration_text(seconds), "for the epochs done");
  if (std::isfinite(speed)) add(fmt::format("{:.0f}", speed), "images/s in the last epoch");
  return tiles;
}

json evaluations_of(const RunFigures& run) {
  constexpr size_t max_rows = 1000;
  const std::vector<MetricRow> tests = rows_of(run.metrics, "val");
  json rows = json::array();
  for (size_t i = tests.size() - std::min(tests.size(), max_rows); i < tests.size(); ++i) {
    const MetricRow& row = tests[i];
    rows.push_back({{"epoch", epochs_text(epochs_after(row.step, run.epochs_per_step))},
                    {"step", row.step},
                    {"loss", row.loss},
                    {"top1", row.top1},
                    {"top5", row.top5},
                    {"best", row.best}});
  }
  return rows;
}

json cards_of(const RunFigures& run, const std::vector<JudgedPicture>& pictures) {
  constexpr int64_t max_small_side = 64;
  json cards = json::array();
  for (const JudgedPicture& one : pictures) {
    const Judgement& j = one.judgement;
    json& card = cards.emplace_back(
        json{{"name", one.name},
             {"png", base64_png(one.picture)},
             {"small", std::max(one.picture.width, one.picture.height) <= max_small_side},
             {"predicted", class_label(run.record.class_names, j.predicted)}});
    if (one.map) card["map"] = base64_png(map_picture(*one.map));
    if (run.learns_probabilities) card["probability"] = j.probability;
    if (j.label != j.predicted) card["label"] = class_label(run.record.class_names, j.label);
  }
  return cards;
}

// Null before the first evaluation. `training_counts`: the images of each class that the net learns
// from; empty if they are not known.
json findings_of(const RunFigures& run, const std::vector<int64_t>& training_counts) {
  if (!run.findings) return {};
  const Findings& found = *run.findings;
  json pictures = json::array();
  const auto add = [&](const char* title, const std::vector<JudgedPicture>& some) {
    if (!some.empty()) pictures.push_back({{"title", title}, {"cards", cards_of(run, some)}});
  };
  add(run.learns_probabilities ? "Most confident mistakes" : "Mistakes", run.mistakes);
  if (run.learns_probabilities) add("Least certain hits", run.doubts);
  return {{"judged", run.judged},
          {"note", run.judged_note},
          {"right", found.right},
          {"samples", found.samples},
          {"confusion", confusion_json(found.confusion, run.record.class_names)},
          {"classes", classes_json(found.confusion, run.record.class_names, training_counts)},
          {"pictures", pictures},
          {"pictures_note", run.pictures_note}};
}

// The images of each class that the net learns from; empty if they are not known.
std::vector<int64_t> training_counts(const RunFigures& run) {
  if (!run.has_training) return {};
  const std::vector<int64_t>& counts = run.data.splits[0].class_counts;
  const bool are_known =
      std::any_of(counts.begin(), counts.end(), [](int64_t count) { return count > 0; });
  return are_known ? counts : std::vector<int64_t>();
}

void flatten(const json& tree, const std::string& name,
             std::vector<std::pair<std::string, std::string>>& list) {
  if (tree.is_object()) {
    const std::string prefix = name.empty() ? "" : name + ".";
    for (const auto& [key, value] : tree.items()) flatten(value, prefix + key, list);
    return;
  }
  const std::string text = tree.is_string()
                               ? tree.get<std::string>()
                               : tree.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.empty() || text == "null" || text == "[]") return;
  list.emplace_back(name, text);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> option_list(const RunRecord& record) {
  const json tree = json::parse(to_json(record));
  std::vector<std::pair<std::string, std::string>> list;
  flatten(tree.at("net_name"), "net_name", list);
  json options = tree.at("options");
  options.erase("data_parameters");  // the record's are complete
  flatten(options, "", list);
  flatten(tree.at("training_samples"), "training_samples", list);
  flatten(json(record.class_names.size()), "classes", list);
  flatten(tree.at("data_shape"), "data_shape", list);
  flatten(tree.at("data_parameters"), "data_parameters", list);
  flatten(tree.at("choices").at("strategy"), "chosen_strategy", list);
  // A topology is long, and its text is in run.json.
  std::erase_if(list,
                [](const auto& entry) { return entry.first.starts_with("machine.topology"); });
  return list;
}

ChartLine chart_line(const std::string& name, int color, const std::vector<MetricRow>& rows,
                     double MetricRow::*figure, double epochs_per_step) {
  ChartLine line{name, {}, color};
  for (const MetricRow& row : rows) {
    line.points.emplace_back(double(row.step) * epochs_per_step, row.*figure);
  }
  return line;
}

double epochs_per_step(const RunRecord& record, const SolverDefinition& solver) {
  return static_cast<double>(record.options.batch) *
         static_cast<double>(solver.micro_batches_per_step) /
         static_cast<double>(std::max<int64_t>(1, record.training_samples));
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  if (whole >= 3600) return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
  if (whole >= 60) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{:.3g} s", seconds);
}

std::string last_step_mark(int64_t step) {
  return fmt::format("<!-- after step {} -->\n", step);
}

std::string run_page(const RunFigures& run) {
  const bool imported = is_imported(run.record);
  const std::vector<int64_t> counts = training_counts(run);
  json data = {{"page", "run"},
               {"net", shown(run.record.net_name)},
               {"source", imported ? json() : json(shown(run.record.options.data))},
               {"images", run.record.training_samples},
               {"classes", run.record.class_names.size()},
               {"tiles", tiles_of(run)},
               {"charts", charts_of(run)},
               {"evaluations", evaluations_of(run)},
               {"advice", advice(run)},
               {"findings", findings_of(run, counts)},
               {"type", run.data.type},
               {"splits", splits_json(run.data)},
               {"suggestions", counts.empty() ? std::vector<std::string>() : suggestions(run.data)},
               {"version", version()},
               {"abi", fmt::format("{}.{}", TANDEM_ABI_MAJOR, TANDEM_ABI_MINOR)},
               {"options", json::array()}};
  if (data["charts"].empty()) {
    data["charts_note"] =
        imported ? "The weights were imported, not trained here." : "No step was recorded yet.";
  }
  for (const auto& [name, value] : option_list(run.record)) {
    data["options"].push_back(json::array({name, shown(value)}));
  }
  return html_page("Run " + run.name, data,
                   run.metrics.empty() ? "" : last_step_mark(run.metrics.back().step));
}

}  // namespace tandem
