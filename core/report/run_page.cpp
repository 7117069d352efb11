#include "core/report/run_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/text/strings.h"
#include "core/base/version.h"
#include "core/report/audit_page.h"
#include "core/report/class_map.h"
#include "core/report/confusion_page.h"
#include "core/report/page/chart.h"
#include "core/report/page/page.h"
#include "core/report/page/png.h"
#include "core/run/folder/progress.h"
#include "plugins/abi.h"

namespace tandem {
namespace {

using nlohmann::json;

ChartLine line_of(const RunFigures& run, const std::string& name, int colour,
                  const std::vector<MetricRow>& rows, double MetricRow::*figure) {
  ChartLine line{name, {}, false, colour};
  for (const MetricRow& row : rows) {
    line.points.emplace_back(static_cast<double>(row.step) * run.epochs_per_step, row.*figure);
  }
  return line;
}

std::string charts_html(const RunFigures& run) {
  const std::vector<MetricRow> steps = rows_of(run.metrics, "train");
  const std::vector<MetricRow> epochs = rows_of(run.metrics, "epoch");
  const std::vector<MetricRow> tests = rows_of(run.metrics, "val");
  ChartLine of_steps = line_of(run, "training, each step", 0, steps, &MetricRow::loss);
  of_steps.faint = true;
  std::string html = line_chart({"Loss", "epoch", false},
                                {of_steps, line_of(run, "training", 0, epochs, &MetricRow::loss),
                                 line_of(run, "validation", 1, tests, &MetricRow::loss)});
  html +=
      line_chart({"Accuracy", "epoch", true},
                 {line_of(run, "training", 0, epochs, &MetricRow::top1),
                  line_of(run, "validation", 1, tests, &MetricRow::top1),
                  line_of(run, "validation, among the first five", 2, tests, &MetricRow::top5)});
  html += line_chart({"Learning rate", "epoch", false},
                     {line_of(run, "learning rate", 3, steps, &MetricRow::rate)});
  html += line_chart({"Seconds for each epoch, with its validation", "epoch", false},
                     {line_of(run, "seconds", 4, epochs, &MetricRow::seconds)});
  if (html.empty()) {
    html = fmt::format("<p class=soft>{}</p>\n",
                       is_imported(run.record) ? "The weights were imported, not trained here."
                                               : "No step was recorded yet.");
  }
  return "<div class=charts>" + html + "</div>\n";
}

std::string tile(const std::string& value, const std::string& what) {
  return fmt::format("<div class=tile><b>{}</b><span>{}</span></div>", value, what);
}

std::string tiles_html(const RunFigures& run) {
  std::string html;
  const MetricRow* best = best_of(run.metrics);
  if (best != nullptr) {
    const double epochs = epochs_after(best->step, run.epochs_per_step);
    const std::string when =
        fmt::format("after {:.3g} {}", epochs, epochs == 1 ? "epoch" : "epochs");
    if (std::isfinite(best->top1)) html += tile(percent(best->top1, 2), "best accuracy, " + when);
    if (std::isfinite(best->loss)) {
      html += tile(fmt::format("{:.4g}", best->loss), "validation loss, " + when);
    }
  }
  if (!run.metrics.empty()) {
    const int64_t done = run.metrics.back().step;
    html +=
        tile(fmt::format("{} of {}", epochs_text(epochs_after(done, run.epochs_per_step)),
                         epochs_text(epochs_after(run.record.options.steps, run.epochs_per_step))),
             fmt::format("epochs ({} of {} steps)", done, run.record.options.steps));
  }
  double seconds = 0, speed = no_figure;
  for (const MetricRow& row : rows_of(run.metrics, "epoch")) {
    seconds += row.seconds;
    speed = row.images_per_second;
  }
  if (seconds > 0) html += tile(duration_text(seconds), "for the epochs done");
  if (std::isfinite(speed))
    html += tile(fmt::format("{:.0f}", speed), "images/s in the last epoch");
  return "<div class=tiles>" + html + "</div>\n";
}

std::string advice_html(const RunFigures& run) {
  const std::vector<std::string> lines = advice(run);
  if (lines.empty()) return "";
  std::string html = "<h2>What to try next</h2>\n<ul>\n";
  for (const std::string& line : lines) html += "<li>" + escape_xml(line) + "</li>\n";
  return html + "</ul>\n";
}

std::string evaluations_html(const RunFigures& run) {
  constexpr size_t most = 1000;
  std::vector<HtmlRow> rows;
  const std::vector<MetricRow> tests = rows_of(run.metrics, "val");
  const size_t first = tests.size() > most ? tests.size() - most : 0;
  for (size_t i = first; i < tests.size(); ++i) {
    const MetricRow& row = tests[i];
    rows.push_back({epochs_text(epochs_after(row.step, run.epochs_per_step)),
                    fmt::format("{}", row.step),
                    std::isfinite(row.loss) ? fmt::format("{:.4f}", row.loss) : "",
                    percent(row.top1, 2), percent(row.top5, 2), row.best ? "&#9679;" : ""});
  }
  if (rows.empty()) return "";
  return "<details><summary>The evaluations as a table</summary><div class=tall>" +
         html_table({"epoch", "step", "loss", "accuracy", "first five", "best so far"}, rows) +
         "</div></details>\n";
}

std::string class_of(const RunFigures& run, int64_t c) {
  const auto& names = run.record.class_names;
  const auto index = static_cast<size_t>(c);
  return index < names.size() ? shown(names[index]) : fmt::format("class {}", c);
}

std::string map_png(const ClassMap& map) {
  const DrawnPicture picture = map_picture(map);
  return to_base64(to_png(picture.width, picture.height, picture.pixels));
}

std::string picture_card(const RunFigures& run, const JudgedPicture& one) {
  constexpr int64_t small_side = 64;
  const Judgement& j = one.judgement;
  const DrawnPicture& p = one.picture;
  std::string html = fmt::format(
      "<div class=picture><div class=both><img{} alt=\"\" src=\"data:image/png;base64,{}\">",
      std::max(p.width, p.height) <= small_side ? " class=small" : "",
      to_base64(to_png(p.width, p.height, p.pixels)));
  if (one.map) {
    html += "<img class=map alt=\"\" src=\"data:image/png;base64," + map_png(*one.map) + "\">";
  }
  html += "</div>";
  if (run.learns_probabilities) html += fmt::format("{:.1f} % ", 100 * j.probability);
  html += "<b>" + class_of(run, j.predicted) + "</b>";
  if (j.label != j.predicted) html += "<br>instead of " + class_of(run, j.label);
  // The end of a path says more than its beginning.
  constexpr size_t most = 22;
  std::string name = one.name;
  const size_t slash = name.rfind('/');
  if (name.size() > most && slash != std::string::npos) name = name.substr(slash + 1);
  return html + fmt::format("<br><span class=soft title=\"{}\">{}</span></div>\n",
                            escape_xml(one.name), shown(name));
}

std::string pictures_html(const RunFigures& run, const std::vector<JudgedPicture>& pictures,
                          const char* title) {
  if (pictures.empty()) return "";
  std::string html = fmt::format("<h2>{}</h2>\n", title);
  if (!run.pictures_note.empty()) {
    html += "<p class=soft>" + escape_xml(run.pictures_note) + "</p>\n";
  }
  html += "<div class=pictures>";
  for (const JudgedPicture& one : pictures) html += picture_card(run, one);
  return html + "</div>\n";
}

// The images of each class that the net learns from; empty if they are not known.
std::vector<int64_t> training_counts(const RunFigures& run) {
  return run.has_training ? run.data.splits[0].class_counts : std::vector<int64_t>();
}

std::string findings_html(const RunFigures& run) {
  if (!run.findings) return "";
  const Findings& found = *run.findings;
  const std::vector<int64_t> counts = training_counts(run);
  const bool are_known =
      std::any_of(counts.begin(), counts.end(), [](int64_t count) { return count > 0; });
  const std::string note =
      run.judged_note.empty() ? "" : "<p class=soft>" + escape_xml(run.judged_note) + "</p>\n";
  return fmt::format(
             "<h2>Which class is taken for which</h2>\n<p>Of the {}: {} of {} images are "
             "recognized.</p>\n{}",
             escape_xml(run.judged), found.right, found.samples, note) +
         confusion_html(found.confusion, run.record.class_names) + "<h2>Classes</h2>\n" +
         class_table(found.confusion, run.record.class_names,
                     are_known ? counts : std::vector<int64_t>()) +
         (run.learns_probabilities ? pictures_html(run, run.mistakes, "Most confident mistakes") +
                                         pictures_html(run, run.doubts, "Least certain hits")
                                   : pictures_html(run, run.mistakes, "Mistakes"));
}

std::string data_html(const RunFigures& run) {
  if (run.data.splits.empty()) return "";
  std::string html = fmt::format(
      "<h2>Data</h2>\n<p>{}{} classes, read by {}. Sizes and formats are those of "
      "some evenly spaced images; <code>tandem data</code> reads all of them, and finds images "
      "that occur twice.</p>\n",
      is_imported(run.record) ? ""
                              : fmt::format("<code>{}</code>: ", shown(run.record.options.data)),
      run.record.class_names.size(), escape_xml(run.data.type));
  html += split_table(run.data);
  for (const SplitAudit& split : run.data.splits) {
    if (!split.bad.empty()) html += damage_list(split.bad, split.name);
  }
  const std::vector<int64_t> counts = training_counts(run);
  if (std::none_of(counts.begin(), counts.end(), [](int64_t count) { return count > 0; })) {
    return html;
  }
  std::string lines;
  for (const std::string& line : suggestions(run.data)) {
    lines += "<li>" + escape_xml(line) + "</li>\n";
  }
  return html + (lines.empty() ? "" : "<ul>\n" + lines + "</ul>\n");
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

std::string options_html(const RunFigures& run) {
  std::vector<HtmlRow> rows;
  for (const auto& [name, value] : option_list(run.record)) {
    rows.push_back({escape_xml(name), "<div class=left>" + shown(value) + "</div>"});
  }
  return fmt::format(
             "<h2>Options and versions</h2>\n<p>Tandem {}, plugin ABI {}.{}.{}</p>\n"
             "<details><summary>Options, with what was chosen</summary>",
             version(), TANDEM_ABI_MAJOR, TANDEM_ABI_MINOR,
             is_imported(run.record)
                 ? ""
                 : " Run again with the same options and seed, it gives the same weights.") +
         html_table({"option", "<div class=left>value</div>"}, rows) + "</details>\n";
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
  const std::string data =
      is_imported(run.record)
          ? ", imported:"
          : fmt::format(" on <code>{}</code>: {} training images of",
                        shown(run.record.options.data), run.record.training_samples);
  std::string html = fmt::format("<p>Net <code>{}</code>{} {} classes.</p>\n",
                                 shown(run.record.net_name), data, run.record.class_names.size());
  if (!run.metrics.empty()) html += last_step_mark(run.metrics.back().step);
  html += tiles_html(run) + charts_html(run) + evaluations_html(run) + advice_html(run);
  html += findings_html(run) + data_html(run) + options_html(run);
  return html_page("Run " + run.name, html);
}

}  // namespace tandem
