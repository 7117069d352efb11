#include "core/report/metrics.h"

#include <algorithm>
#include <iterator>

#include "core/base/files/files.h"
#include "core/base/text/strings.h"

namespace tandem {
namespace {

double figure(const std::string& text) {
  double value = no_figure;
  (void)parse_number(text, &value);
  return value;
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
