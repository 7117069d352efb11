// metrics.csv of a run folder, read again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tandem {

constexpr double no_figure = std::numeric_limits<double>::quiet_NaN();

// docs/reference/files.md explains the columns. A figure that a row does not have is NaN.
struct MetricRow {
  int64_t step = 0;
  std::string split;  // train, val, epoch
  double loss = no_figure, top1 = no_figure, top5 = no_figure, rate = no_figure;
  double images_per_second = no_figure, waited = no_figure, seconds = no_figure;
  bool best = false;
};

// Rows that a kill has cut short are left out. Error if the file cannot be read.
[[nodiscard]] std::vector<MetricRow> read_metrics(const std::filesystem::path& file);

// The figures of each kind of row over epochs, as pages draw them: points of six digits, as in
// {"val": {"loss": [[1, 2.31], ...]}}. What is not finite is left out, and a figure without points.
// More than 400 points become 400 means of neighbors.
[[nodiscard]] nlohmann::json curves_json(const std::vector<MetricRow>& rows,
                                         double epochs_per_step);

// The rows of one kind.
[[nodiscard]] std::vector<MetricRow> rows_of(const std::vector<MetricRow>& rows,
                                             const std::string& split);
// The evaluation whose weights are kept as `best`; nullptr: there is none.
[[nodiscard]] const MetricRow* best_of(const std::vector<MetricRow>& rows);

}  // namespace tandem
