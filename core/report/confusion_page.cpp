#include "core/report/confusion_page.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/report/page/page.h"

namespace tandem {
namespace {

using nlohmann::json;

// Rows are true classes, columns predicted ones.
json matrix_json(const Confusion& confusion, const std::vector<std::string>& names,
                 const std::vector<int64_t>& order) {
  const std::vector<ClassScore> scores = confusion.scores();
  json classes = json::array(), counts = json::array();
  for (const int64_t label : order) {
    classes.push_back(
        {{"name", class_label(names, label)}, {"images", scores[size_t(label)].count}});
    json& row = counts.emplace_back(json::array());
    for (const int64_t predicted : order) row.push_back(confusion.at(label, predicted));
  }
  return {{"classes", classes}, {"counts", counts}};
}

constexpr int64_t max_pixels = 250;
constexpr size_t group_size = 12;

// Neighboring classes on each side of a point of the picture.
int64_t block_of(int64_t classes) {
  return (classes + max_pixels - 1) / max_pixels;
}

DrawnPicture picture_of(const Confusion& confusion, const std::vector<int64_t>& order) {
  const int64_t block = block_of(int64_t(order.size()));
  const auto classes = int64_t(order.size());
  const int64_t side = (classes + block - 1) / block;
  std::vector<int64_t> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) place[size_t(order[i])] = int64_t(i);
  std::vector<double> hits(size_t(side * side)), mistakes(hits.size());
  const std::vector<ClassScore> scores = confusion.scores();
  for (const auto& [cell, count] : confusion.cells()) {
    const auto [label, predicted] = cell;
    if (label >= classes || predicted >= classes) continue;
    const int64_t row = place[size_t(label)] / block;
    const int64_t column = place[size_t(predicted)] / block;
    const double share = double(count) / double(scores[size_t(label)].count * block);
    (label == predicted ? hits : mistakes)[size_t(row * side + column)] += share;
  }
  DrawnPicture picture{side, side, {}};
  for (size_t i = 0; i < hits.size(); ++i) {
    const double hit = std::min(1.0, hits[i]), miss = std::min(1.0, std::sqrt(4 * mistakes[i]));
    for (const auto& [blue, red] : {std::pair(47, 214), std::pair(111, 84), std::pair(176, 40)}) {
      const double value = 255 - hit * (255 - blue) - miss * (255 - red);
      picture.pixels.push_back(
          static_cast<unsigned char>(std::lround(std::clamp(value, 0.0, 255.0))));
    }
  }
  return picture;
}

json pairs_json(const Confusion& confusion, const std::vector<std::string>& names) {
  constexpr size_t max_pairs = 25;
  json rows = json::array();
  for (const ConfusedPair& pair : confused_pairs(confusion)) {
    if (rows.size() == max_pairs) break;
    const bool turned = pair.b_as_a > pair.a_as_b;
    rows.push_back({class_label(names, turned ? pair.b : pair.a),
                    class_label(names, turned ? pair.a : pair.b),
                    std::max(pair.a_as_b, pair.b_as_a), std::min(pair.a_as_b, pair.b_as_a)});
  }
  return rows;
}

// The class that each class is most often taken for, and how often; {-1, 0}: it never is.
std::vector<std::pair<int64_t, int64_t>> taken_for(const Confusion& confusion) {
  std::vector<std::pair<int64_t, int64_t>> taken(size_t(confusion.classes()), {-1, 0});
  for (const auto& [cell, count] : confusion.cells()) {
    if (cell.first == cell.second || cell.first >= confusion.classes()) continue;
    auto& most = taken[size_t(cell.first)];
    if (count > most.second) most = {cell.second, count};
  }
  return taken;
}

}  // namespace

json confusion_json(const Confusion& confusion, const std::vector<std::string>& class_names) {
  constexpr int64_t max_in_table = 30;
  constexpr size_t max_groups = 6;
  ClassOrder order = cluster(confusion, group_size);
  if (confusion.classes() <= max_in_table) {
    return {{"whole", matrix_json(confusion, class_names, order.order)}};
  }
  order.groups.resize(std::min(max_groups, order.groups.size()));
  json groups = json::array();
  for (const auto& group : order.groups) {
    groups.push_back(matrix_json(confusion, class_names, group));
  }
  return {{"picture", base64_png(picture_of(confusion, order.order))},
          {"block", block_of(confusion.classes())},
          {"pairs", pairs_json(confusion, class_names)},
          {"groups", groups}};
}

DrawnPicture confusion_picture(const Confusion& confusion, std::vector<int64_t>& order) {
  order = cluster(confusion, group_size).order;
  return picture_of(confusion, order);
}

json classes_json(const Confusion& confusion, const std::vector<std::string>& class_names,
                  const std::vector<int64_t>& training_counts) {
  constexpr size_t max_rows = 1000;
  const std::vector<ClassScore> scores = confusion.scores();
  const auto taken = taken_for(confusion);
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a].f1() < scores[b].f1(); });
  order.resize(std::min(order.size(), max_rows));
  const bool has_training = training_counts.size() == scores.size();
  const auto share = [](double value, int64_t of) { return of > 0 ? json(value) : json(); };
  json rows = json::array();
  for (const size_t c : order) {
    const ClassScore& score = scores[c];
    const auto [other, times] = taken[c];
    json& row = rows.emplace_back(json{{"name", class_label(class_names, int64_t(c))},
                                       {"images", score.count},
                                       {"recall", share(score.recall(), score.count)},
                                       {"precision", share(score.precision(), score.predicted)},
                                       {"f1", share(score.f1(), score.count + score.predicted)}});
    if (has_training) row["training"] = training_counts[c];
    if (times > 0) row.update({{"taken_for", class_label(class_names, other)}, {"times", times}});
  }
  return {{"rows", rows}, {"has_training", has_training}, {"of", scores.size()}};
}

}  // namespace tandem
