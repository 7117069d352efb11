// The observer that writes the run folder's metrics.csv and log.txt, line by line, and passes all
// reports on to the program's own observer.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/files.h"
#include "core/train/run_folder.h"
#include "include/tandem/observer.h"

namespace tandem {

class Recorder : public Observer {
 public:
  // `resumed_step`: lines of later steps, written before the run was interrupted, are removed; 0: a
  // new run.
  Recorder(const RunFolder& folder, Observer& next, int64_t display, int64_t resumed_step);

  void on_message(const std::string& line) override;
  void on_step(
      const StepReport& report) override;  // every report goes on; every display-th is written
  void on_evaluation(const Evaluation& evaluation) override;

 private:
  static void line(OutputFile& file, const std::string& text);
  Observer& next_;
  OutputFile metrics_, log_;
  int64_t display_;
};

}  // namespace tandem
