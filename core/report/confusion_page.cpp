#include "core/report/confusion_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/text/strings.h"
#include "core/report/page/page.h"
#include "core/report/page/png.h"

namespace tandem {
namespace {

constexpr int64_t most_in_table = 30;  // classes of one readable table
constexpr size_t group_size = 12, most_groups = 6, most_pairs = 25;

std::string class_label(const std::vector<std::string>& names, int64_t c) {
  const auto index = static_cast<size_t>(c);
  return index < names.size() ? shown(names[index]) : fmt::format("class {}", c);
}

std::string cell_html(const Confusion& confusion, const std::vector<ClassScore>& scores,
                      int64_t label, int64_t predicted) {
  const int64_t count = confusion.at(label, predicted);
  if (count == 0) return "<td></td>";
  const auto all = static_cast<double>(scores[static_cast<size_t>(label)].count);
  const double share = static_cast<double>(count) / std::max(1.0, all);
  // Few mistakes are to be seen, too.
  const double strength = label == predicted ? 0.15 + 0.6 * share : 0.12 + 0.75 * std::sqrt(share);
  return fmt::format("<td class={} style=\"--v:{:.2f}\" title=\"{:.1f} %\">{}</td>",
                     label == predicted ? "g" : "b", std::min(0.85, strength), 100 * share, count);
}

// Rows are true classes, columns predicted ones.
std::string matrix_html(const Confusion& confusion, const std::vector<std::string>& names,
                        const std::vector<int64_t>& order) {
  const std::vector<ClassScore> scores = confusion.scores();
  std::string html = "<div class=scroll><table class=matrix><tr><th></th>";
  for (const int64_t c : order) {
    const std::string name = class_label(names, c);
    html += fmt::format("<th class=up title=\"{0}\"><div>{0}</div></th>", name);
  }
  html += "</tr>\n";
  for (const int64_t label : order) {
    const std::string name = class_label(names, label);
    html += fmt::format("<tr><th title=\"{0}\">{0}</th>", name);
    for (const int64_t predicted : order) html += cell_html(confusion, scores, label, predicted);
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

// A picture of all cells. Each pixel is a square of neighbouring classes, so that it never has more
// than 250 x 250 pixels; on white, mistakes red, hits blue.
std::string picture_html(const Confusion& confusion, const std::vector<int64_t>& order) {
  constexpr int64_t most_pixels = 250;
  const auto classes = static_cast<int64_t>(order.size());
  const int64_t block = (classes + most_pixels - 1) / most_pixels;
  const int64_t side = (classes + block - 1) / block;
  std::vector<int64_t> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) place[static_cast<size_t>(order[i])] = int64_t(i);
  std::vector<double> hits(static_cast<size_t>(side * side)), mistakes(hits.size());
  const std::vector<ClassScore> scores = confusion.scores();
  for (const auto& [cell, count] : confusion.cells()) {
    const auto [label, predicted] = cell;
    if (label >= classes || predicted >= classes) continue;
    const int64_t row = place[static_cast<size_t>(label)] / block;
    const int64_t column = place[static_cast<size_t>(predicted)] / block;
    const double share = static_cast<double>(count) /
                         static_cast<double>(scores[static_cast<size_t>(label)].count * block);
    (label == predicted ? hits : mistakes)[static_cast<size_t>(row * side + column)] += share;
  }
  std::vector<unsigned char> pixels;
  for (size_t i = 0; i < hits.size(); ++i) {
    const double hit = std::min(1.0, hits[i]), miss = std::min(1.0, std::sqrt(4 * mistakes[i]));
    for (const auto& [blue, red] : {std::pair(47, 214), std::pair(111, 84), std::pair(176, 40)}) {
      const double value = 255 - hit * (255 - blue) - miss * (255 - red);
      pixels.push_back(static_cast<unsigned char>(std::lround(std::clamp(value, 0.0, 255.0))));
    }
  }
  return fmt::format(
      "<p>True classes downwards, predicted classes to the right, those that are confused next to "
      "each other{}. Hits are blue, mistakes red.</p>\n<img class=heat alt=\"confusion matrix\" "
      "src=\"data:image/png;base64,{}\">\n",
      block > 1 ? fmt::format("; each point is {0} x {0} classes", block) : "",
      to_base64(to_png(side, side, pixels)));
}

std::string pairs_html(const Confusion& confusion, const std::vector<std::string>& names) {
  const std::vector<ConfusedPair> pairs = confused_pairs(confusion);
  if (pairs.empty()) return "";
  std::vector<HtmlRow> rows;
  for (size_t i = 0; i < std::min(most_pairs, pairs.size()); ++i) {
    const ConfusedPair& pair = pairs[i];
    const bool turned = pair.b_as_a > pair.a_as_b;
    rows.push_back({class_label(names, turned ? pair.b : pair.a),
                    class_label(names, turned ? pair.a : pair.b),
                    fmt::format("{}", std::max(pair.a_as_b, pair.b_as_a)),
                    fmt::format("{}", std::min(pair.a_as_b, pair.b_as_a))});
  }
  return "<h3>Most confused pairs</h3>\n" +
         html_table({"class", "taken for", "images", "the other way round"}, rows, true);
}

}  // namespace

std::string confusion_html(const Confusion& confusion,
                           const std::vector<std::string>& class_names) {
  const ClassOrder order = cluster(confusion, group_size);
  if (confusion.classes() <= most_in_table) {
    return "<p>Rows are the true classes, columns the predicted ones; classes that are confused "
           "are next to each other.</p>\n" +
           matrix_html(confusion, class_names, order.order);
  }
  std::string html = picture_html(confusion, order.order) + pairs_html(confusion, class_names);
  if (!order.groups.empty()) {
    html += "<h3>Groups of classes that are confused</h3>\n";
    for (size_t i = 0; i < std::min(most_groups, order.groups.size()); ++i) {
      html += matrix_html(confusion, class_names, order.groups[i]);
    }
  }
  return html;
}

std::string class_table(const Confusion& confusion, const std::vector<std::string>& class_names,
                        const std::vector<int64_t>& training_counts) {
  constexpr size_t most_rows = 1000;
  const std::vector<ClassScore> scores = confusion.scores();
  std::vector<std::pair<int64_t, int64_t>> taken_for(scores.size(), {-1, 0});  // class, count
  for (const auto& [cell, count] : confusion.cells()) {
    if (cell.first == cell.second || cell.first >= confusion.classes()) continue;
    auto& most = taken_for[static_cast<size_t>(cell.first)];
    if (count > most.second) most = {cell.second, count};
  }
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a].f1() < scores[b].f1(); });
  HtmlRow heading{"class",
                  "images",
                  "<div class=left>recall</div>",
                  "<div class=left>precision</div>",
                  "F1",
                  "most often taken for"};
  const bool has_training = training_counts.size() == scores.size();
  if (has_training) heading.insert(heading.begin() + 1, "to learn from");
  std::vector<HtmlRow> rows;
  for (size_t i = 0; i < std::min(order.size(), most_rows); ++i) {
    const size_t c = order[i];
    const ClassScore& score = scores[c];
    HtmlRow row{class_label(class_names, static_cast<int64_t>(c)), fmt::format("{}", score.count)};
    if (has_training) row.insert(row.begin() + 1, fmt::format("{}", training_counts[c]));
    const auto share = [](double value, int64_t of) {
      return of > 0 ? fmt::format("{:.1f} %", 100 * value) : std::string("&ndash;");
    };
    row.push_back(html_bar(score.recall(), share(score.recall(), score.count)));
    row.push_back(html_bar(score.precision(), share(score.precision(), score.predicted)));
    row.push_back(share(score.f1(), score.count + score.predicted));
    const auto [other, count] = taken_for[c];
    row.push_back(count == 0 ? "" : fmt::format("{} ({})", class_label(class_names, other), count));
    rows.push_back(std::move(row));
  }
  std::string html = "<div class=tall>" + html_table(heading, rows, true) + "</div>";
  if (order.size() > most_rows) {
    html += fmt::format("<p class=soft>The {} classes of the lowest F1, of {}.</p>\n", most_rows,
                        order.size());
  }
  return html;
}

}  // namespace tandem
