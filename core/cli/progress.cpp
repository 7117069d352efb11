#include "core/cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "core/cli/print.h"
#include "core/ranks/ranks.h"
#include "core/run/folder/progress.h"
#include "core/run/folder/recorder.h"

namespace tandem::cli {
namespace {

constexpr auto redraw = std::chrono::milliseconds(100);
// Between two lines without a terminal, where steps take long.
constexpr auto max_silence = std::chrono::seconds(10);

}  // namespace

int terminal_width(int otherwise) {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : otherwise;
}

WorkWatch watch_work() {
  const auto tell = [](const std::string& line) { say(stderr, "{}\n", line); };
  return tell_work(tell, stop_on_signals("\ntandem: stopping after this part, with what there is "
                                         "(Ctrl-\\ ends at once)\n"));
}

std::string clock_text(double seconds) {
  const auto whole = int64_t(std::llround(std::max(0.0, seconds)));
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string evaluation_text(const Evaluation& e) {
  std::vector<std::string> parts;
  if (e.has_loss) parts.push_back(fmt::format("loss {:.4f}", e.loss));
  for (const std::string& metric : metric_texts(e)) parts.push_back(metric);
  if (has_top5(e)) parts.push_back(fmt::format("top-5 {:.2f} %", 100 * e.top5));
  if (parts.empty()) parts.emplace_back(no_result);
  if (e.skipped > 0) parts.push_back(fmt::format("{} left out", e.skipped));
  return fmt::format("{} images: {}", e.samples, fmt::join(parts, ", "));
}

// What mpirun starts writes to a terminal of its own, from which mpirun copies to its output, which
// may be a file.
Progress::Progress()
    : terminal_(isatty(STDOUT_FILENO) != 0 && std::getenv("TANDEM_PLAIN") == nullptr &&
                launched_ranks() == 1) {}

void Progress::clear() {
  if (drawn_) say("\r\033[K");
  drawn_ = false;
}

void Progress::on_message(const std::string& line) {
  clear();
  say("{}\n", printable(line, "\n"));
  std::fflush(stdout);
}

void Progress::on_step(const StepReport& r) {
  const std::string left = r.seconds_left >= 0 ? clock_text(r.seconds_left) : "-:--";
  const std::string rate = fmt::format(" lr {:.3g}", r.rate),
                    speed = fmt::format(" {:.0f} images/s", r.images_per_second),
                    time = fmt::format(" {} left", left);
  const std::string step =
      fmt::format("step {}/{} epoch {:.2f}/{} loss {:.4f}", r.step, r.steps,
                  r.epochs * double(r.step) / double(r.steps), epochs_text(r.epochs), r.loss);
  std::string numbers = step + accuracy_ + rate + speed + time;
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_) {
    const bool is_first = last_draw_ == std::chrono::steady_clock::time_point{};
    const bool is_overdue = now - last_draw_ >= max_silence;
    if (!is_first && !is_overdue && !r.is_shown) return;
    last_draw_ = now;
    say("{}\n", numbers);
    std::fflush(stdout);
    return;
  }
  if (now - last_draw_ < redraw && r.step != r.steps) return;
  last_draw_ = now;
  const int width = terminal_width(80);
  // A narrow terminal shows what changes least last: the time left stays.
  for (const std::string& shorter :
       {step + accuracy_ + speed + time, step + accuracy_ + time, step + time}) {
    if (int(numbers.size()) >= width) numbers = shorter;
  }
  const int room = std::clamp(width - int(numbers.size()) - 4, 0, 30);
  const auto full = int(room * r.step / std::max<int64_t>(1, r.steps));
  std::string bar;
  if (room > 4)
    bar = "[" + std::string(size_t(full), '#') + std::string(size_t(room - full), '.') + "] ";
  say("\r\033[K{}", (bar + numbers).substr(0, size_t(width - 1)));
  std::fflush(stdout);
  drawn_ = true;
}

void Progress::on_evaluation(const Evaluation& e) {
  clear();
  const std::vector<std::string> metrics = metric_texts(e);
  if (!metrics.empty()) {
    accuracy_ =
        fmt::format(" val {} (step {})",
                    e.has_accuracy ? fmt::format("{:.1f} %", 100 * e.top1) : metrics[0], e.step);
  }
  if (e.ends_epoch) return;
  say("validation after step {}: {}{}\n", e.step, evaluation_text(e),
      is_worth_a_mark(e) ? " (best so far)" : "");
  std::fflush(stdout);
}

void Progress::on_epoch(const EpochReport& report) {
  clear();
  say("{}\n", epoch_text(report));
  std::fflush(stdout);
}

void Progress::finish() {
  if (drawn_) say("\n");
  drawn_ = false;
  std::fflush(stdout);
}

}  // namespace tandem::cli
