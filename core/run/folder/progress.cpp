#include "core/run/folder/progress.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/base/text/strings.h"

namespace tandem {

std::string epochs_text(double epochs) {
  return epochs < 1000 ? fmt::format("{:.4g}", epochs) : fmt::format("{:.0f}", epochs);
}

double epochs_after(int64_t step, double per_step) {
  constexpr double rounding = 1e-9;
  const double epochs = static_cast<double>(step) * per_step;
  const double whole = std::floor(epochs + rounding);
  return whole > 0 && epochs - per_step < whole - rounding ? whole : epochs;
}

std::vector<double*> TrainingProgress::kept(EpochSums& sums) {
  return {&sums.loss, &sums.correct, &sums.steps, &sums.samples};
}

void TrainingProgress::begin(int64_t first) {
  begin_ = Clock::now();
  first_ = first;
}

void TrainingProgress::begin_steps() {
  counted_to_ = seconds();
  recent_.emplace_back(counted_to_ - paused_, first_);
}

double TrainingProgress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

double TrainingProgress::epochs() const {
  return epochs_after(extents_.steps, static_cast<double>(extents_.images_of_step) /
                                          static_cast<double>(extents_.training_samples));
}

int64_t TrainingProgress::epochs_of(int64_t done) const {
  return done * extents_.images_of_step / extents_.training_samples;
}

bool TrainingProgress::ends_epoch(int64_t done) const {
  return epochs_of(done) != epochs_of(done - 1);
}

void TrainingProgress::add_accuracy(int64_t samples, double share) {
  epoch_.correct += static_cast<double>(samples) * share;
  epoch_.samples += static_cast<double>(samples);
}

double TrainingProgress::shown_loss(double loss) {
  losses_.push_back(loss);
  if (static_cast<int64_t>(losses_.size()) > extents_.average_loss) losses_.pop_front();
  double sum = 0;
  for (const double one : losses_) sum += one;
  return sum / static_cast<double>(losses_.size());
}

StepReport TrainingProgress::add_step(int64_t done, double loss, double rate) {
  constexpr size_t recent_steps = 20;
  epoch_.loss += loss;
  epoch_.steps += 1;
  epoch_.timed_steps += 1;
  const double now = seconds() - paused_;
  recent_.emplace_back(now, done);
  while (recent_.size() > recent_steps) recent_.pop_front();
  const double span = now - recent_.front().first;
  const auto steps = static_cast<double>(done - recent_.front().second);
  const auto images = static_cast<double>(extents_.images_of_step);
  StepReport r;
  r.step = done;
  r.steps = extents_.steps;
  r.epoch = epochs_of(done);
  r.epochs = epochs();
  r.loss = shown_loss(loss);
  r.rate = rate;
  r.images_per_second = span > 0 ? steps * images / span : 0;
  r.seconds_left = steps > 0 ? static_cast<double>(r.steps - r.step) * span / steps : -1;
  if (now > 0) images_per_second_ = static_cast<double>(done - first_) * images / now;
  return r;
}

void TrainingProgress::count_time(double waited) {
  const double now = seconds();
  epoch_.seconds += now - counted_to_;
  epoch_.waited += waited - waited_before_;
  counted_to_ = now;
  waited_before_ = waited;
}

EpochReport TrainingProgress::end_epoch(int64_t done, double rate) {
  EpochReport r;
  r.step = done;
  r.epoch = epochs_of(done);
  r.epochs = epochs();
  r.is_partial = !ends_epoch(done);
  r.loss = epoch_.loss / std::max(1.0, epoch_.steps);
  r.top1 = epoch_.correct / std::max(1.0, epoch_.samples);
  r.rate = rate;
  r.seconds = epoch_.seconds;
  const double training = epoch_.seconds - epoch_.tested;
  const auto images = static_cast<double>(extents_.images_of_step);
  r.images_per_second = training > 0 ? epoch_.timed_steps * images / training : 0;
  r.waiting_share = training > 0 ? epoch_.waited / training : 0;
  // A run that ends within an epoch may be continued.
  if (ends_epoch(done)) epoch_ = {};
  return r;
}

std::string TrainingProgress::sums() const {
  EpochSums epoch = epoch_;
  std::vector<std::string> texts;
  for (const double* value : kept(epoch)) texts.push_back(fmt::format("{:.17g}", *value));
  return fmt::format("{}", fmt::join(texts, ","));
}

void TrainingProgress::read_sums(const std::string& text) {
  const std::vector<std::string> parts = split(text, ',');
  const std::vector<double*> values = kept(epoch_);
  for (size_t i = 0; i < std::min(parts.size(), values.size()); ++i) {
    (void)parse_number(parts[i], values[i]);
  }
}

}  // namespace tandem
