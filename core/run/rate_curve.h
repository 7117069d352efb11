// The figures of `tandem train --find-lr`: which rates are worth a trial, which trial is the best,
// and all of them as CSV and SVG. Nothing is trained here; find_rate.cpp does.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "include/tandem/train.h"

namespace tandem {

// Adds a step's point; the smoothed loss is a mean of those before with weights that decay.
void add_point(RateCurve& curve, double rate, double loss);
// Whether the smoothed loss has risen far above the first ones or the lowest one.
[[nodiscard]] bool rises_far(const RateCurve& curve);

// The rates of the first trials, the highest first. Error for a curve of too few points.
[[nodiscard]] std::vector<double> trial_rates(const RateCurve& curve);
constexpr size_t max_rates = 8;  // of them and those beyond
// The rate that is to be tried as well, as the best trial is at an end of those tried; 0: none.
[[nodiscard]] double rate_beyond(const std::vector<RateCurve::Trial>& trials);
// At most `count` trials of `trials`, the best first: those that learn; of them the highest score,
// and of scores that differ from it by no more than their standard error the lowest loss, as a high
// rate may be about to diverge; then the lowest rate.
[[nodiscard]] std::vector<RateCurve::Trial> best_of(std::vector<RateCurve::Trial> trials,
                                                    size_t count);

// The mean of the last third of the losses.
[[nodiscard]] double last_loss(const RateCurve& trial);
// Whether that is below the curve's first losses by more than these vary.
[[nodiscard]] bool learns(const RateCurve& curve, const RateCurve& trial);
// Whether an evaluation shows more than a net that gives every image the same scores would: more
// images right than those of the most frequent class, beyond chance, or a loss below the entropy of
// the classes. True where that cannot be told, as for numbers.
[[nodiscard]] bool beats_constant_scores(const Evaluation& evaluation, int64_t classes);

// "rate,loss,smoothed,trial_steps,trial_score" and a line for each point, without the last two, and
// for each trial, without a smoothed loss.
[[nodiscard]] std::string to_csv(const RateCurve& curve);
// Loss against the logarithm of the rate: the points as lines, the trials as circles, and a line at
// the suggestion.
[[nodiscard]] std::string to_svg(const RateCurve& curve);

}  // namespace tandem
