// TensorBoard's event file: the run's figures as scalars, and pictures, to be shown by `tensorboard
// --logdir RUNS`. Every call leaves a complete file. A resumed run begins a new file, in which
// TensorBoard finds that the later steps of the old one are no longer valid.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/files/files.h"

namespace tandem {

namespace event_format {
class Event;
}

class EventFile {
 public:
  // The file is made in `folder` by the first figures. `resumed_step`: the steps done before; 0: a
  // new run.
  EventFile(std::filesystem::path folder, int64_t resumed_step);

  // Figures by their tag ("train/loss") after a step. Throws Error if the file cannot be written.
  void write(int64_t step, const std::vector<std::pair<std::string, double>>& figures);
  // A picture, as the bytes of a PNG of this size.
  void write_picture(int64_t step, const std::string& tag, int64_t width, int64_t height,
                     const std::string& png);

 private:
  using Clock = std::chrono::steady_clock;

  void begin();
  void write_event(int64_t step, event_format::Event& event);
  // Since 1970, by the system's clock when the file was begun: it may be set while a run trains.
  [[nodiscard]] double seconds() const;

  std::filesystem::path folder_;
  int64_t resumed_step_;
  double begun_at_ = 0;
  Clock::time_point begin_;
  std::optional<OutputFile> file_;
};

// What event files begin with: events.out.tfevents.<seconds since 1970>.<process>. TensorBoard
// reads them in the order of their names, so the seconds are more than those of every other file.
constexpr const char* event_file_prefix = "events.out.tfevents.";

}  // namespace tandem
