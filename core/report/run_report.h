// Writes report.html of a run while it trains, and again when the run is tested. A reader always
// sees a whole page. It never ends a run: a page that cannot be written is one message. It takes
// little time: between the first page and the last, pages are left out where they would take more
// than 2 % of the run's time.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/report/findings.h"
#include "core/report/run_page.h"
#include "core/run/setup/setup.h"

namespace tandem {

// At the end a page has everything; a run that is stopped has a page soon. A test of other data
// adds a section to the page that is there.
enum class ReportMoment { during, stopped, end, other_data };

class RunReport {
 public:
  using GetWeights = std::function<std::vector<float>()>;

  // Everything referred to outlives it. The setup may lack its training data; its validation data
  // are those that are judged, of the split `judged_split`.
  RunReport(Registry& registry, const TrainSetup& setup, const RunFolder& folder,
            Observer& observer, std::string judged_split = "val");

  // Whether the page that is there has some, which the next page keeps unless it gets others.
  [[nodiscard]] bool has_page_with_findings() const;
  // What an evaluation has found, for the next page. `bad`: its damaged samples. `note`: what the
  // data set says of the samples.
  void judge(Findings findings, const std::string& judged, const std::vector<BadSample>& bad,
             const std::string& note = "");
  // `weights`: asked for those that the findings are of, where these are mapped. `training_bad`:
  // damaged samples. Whether the page was written.
  bool write(const GetWeights& weights, const std::vector<BadSample>& training_bad,
             ReportMoment moment);
  // Of the page written last: what its findings are as pictures, for the step.
  [[nodiscard]] std::vector<PictureReport> pictures(int64_t step) const;

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] double seconds() const;
  [[nodiscard]] RunFigures figures(const std::vector<BadSample>& training_bad) const;
  [[nodiscard]] std::string page_before() const;  // "": there is none
  void add_pictures(RunFigures& run, const GetWeights& weights, bool with_maps);
  void add_maps(RunFigures& run, const std::vector<std::vector<float>>& samples,
                const GetWeights& weights);

  Registry& registry_;
  const TrainSetup& setup_;
  const RunFolder& folder_;
  Observer& observer_;
  std::string judged_split_;
  Clock::time_point begin_ = Clock::now();
  double spent_ = 0;  // seconds
  bool is_written_ = false, has_failed_ = false;
  std::optional<Findings> findings_;
  std::string judged_, judged_note_;
  std::vector<BadSample> validation_bad_;
  std::optional<Audit> data_;  // what does not change
  std::vector<std::pair<std::string, DrawnPicture>> drawn_;
};

}  // namespace tandem
