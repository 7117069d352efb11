#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/report/run_page.h"
#include "core/run/folder/progress.h"
#include "core/run/weights/hub.h"

namespace tandem {
namespace {

// The figures that the advice needs.
struct Course {
  std::vector<MetricRow> epochs, tests;
  const MetricRow* best = nullptr;  // evaluation
  const MetricRow* last = nullptr;
};

double in_epochs(const RunFigures& run, int64_t step) {
  return epochs_after(step, run.epochs_per_step);
}

std::string class_text(const RunFigures& run, int64_t c) {
  const auto& names = run.record.class_names;
  const auto index = size_t(c);
  return index < names.size() ? "'" + names[index] + "'" : fmt::format("class {}", c);
}

// Whether it has learnt too little, too much, or not long enough. False if it has learnt nothing,
// so that its mistakes say nothing.
bool judge_course(const RunFigures& run, const Course& course, std::vector<std::string>& lines) {
  if (course.last == nullptr) {
    const bool has_validation = run.data.splits.size() > (run.has_training ? 1U : 0U);
    if (has_validation) return true;  // and the first evaluation is to come
    lines.emplace_back(
        "there is no validation: put images into val/, or give the folder without train/ and a "
        "share is held out");
    return true;
  }
  const MetricRow& last = *course.last;
  const bool has_classes = run.record.task == TANDEM_TASK_CLASSES;
  const double chance = 1.0 / std::max<double>(1, double(run.record.class_names.size()));
  const bool is_over = last.step >= run.record.options.steps;
  const bool is_chance =
      has_classes && std::isfinite(last.top1) && last.top1 < 1.5 * chance && chance < 0.6;
  constexpr int64_t few_steps = 200;
  if (is_chance && last.step < few_steps) {
    if (!is_over) return false;
    const double more = std::max(2 * in_epochs(run, last.step), in_epochs(run, few_steps));
    lines.push_back(
        fmt::format("after {} steps the net is hardly better than chance ({:.1f} % of {} classes): "
                    "train longer (--epochs {:.0f}), or begin with trained weights (--weights)",
                    last.step, 100 * last.top1, run.record.class_names.size(), std::ceil(more)));
    return false;
  }
  if (course.tests.size() > 2 && is_chance) {
    lines.push_back(fmt::format(
        "the net is hardly better than chance ({:.1f} % of {} classes): try a learning rate ten "
        "times smaller (--lr), or one of the smaller models",
        100 * last.top1, run.record.class_names.size()));
    return false;
  }
  const double training = course.epochs.empty() ? no_figure : course.epochs.back().top1;
  if (training - last.top1 > 0.15) {
    lines.push_back(fmt::format(
        "it knows the training images better than new ones ({:.1f} % against {:.1f} %): stronger "
        "augmentation (--augment strong, --mixup 0.2), more images, or trained weights (--weights)",
        100 * training, 100 * last.top1));
  }
  const auto lowest =
      std::min_element(course.tests.begin(), course.tests.end(),
                       [](const MetricRow& a, const MetricRow& b) { return a.loss < b.loss; });
  if (lowest->loss > 0 && last.loss > 1.1 * lowest->loss && lowest->step < last.step) {
    lines.push_back(fmt::format(
        "the validation loss was lowest after {:.3g} epochs and has risen by {:.0f} % since: "
        "fewer epochs end there, --label-smoothing 0.1 makes the net less sure of itself",
        in_epochs(run, lowest->step), 100 * (last.loss / lowest->loss - 1)));
  }
  if (is_over && course.best == course.last && course.tests.size() > 2 && !(training > 0.98)) {
    const int64_t more =
        std::max<int64_t>(1, std::llround(2 * in_epochs(run, run.record.options.steps)));
    lines.push_back(fmt::format(
        "the last evaluation was the best: a longer run may be better (--epochs {})", more));
  }
  return true;
}

// What trained weights would give, of a run of pictures that began with random ones.
void judge_weights(const RunFigures& run, const Course& course, std::vector<std::string>& lines) {
  constexpr double good = 0.95;
  const bool is_good = course.last != nullptr && course.last->top1 >= good;
  if (!run.record.first_weights.empty() || !run.has_training || run.record.data.c != 3 || is_good)
    return;
  std::string repository = example_repository(run.record.options.net);
  if (repository.empty()) repository = example_repository("resnet18");
  lines.push_back(
      fmt::format("it began with random weights; trained ones usually give more accuracy in fewer "
                  "epochs: 'tandem fetch {0}', then 'tandem train --data {1} --weights {0}'",
                  repository, run.record.options.data));
}

// Of how many images the result is, and what they say.
void judge_findings(const RunFigures& run, std::vector<std::string>& lines) {
  if (!run.findings || run.findings->samples == 0 || !run.findings->figures.empty()) return;
  const Findings& found = *run.findings;
  const auto samples = double(found.samples);
  const double share = double(found.right) / samples;
  const double error = 196 * std::sqrt(share * (1 - share) / samples);  // 95 %, in points
  if (error > 3) {
    lines.push_back(
        fmt::format("with {} images the accuracy is known to +- {:.0f} points: smaller differences "
                    "between runs "
                    "say little",
                    found.samples, error));
  }
  const int64_t wrong = found.samples - found.right;
  if (run.learns_probabilities && found.sure_mistakes > 0 && found.sure_mistakes * 5 >= wrong) {
    lines.push_back(fmt::format(
        "{} of {} mistakes are made with {:.0f} % certainty or more: look at these pictures first, "
        "their labels may be wrong",
        found.sure_mistakes, wrong, 100 * sure_probability));
  }
  const std::vector<ConfusedPair> pairs = confused_pairs(found.confusion);
  if (!pairs.empty() && run.record.class_names.size() > 2 && wrong >= 10 &&
      pairs[0].count() * 4 >= wrong) {
    lines.push_back(fmt::format(
        "{:.0f} % of the mistakes are between {} and {}: more images of the two, or larger ones "
        "(--image-size), help most",
        100.0 * double(pairs[0].count()) / double(wrong), class_text(run, pairs[0].a),
        class_text(run, pairs[0].b)));
  }
  const std::vector<ClassScore> scores = found.confusion.scores();
  int64_t worst = -1;
  for (size_t c = 0; c < scores.size(); ++c) {
    if (scores[c].count < 5 || scores[c].recall() > share / 2) continue;
    if (worst < 0 || scores[c].recall() < scores[size_t(worst)].recall()) {
      worst = int64_t(c);
    }
  }
  if (worst >= 0) {
    lines.push_back(fmt::format(
        "of {} only {:.0f} % are found: --balance or --class-weights balanced if it has few "
        "images, else look at what it is taken for",
        class_text(run, worst), 100 * scores[size_t(worst)].recall()));
  }
}

void judge_speed(const RunFigures& run, std::vector<std::string>& lines) {
  const std::vector<MetricRow> steps = rows_of(run.metrics, "train");
  double waited = 0, seconds = 0;
  for (const MetricRow& row : rows_of(run.metrics, "epoch")) seconds += row.seconds;
  for (const MetricRow& row : steps) {
    if (std::isfinite(row.waited)) waited = std::max(waited, row.waited);
  }
  const std::string line = advice_on_waiting(waited / seconds, seconds);
  if (!line.empty()) lines.push_back(line);
}

}  // namespace

std::string advice_on_waiting(double share, double seconds) {
  constexpr double much = 0.25, min_seconds = 5;
  if (!(seconds > min_seconds && share > much)) return "";
  return fmt::format(
      "{:.0f} % of the time was spent waiting for data: 'tandem pack' writes them as one file of "
      "smaller images, which is read faster",
      100 * std::min(1.0, share));
}

std::vector<std::string> advice(const RunFigures& run) {
  std::vector<std::string> lines;
  Course course;
  course.epochs = rows_of(run.metrics, "epoch");
  course.tests = rows_of(run.metrics, "val");
  // The evaluation of the initial weights says nothing.
  std::erase_if(course.tests, [](const MetricRow& row) { return row.step == 0; });
  course.best = best_of(course.tests);
  if (!course.tests.empty()) course.last = &course.tests.back();
  const bool has_learned = judge_course(run, course, lines);
  judge_weights(run, course, lines);
  if (has_learned) judge_findings(run, lines);
  judge_speed(run, lines);
  return lines;
}

}  // namespace tandem
