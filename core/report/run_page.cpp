#include "core/report/run_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/version.h"
#include "core/data/dataset_statistics.h"
#include "core/report/audit_page.h"
#include "core/report/class_map.h"
#include "core/report/confusion_page.h"
#include "core/report/page/page.h"
#include "core/run/folder/progress.h"
#include "core/run/folder/recorder.h"
#include "plugins/abi.h"

namespace tandem {
namespace {

using nlohmann::json;

// The evaluation whose weights are the best; null before the first one.
json best_evaluation(const RunFigures& run) {
  const MetricRow* best = best_of(run.metrics);
  if (best == nullptr) return {};
  return {{"top1", best->top1},
          {"loss", best->loss},
          {"epochs", epochs_after(best->step, run.epochs_per_step)}};
}

// What was done, of what, and how fast; null before the first step.
json progress_of(const RunFigures& run) {
  if (run.metrics.empty()) return {};
  const int64_t done = run.metrics.back().step, all = run.record.options.steps;
  double seconds = 0, speed = no_figure;
  for (const MetricRow& row : rows_of(run.metrics, "epoch")) {
    seconds += row.seconds;
    speed = row.images_per_second;
  }
  return {{"steps", done},
          {"all_steps", all},
          {"epochs", epochs_text(epochs_after(done, run.epochs_per_step))},
          {"all_epochs", epochs_text(epochs_after(all, run.epochs_per_step))},
          {"time", seconds > 0 ? duration_text(seconds) : ""},
          {"images_per_second", speed}};
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
  if (!found.figures.empty()) {
    json rows = json::array();
    for (const TargetFigure& one : found.figures) {
      rows.push_back({{"name", shown(one.name)},
                      {"images", one.images},
                      {"average_precision", one.average_precision},
                      {"precision", one.precision},
                      {"recall", one.recall},
                      {"f1", one.f1},
                      {"mean_absolute_error", one.mean_absolute_error},
                      {"r2", one.r2}});
    }
    return {{"judged", run.judged},
            {"note", run.judged_note},
            {"samples", found.samples},
            {"targets", rows},
            {"are_values", run.record.task == TANDEM_TASK_VALUES}};
  }
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
  if (tree.contains("first_weights")) flatten(tree.at("first_weights"), "first_weights", list);
  flatten(tree.at("data_shape"), "data_shape", list);
  flatten(tree.at("data_parameters"), "data_parameters", list);
  flatten(tree.at("choices").at("strategy"), "chosen_strategy", list);
  // A topology is long, and its text is in run.json.
  std::erase_if(list,
                [](const auto& entry) { return entry.first.starts_with("machine.topology"); });
  return list;
}

double epochs_per_step(const RunRecord& record, const SolverDefinition& solver) {
  return double(record.options.batch) * double(solver.micro_batches_per_step) /
         double(std::max<int64_t>(1, record.training_samples));
}

std::string duration_text(double seconds) {
  const auto whole = int64_t(seconds);
  if (whole >= 3600) return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
  if (whole >= 60) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{:.3g} s", seconds);
}

std::string last_step_mark(int64_t step) {
  return fmt::format("<!-- after step {} -->\n", step);
}

namespace {

json page_of(const RunFigures& run) {
  const std::vector<int64_t> counts = training_counts(run);
  json data = {{"page", "run"},
               {"net", shown(run.record.net_name)},
               {"source", is_imported(run.record) ? json() : json(shown(run.record.options.data))},
               {"images", run.record.training_samples},
               {"classes", run.record.class_names.size()},
               {"task", task_text(run.record.task)},
               {"metrics", metric_columns(run.record.task)},
               {"best", best_evaluation(run)},
               {"progress", progress_of(run)},
               {"curves", curves_json(run.metrics, run.epochs_per_step)},
               {"planned_rates", run.planned_rates},
               {"evaluations", evaluations_of(run)},
               {"phases", run.phases},
               {"advice", advice(run)},
               {"findings", findings_of(run, counts)},
               {"type", run.data.type},
               {"splits", splits_json(run.data)},
               {"suggestions", counts.empty() ? std::vector<std::string>() : suggestions(run.data)},
               {"version", version()},
               {"abi", fmt::format("{}.{}", TANDEM_ABI_MAJOR, TANDEM_ABI_MINOR)},
               {"options", json::array()}};
  for (const auto& [name, value] : option_list(run.record)) {
    data["options"].push_back(json::array({name, shown(value)}));
  }
  return data;
}

std::string run_html(const RunFigures& run, const json& data) {
  const json& progress = data.at("progress");
  return html_page("Run " + run.name, data,
                   progress.is_null() ? "" : last_step_mark(progress.at("steps").get<int64_t>()));
}

}  // namespace

std::string run_page(const RunFigures& run, const std::string& before) {
  json data = page_of(run);
  const json old = page_data(before);
  data["tests"] = old.contains("tests") ? old["tests"] : json::array();
  if (!run.findings && old.contains("findings")) data["findings"] = old["findings"];
  return run_html(run, data);
}

bool has_findings(const std::string& page) {
  const json data = page_data(page);
  return data.contains("findings") && !data["findings"].is_null();
}

std::string page_with_test(RunFigures run, const std::string& before) {
  const json test = findings_of(run, training_counts(run));
  run.findings.reset();
  json data = page_data(before);
  if (!data.is_object() || data.value("page", "") != "run") data = page_of(run);
  json tests = json::array();
  for (const json& other : data.value("tests", json::array())) {
    if (other.at("judged") != test.at("judged")) tests.push_back(other);
  }
  tests.push_back(test);
  data["tests"] = tests;
  return run_html(run, data);
}

}  // namespace tandem
