// Several runs beside each other: their curves, best figures and the options in which they differ.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/report/metrics.h"
#include "core/run/folder/run_record.h"

namespace tandem {

struct ComparedRun {
  std::string name;  // as the user gave it
  RunRecord record;
  double epochs_per_step = 0;
  std::vector<MetricRow> metrics;
  std::map<std::string, std::string> solver = {};  // its fields, as its file has them
};

// Error if the folder holds no run.
[[nodiscard]] ComparedRun read_compared_run(const std::filesystem::path& folder);

// As a page, and as a table for a terminal. `are_folds`: of one cross-validation, whose figures
// have means and deviations.
[[nodiscard]] std::string compare_page(const std::vector<ComparedRun>& runs,
                                       bool are_folds = false);
[[nodiscard]] std::string compare_text(const std::vector<ComparedRun>& runs);
// Mean and deviation (of a sample: n - 1) of each figure of the folds' best evaluations, as lines;
// and the figures of each as CSV.
[[nodiscard]] std::string folds_text(const std::vector<ComparedRun>& runs);
[[nodiscard]] std::string folds_table(const std::vector<ComparedRun>& runs);

}  // namespace tandem
