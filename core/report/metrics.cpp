#include "core/report/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/files/files.h"
#include "core/base/text/strings.h"

namespace tandem {
namespace {

using nlohmann::json;

double figure(const std::string& text) {
  double value = no_figure;
  (void)parse_number(text, &value);
  return value;
}

double six_digits(double value) {
  return figure(fmt::format("{:.6g}", value));
}

using Points = std::vector<std::pair<double, double>>;

json points_json(const Points& points) {
  constexpr size_t max_points = 400;
  const size_t parts = std::min(points.size(), max_points);
  json result = json::array();
  for (size_t part = 0; part < parts; ++part) {
    const size_t begin = part * points.size() / parts, end = (part + 1) * points.size() / parts;
    double x = 0, y = 0;
    for (size_t i = begin; i < end; ++i) {
      x += points[i].first;
      y += points[i].second;
    }
    const auto count = double(end - begin);
    result.push_back(json::array({six_digits(x / count), six_digits(y / count)}));
  }
  return result;
}

}  // namespace

std::vector<MetricRow> read_metrics(const std::filesystem::path& file) {
  constexpr size_t all_columns = 11;
  std::vector<MetricRow> rows;
  read_lines(file, [&](const std::string& line) {
    const std::vector<std::string> cells = tandem::split(line, ',');
    MetricRow row;
    if (cells.size() != all_columns || !parse_integer(cells[0], &row.step)) return;
    row.split = cells[2];
    row.loss = figure(cells[3]);
    row.top1 = figure(cells[4]);
    row.top5 = figure(cells[5]);
    row.rate = figure(cells[6]);
    row.images_per_second = figure(cells[7]);
    row.waited = figure(cells[8]);
    row.best = row.split == "val" && cells[9] == "1";
    row.seconds = figure(cells[10]);
    rows.push_back(std::move(row));
  });
  return rows;
}

json curves_json(const std::vector<MetricRow>& rows, double epochs_per_step) {
  using Figure = std::pair<const char*, double MetricRow::*>;
  static constexpr std::array figures{
      Figure{"loss", &MetricRow::loss}, Figure{"top1", &MetricRow::top1},
      Figure{"top5", &MetricRow::top5}, Figure{"rate", &MetricRow::rate},
      Figure{"seconds", &MetricRow::seconds}};
  json curves = json::object();
  for (const char* split : {"train", "val", "epoch"}) {
    const std::vector<MetricRow> mine = rows_of(rows, split);
    for (const auto& [name, figure] : figures) {
      Points points;
      for (const MetricRow& row : mine) {
        if (!std::isfinite(row.*figure)) continue;
        points.emplace_back(double(row.step) * epochs_per_step, row.*figure);
      }
      if (!points.empty()) curves[split][name] = points_json(points);
    }
  }
  return curves;
}

std::vector<MetricRow> rows_of(const std::vector<MetricRow>& rows, const std::string& split) {
  std::vector<MetricRow> result;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(result),
               [&](const MetricRow& row) { return row.split == split; });
  return result;
}

const MetricRow* best_of(const std::vector<MetricRow>& rows) {
  const auto found =
      std::find_if(rows.rbegin(), rows.rend(), [](const MetricRow& row) { return row.best; });
  return found == rows.rend() ? nullptr : &*found;
}

}  // namespace tandem
