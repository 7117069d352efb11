#include "core/report/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/files/files.h"
#include "core/model/file/learning_rate.h"
#include "core/report/drawn_findings.h"
#include "core/report/page/png.h"

namespace tandem {
namespace {

constexpr int64_t described_samples = 100;
constexpr double max_share_of_time = 0.02, min_seconds_for_maps = 20;
constexpr int64_t picture_side = 96;

// The rates of a run at its first and last step, at the ends of the warm-up, and between.
std::vector<std::pair<double, double>> planned_rates(const SolverDefinition& solver, int64_t steps,
                                                     double epochs_per_step) {
  constexpr int64_t points = 200;
  std::set<int64_t> at{solver.warm_up_steps};
  for (int64_t i = 0; i <= points; ++i) at.insert((steps - 1) * i / points);
  std::vector<std::pair<double, double>> rates;
  for (const int64_t step : at) {
    if (step < 0 || step >= steps) continue;
    rates.emplace_back(double(step + 1) * epochs_per_step, learning_rate(solver, step));
  }
  return rates;
}

// "" where all layers learn from the first step on.
std::string phases_text(const TrainSetup& setup) {
  const RunRecord& record = setup.record;
  const int64_t step = unfreezing_step(record, setup.solver.micro_batches_per_step);
  if (step == 0) return "";
  return fmt::format("Until step {} (epoch {:.3g}) only {} learn{}, then all layers.", step,
                     *record.options.unfreeze_after, fmt::join(record.head, ", "),
                     record.head.size() == 1 ? "s" : "");
}

}  // namespace

RunReport::RunReport(Registry& registry, const TrainSetup& setup, const RunFolder& folder,
                     Observer& observer, std::string judged_split)
    : registry_(registry),
      setup_(setup),
      folder_(folder),
      observer_(observer),
      judged_split_(std::move(judged_split)) {}

double RunReport::seconds() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

std::string RunReport::page_before() const {
  const std::filesystem::path file = folder_.path() / report_file;
  return path_status(file).is_file() ? read_text_file(file) : "";
}

bool RunReport::has_page_with_findings() const {
  try {
    return has_findings(page_before());
  } catch (const Error&) {
    return false;
  }
}

void RunReport::judge(Findings findings, const std::string& judged,
                      const std::vector<BadSample>& bad, const std::string& note) {
  if (findings.samples > 0) {
    findings_ = std::move(findings);
    judged_ = judged;
    judged_note_ = note;
  }
  validation_bad_ = bad;
}

bool RunReport::write(const GetWeights& weights, const std::vector<BadSample>& training_bad,
                      ReportMoment moment) {
  const double begin = seconds();
  const bool has_time = spent_ <= max_share_of_time * begin;
  if (moment == ReportMoment::during && is_written_ && !has_time) return false;
  bool is_written = false;
  try {
    if (!data_) {
      std::vector<KnownSplit> splits;
      if (setup_.training_data) splits.push_back({"train", setup_.training_data.get()});
      if (setup_.validation_data) splits.push_back({judged_split_, setup_.validation_data.get()});
      data_ = outline(splits, described_samples);
    }
    RunFigures run = figures(training_bad);
    const bool with_maps =
        moment == ReportMoment::end || moment == ReportMoment::other_data ||
        (moment == ReportMoment::during && has_time && begin > min_seconds_for_maps);
    add_pictures(run, weights, with_maps);
    // Sheets of samples while it trains would make the event file large.
    if (moment != ReportMoment::other_data) {
      drawn_ = drawn_findings(run, moment != ReportMoment::during);
    }
    const std::string before = page_before();
    write_text_file(folder_.path() / report_file, moment == ReportMoment::other_data
                                                      ? page_with_test(std::move(run), before)
                                                      : run_page(run, before));
    is_written_ = is_written = true;
  } catch (const std::exception& failure) {
    if (!std::exchange(has_failed_, true)) {
      observer_.on_message(fmt::format("{} was not written: {}", report_file, failure.what()));
    }
  }
  spent_ += seconds() - begin;
  return is_written;
}

std::vector<PictureReport> RunReport::pictures(int64_t step) const {
  std::vector<PictureReport> pictures;
  for (const auto& [name, picture] : drawn_) {
    pictures.push_back({step, name, picture.width, picture.height,
                        to_png(picture.width, picture.height, picture.pixels)});
  }
  return pictures;
}

RunFigures RunReport::figures(const std::vector<BadSample>& training_bad) const {
  RunFigures run;
  run.name = folder_.path().filename().empty() ? folder_.path().parent_path().filename().string()
                                               : folder_.path().filename().string();
  run.record = setup_.record;
  run.epochs_per_step = epochs_per_step(setup_.record, setup_.solver);
  if (!is_imported(setup_.record)) {
    run.metrics = read_metrics(folder_.metrics_file());
    run.planned_rates =
        planned_rates(setup_.solver, setup_.record.options.steps, run.epochs_per_step);
  }
  run.phases = phases_text(setup_);
  run.findings = findings_;
  run.learns_probabilities = learns_probabilities(setup_.net);
  run.judged = judged_;
  run.judged_note = judged_note_;
  run.data = *data_;
  run.has_training = setup_.training_data != nullptr;
  if (run.has_training) run.data.splits[0].bad = training_bad;
  if (setup_.validation_data) run.data.splits.back().bad = validation_bad_;
  return run;
}

// Reads the samples that the findings name once more, as the net reads them.
void RunReport::add_pictures(RunFigures& run, const GetWeights& weights, bool with_maps) {
  const Dataset* data = setup_.validation_data.get();
  if (!run.findings || data == nullptr) return;
  const Shape shape = data->shape();
  if (shape.c != 1 && shape.c != 3) return;
  const Display display(setup_.record.data_parameters, shape);
  const std::unique_ptr<Dataset> shown = data->to_be_shown(registry_);
  std::vector<std::vector<float>> samples;
  for (const bool are_mistakes : {true, false}) {
    auto& pictures = are_mistakes ? run.mistakes : run.doubts;
    for (const Judgement& one : are_mistakes ? run.findings->mistakes : run.findings->doubts) {
      std::vector<float> pixels(size_t(element_count(shape)));
      float label = 0;
      std::string reason;
      if (data->get(one.index, 0, pixels.data(), &label, &reason) != SampleStatus::good) continue;
      std::vector<float> drawn = pixels;
      if (shown != nullptr) (void)shown->get(one.index, 0, drawn.data(), &label, &reason);
      pictures.push_back({one,
                          data->sample_name(one.index),
                          shrunk(display.picture(drawn.data()), picture_side),
                          {}});
      samples.push_back(std::move(pixels));
    }
  }
  if (with_maps) add_maps(run, samples, weights);
}

// `samples`: of the mistakes, then of the doubts.
void RunReport::add_maps(RunFigures& run, const std::vector<std::vector<float>>& samples,
                         const GetWeights& weights) {
  try {
    ClassMapper mapper(registry_, setup_.net, setup_.record.data, weights(), false);
    size_t at = 0;
    for (auto* pictures : {&run.mistakes, &run.doubts}) {
      for (JudgedPicture& one : *pictures) {
        one.map = mapper.map(samples[at++], one.judgement.predicted);
      }
    }
    run.pictures_note = fmt::format(
        "Bright parts speak for the predicted class ({}); move the pointer over a picture to see "
        "it "
        "without them.",
        mapper.method());
  } catch (const std::exception& failure) {
    run.pictures_note = fmt::format("Without maps of what the net looks at: {}.", failure.what());
  }
}

}  // namespace tandem
