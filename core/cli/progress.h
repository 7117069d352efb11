// The progress of a run for its user: a progress bar on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <string>

#include "core/base/work.h"
#include "include/tandem/observer.h"

namespace tandem::cli {

class Progress : public Observer {
 public:
  // Without a terminal there is a line for each step that is_shown, for the first one that it gets,
  // and every ten seconds where steps are slow.
  Progress();

  void on_message(const std::string& line) override;
  void on_step(const StepReport& report) override;
  void on_evaluation(const Evaluation& evaluation) override;
  void on_epoch(const EpochReport& report) override;
  // Ends the bar's line.
  void finish();

 private:
  void clear();
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_draw_{};
  std::string accuracy_;  // of the last evaluation, with its step
};

// Exit code of a command that was asked to stop and has printed what it had.
constexpr int stopped_code = 130;
// Tells on stderr how far measuring or forecasting is; Ctrl-C ends it with what there is.
[[nodiscard]] WorkWatch watch_work();

// Columns of the terminal; `otherwise` where the output is no terminal or very narrow.
[[nodiscard]] int terminal_width(int otherwise);
// "1:02:03", "4:05"
[[nodiscard]] std::string clock_text(double seconds);
[[nodiscard]] std::string evaluation_text(const Evaluation& evaluation);

}  // namespace tandem::cli
