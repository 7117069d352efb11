// The folder of a run: net, options, class names, recorded choices, metrics, log, timeline and
// checkpoints. Every file in it is the run's own, a run writes nothing outside it, and only one
// process at a time trains in it.
#pragma once

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/model/file/definition.h"
#include "core/model/file/solver_definition.h"
#include "core/run/folder/run_record.h"
#include "include/tandem/observer.h"

namespace tandem {

constexpr const char* report_file = "report.html";

class RunFolder {
 public:
  // Makes the folder for a new run, and locks it. Throws Error if it cannot be written, already
  // holds a run or is locked.
  [[nodiscard]] static RunFolder create(const std::filesystem::path& path);
  // An existing run's. Error if it holds none.
  [[nodiscard]] static RunFolder open(const std::filesystem::path& path);
  [[nodiscard]] static bool holds_run(const std::filesystem::path& path);
  // Keeps other processes from training here until this object and its copies are destroyed, or the
  // process ends. Throws Error if another process trains here.
  void lock();
  // Whether the folder that is locked is still at its path; true without a lock.
  [[nodiscard]] bool is_in_place() const;
  // Error if it is not: what is saved there would be parted from the rest of the run.
  void require_in_place() const;
  // Removes files of the run that a kill has left half written. To be called with the lock.
  void remove_unfinished() const;
  // Removes what is written before the first step, and the folder if create() has made it and
  // nothing else is in it.
  void remove_unbegun() const;
  // runs/<net>-1, -2, ...: the first that does not exist.
  [[nodiscard]] static std::filesystem::path free_name(const std::string& net);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Whether create() found the folder, empty or with a curve of --find-lr, and did not make it.
  [[nodiscard]] bool was_there() const { return was_there_; }
  [[nodiscard]] std::filesystem::path metrics_file() const { return path_ / "metrics.csv"; }
  [[nodiscard]] std::filesystem::path log_file() const { return path_ / "log.txt"; }
  [[nodiscard]] std::filesystem::path timeline_file() const { return path_ / "timeline.json"; }
  [[nodiscard]] std::filesystem::path plan_file() const { return path_ / "plan.txt"; }
  [[nodiscard]] std::filesystem::path net_file() const { return path_ / "net.prototxt"; }
  [[nodiscard]] std::filesystem::path mean_image_file() const {
    return path_ / "mean_image.binaryproto";
  }

  // Keeps a copy of the record's mean_image, too, which record() then names.
  void write(const RunRecord& record, const NetDefinition& net,
             const SolverDefinition& solver) const;
  // Keeps the net as it was before the record's fine-tuning and class targets, if there are any.
  void write_net_before_tuning(const RunRecord& record, const NetDefinition& net) const;
  // Its file, or net.prototxt of a record without them. Error if the file is missing.
  [[nodiscard]] std::filesystem::path net_before_tuning(const RunRecord& record) const;
  [[nodiscard]] RunRecord record() const;
  [[nodiscard]] NetDefinition net() const;
  [[nodiscard]] SolverDefinition solver() const;
  // skipped.txt: the damaged samples of the training data, a line each. Without such a file there
  // are none.
  [[nodiscard]] std::filesystem::path skipped_file() const { return path_ / "skipped.txt"; }
  void write_skipped(const std::map<std::string, std::string>& reasons_of_names) const;
  [[nodiscard]] std::vector<BadSample> skipped() const;

 private:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
  bool was_there_ = false;
  std::shared_ptr<const int> lock_;  // a descriptor of the folder; closing it unlocks
};

}  // namespace tandem
