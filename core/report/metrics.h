// metrics.csv of a run folder, read again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
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

// The rows of one kind.
[[nodiscard]] std::vector<MetricRow> rows_of(const std::vector<MetricRow>& rows,
                                             const std::string& split);
// The evaluation whose weights are kept as `best`; nullptr: there is none.
[[nodiscard]] const MetricRow* best_of(const std::vector<MetricRow>& rows);

}  // namespace tandem
