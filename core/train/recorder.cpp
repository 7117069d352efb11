#include "core/train/recorder.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/strings.h"

namespace tandem {
namespace {

constexpr const char* header =
    "step,epoch,split,loss,top1,top5,rate,images_per_second,waited_seconds,best";

void drop_later_lines(const std::filesystem::path& path, int64_t step) {
  std::ifstream stream(path);
  std::string text, line;
  while (std::getline(stream, line)) {
    int64_t value = 0;
    const bool is_row = parse_integer(line.substr(0, line.find(',')), &value);
    if (!is_row || value <= step) text += line + "\n";
  }
  write_text_file(path, text);
}

}  // namespace

Recorder::Recorder(const RunFolder& folder, Observer& next, int64_t display, int64_t resumed_step)
    : next_(next), display_(display > 0 ? display : 1) {
  std::error_code code;
  const bool exists = std::filesystem::exists(folder.metrics_file(), code);
  const bool is_file = std::filesystem::is_regular_file(folder.metrics_file(), code);
  if (is_file && resumed_step > 0) drop_later_lines(folder.metrics_file(), resumed_step);
  const auto mode = resumed_step > 0 ? std::ios::app : std::ios::trunc;
  metrics_.open(folder.metrics_file(), std::ios::out | mode);
  log_.open(folder.log_file(), std::ios::out | std::ios::app);
  if (!metrics_ || !log_) throw error("run folder '{}' cannot be written", folder.path().string());
  if (resumed_step == 0 || !exists) line(metrics_, header);
}

void Recorder::line(std::ofstream& stream, const std::string& text) {
  stream << text << '\n' << std::flush;
  if (!stream) throw error("the run folder cannot be written any more (disk full?)");
}

void Recorder::on_message(const std::string& text) {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  line(log_, fmt::format("{:%Y-%m-%d %H:%M:%S} {}", now, text));
  next_.on_message(text);
}

void Recorder::on_step(const StepReport& r) {
  if (r.step % display_ == 0 || r.step == r.steps) {
    line(metrics_, fmt::format("{},{},train,{:.6g},,,{:.6g},{:.1f},{:.3f},", r.step, r.epoch,
                               r.loss, r.rate, r.images_per_second, r.waited_seconds));
  }
  next_.on_step(r);
}

void Recorder::on_evaluation(const Evaluation& e) {
  const std::string accuracy = e.has_accuracy ? fmt::format("{:.6f},{:.6f}", e.top1, e.top5) : ",";
  line(metrics_,
       fmt::format("{},{},val,{:.6g},{},,,,{}", e.step, e.epoch, e.loss, accuracy, e.best ? 1 : 0));
  next_.on_evaluation(e);
}

}  // namespace tandem
