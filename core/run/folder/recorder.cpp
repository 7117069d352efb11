#include "core/run/folder/recorder.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/text/strings.h"
#include "core/run/folder/progress.h"
#include "plugins/abi.h"

namespace tandem {
namespace {

std::string header_of(int64_t task) {
  return fmt::format("step,epoch,split,loss,{},rate,images_per_second,waited_seconds,best,seconds",
                     fmt::join(metric_columns(task), ","));
}

// The step of a row that was written to its end; none of one that a loss of power has cut off or
// emptied: each kind of row has certain cells. `columns`: of the table.
std::optional<int64_t> step_of_row(const std::string& line, size_t columns) {
  const std::vector<std::string> cells = split(line, ',');
  int64_t step = 0;
  if (cells.size() != columns || !parse_integer(cells[0], &step)) return {};
  const size_t rate = columns - 5, speed = columns - 4, best = columns - 2, seconds = columns - 1;
  std::vector<size_t> needed{1, 3, rate, speed};
  if (cells[2] == "val") needed = {1, best};
  if (cells[2] == "epoch") needed.push_back(seconds);
  const auto is_empty = [&](size_t cell) { return cells[cell].empty(); };
  const bool is_known = cells[2] == "train" || cells[2] == "epoch" || cells[2] == "val";
  if (!is_known || std::any_of(needed.begin(), needed.end(), is_empty)) return {};
  return step;
}

// The table of a new run, or that of a resumed one without the lines of later steps, to be
// continued.
OutputFile open_metrics(const std::filesystem::path& path, int64_t task, int64_t resumed_step,
                        Observer& next) {
  const std::string header = header_of(task);
  std::string text = header + "\n";
  bool is_first = true, is_table = resumed_step == 0;
  int broken = 0;
  if (resumed_step > 0 && path_status(path).exists()) {
    read_lines(path, [&](const std::string& line) {
      if (std::exchange(is_first, false)) is_table = line == header;
      if (!is_table || line == header) return;
      const std::optional<int64_t> step = step_of_row(line, split(header, ',').size());
      if (!step) ++broken;
      if (step && *step <= resumed_step) text += line + "\n";
    });
  }
  if (broken > 0) {
    next.on_message(fmt::format("note: {} of the rows of '{}' were not whole and are left out",
                                broken, path.string()));
  }
  if (!is_table) {
    next.on_message(fmt::format(
        "note: '{}' is missing or is no table of metrics: a new one begins after step {}",
        path.string(), resumed_step));
  }
  write_text_file(path, text);
  return OutputFile(path, {}, OutputMode::append);
}

}  // namespace

Recorder::Recorder(const RunFolder& folder, Observer& next, int64_t task, int64_t resumed_step,
                   int64_t epoch)
    : next_(next),
      metrics_(open_metrics(folder.metrics_file(), task, resumed_step, next)),
      log_(folder.log_file(), {}, OutputMode::append),
      events_(folder.path(), resumed_step),
      epoch_(epoch) {}

void Recorder::line(OutputFile& file, const std::string& text) {
  const std::string whole = text + "\n";
  file.write(whole.data(), whole.size());
  if (file.is_in_place() || std::exchange(has_said_lost_, true)) return;
  next_.on_message(
      "note: metrics.csv or log.txt in the run folder was replaced or removed while training: its "
      "further lines are lost");
}

void Recorder::log(const std::string& text) {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  line(log_, fmt::format("{:%Y-%m-%d %H:%M:%S} {}", now, text));
}

void Recorder::on_message(const std::string& text) {
  log(text);
  next_.on_message(text);
}

void Recorder::on_step(const StepReport& r) {
  const bool ends_epoch = r.epoch != epoch_;
  epoch_ = r.epoch;
  if (r.is_shown || ends_epoch) {
    line(metrics_, fmt::format("{},{},train,{:.6g},,,{:.6g},{:.1f},{:.3f},,", r.step, r.epoch,
                               r.loss, r.rate, r.images_per_second, r.waited_seconds));
    log(fmt::format("step {}/{}, epoch {}: training loss {:.6g}, learning rate {:.6g}", r.step,
                    r.steps, r.epoch, r.loss, r.rate));
    events_.write(r.step, {{"train/loss", r.loss},
                           {"train/learning_rate", r.rate},
                           {"train/images_per_second", r.images_per_second}});
  }
  next_.on_step(r);
}

void Recorder::on_evaluation(const Evaluation& e) {
  std::vector<std::pair<std::string, double>> figures;
  if (e.has_loss) figures.emplace_back("val/loss", e.loss);
  if (e.has_accuracy) figures.emplace_back("val/top1", e.top1);
  if (has_top5(e)) figures.emplace_back("val/top5", e.top5);
  std::array<std::string, 2> cells{e.has_accuracy ? fmt::format("{:.6f}", e.top1) : "",
                                   has_top5(e) ? fmt::format("{:.6f}", e.top5) : ""};
  for (size_t i = 0; i < std::min(cells.size(), e.metrics.size()); ++i) {
    const Metric& metric = e.metrics[i];
    if (!std::isfinite(metric.value)) continue;
    cells[i] = fmt::format("{:.6g}", metric.value);
    figures.emplace_back("val/" + metric.name, metric.value);
  }
  const std::string accuracy = fmt::format("{}", fmt::join(cells, ","));
  const std::string loss = e.has_loss ? fmt::format("{:.6g}", e.loss) : "";
  line(metrics_,
       fmt::format("{},{},val,{},{},,,,{},", e.step, e.epoch, loss, accuracy, e.best ? 1 : 0));
  std::vector<std::string> results;
  if (e.has_loss) results.push_back("loss " + loss);
  for (const std::string& text : metric_texts(e)) results.push_back(text);
  if (results.empty()) results.push_back(std::string("gives ") + no_result);
  log(fmt::format("step {}, epoch {}: validation {}{}", e.step, e.epoch, fmt::join(results, ", "),
                  e.best ? ", best" : ""));
  events_.write(e.step, figures);
  next_.on_evaluation(e);
}

void Recorder::on_epoch(const EpochReport& r) {
  const std::string top1 = r.has_accuracy ? fmt::format("{:.6f}", r.top1) : "";
  line(metrics_,
       fmt::format("{},{},epoch,{:.6g},{},,{:.6g},{:.1f},,{},{:.3f}", r.step, r.epoch, r.loss, top1,
                   r.rate, r.images_per_second,
                   r.has_validation ? fmt::format("{:d}", r.validation.best) : "", r.seconds));
  log(epoch_text(r));
  std::vector<std::pair<std::string, double>> figures{{"epoch/train_loss", r.loss},
                                                      {"epoch/seconds", r.seconds}};
  if (r.has_accuracy) figures.emplace_back("epoch/train_top1", r.top1);
  events_.write(r.step, figures);
  next_.on_epoch(r);
}

void Recorder::on_picture(const PictureReport& p) {
  events_.write_picture(p.step, "val/" + p.name, p.width, p.height, p.png);
  next_.on_picture(p);
}

std::vector<std::string> metric_texts(const Evaluation& e) {
  std::vector<std::string> texts;
  if (e.has_accuracy) texts.push_back(fmt::format("top-1 {:.2f} %", 100 * e.top1));
  for (const Metric& metric : e.metrics) {
    texts.push_back(metric.name + (!std::isfinite(metric.value) ? " -"
                                   : metric.is_share ? fmt::format(" {:.2f} %", 100 * metric.value)
                                                     : fmt::format(" {:.4g}", metric.value)));
  }
  return texts;
}

std::array<std::string, 2> metric_columns(int64_t task) {
  if (task == TANDEM_TASK_LABELS) return {"mAP", "F1"};
  if (task == TANDEM_TASK_VALUES) return {"MAE", "R2"};
  return {"top1", "top5"};
}

std::string epoch_text(const EpochReport& r) {
  const double done = r.is_partial ? r.epochs : static_cast<double>(r.epoch);
  std::string text = fmt::format("epoch {}/{}: training loss {:.4f}", epochs_text(done),
                                 epochs_text(r.epochs), r.loss);
  if (r.has_accuracy) text += fmt::format(" top-1 {:.2f} %", 100 * r.top1);
  if (r.has_validation) {
    const Evaluation& e = r.validation;
    const std::vector<std::string> metrics = metric_texts(e);
    if (e.has_loss || !metrics.empty()) text += ", validation";
    if (e.has_loss) text += fmt::format(" loss {:.4f}", e.loss);
    for (const std::string& metric : metrics) text += " " + metric;
  }
  text += fmt::format(", lr {:.3g}, {}, {:.0f} images/s", r.rate, human_seconds(r.seconds),
                      r.images_per_second);
  constexpr double worth_telling = 0.01;
  if (r.waiting_share >= worth_telling) {
    text += fmt::format(", {:.0f} % waiting for data", 100 * r.waiting_share);
  }
  if (r.has_validation && is_worth_a_mark(r.validation)) text += " (best so far)";
  return text;
}

}  // namespace tandem
