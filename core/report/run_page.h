// The page of a run, report.html: what its metrics, its last evaluation and its data say, and what
// to try next. A pure function: the figures come in, HTML comes out.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/data/audit/audit.h"
#include "core/model/file/solver_definition.h"
#include "core/report/class_map.h"
#include "core/report/display.h"
#include "core/report/findings.h"
#include "core/report/metrics.h"
#include "core/run/folder/run_record.h"

namespace tandem {

// A sample as the net saw it.
struct JudgedPicture {
  Judgement judgement;
  std::string name;
  DrawnPicture picture;
  std::optional<ClassMap> map;  // of the predicted class
};

struct RunFigures {
  std::string name;  // of the run folder
  RunRecord record;
  double epochs_per_step = 0;
  std::vector<MetricRow> metrics;
  std::vector<std::pair<double, double>> planned_rates;  // of the whole run: epoch and rate
  // Of the best evaluation, or as `judged` says; absent for a net without class scores, and before
  // the first one.
  std::optional<Findings> findings;
  std::string judged;         // "validation after step 120"
  std::string judged_note;    // what the data set says of the samples
  Audit data;                 // without pixels: outline()
  bool has_training = false;  // whether the first split of `data` is that of the training
  std::vector<JudgedPicture> mistakes, doubts;
  std::string phases;                // which layers learn when; "": all, always
  bool learns_probabilities = true;  // else those of findings and pictures mean nothing
  std::string pictures_note;         // how the maps were made, or why there are none
};

// Lines for the user, the most important first; text, not HTML.
[[nodiscard]] std::vector<std::string> advice(const RunFigures& run);
// Where this share of so many seconds was spent waiting for data; "" if it is hardly any.
[[nodiscard]] std::string advice_on_waiting(double share, double seconds);

// `before`: the page that is replaced, "" if there is none; its tests of other data are kept, and
// its findings where the figures have none.
[[nodiscard]] std::string run_page(const RunFigures& run, const std::string& before = "");
[[nodiscard]] bool has_findings(const std::string& page);
// The page `before` with the figures' findings as a test of other data, in place of an earlier test
// of the same data; without a page before, a new one.
[[nodiscard]] std::string page_with_test(RunFigures run, const std::string& before);
// HTML that the page has of a run whose metrics end with this step.
[[nodiscard]] std::string last_step_mark(int64_t step);

// ---- parts that the page of several runs has, too

// Name and value of each option and of what was chosen, as run.json has them.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> option_list(const RunRecord& record);
// The share of an epoch that a step trains on.
[[nodiscard]] double epochs_per_step(const RunRecord& record, const SolverDefinition& solver);
// "12 min 5 s"
[[nodiscard]] std::string duration_text(double seconds);

}  // namespace tandem
