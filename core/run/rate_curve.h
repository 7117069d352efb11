// The curve of `tandem train --find-lr` as files: CSV and SVG. Its figures are those of the curve;
// nothing is measured here.
#pragma once

#include <string>
#include <vector>

#include "include/tandem/train.h"

namespace tandem {

// Adds a step's point; the smoothed loss is a mean of those before with weights that decay.
void add_point(RateCurve& curve, double rate, double loss);
// Whether the smoothed loss has risen far above the first ones or the lowest one.
[[nodiscard]] bool rises_far(const RateCurve& curve);
// The means of several curves at the same rates, as far as all of them go.
[[nodiscard]] RateCurve mean_of(const std::vector<RateCurve>& curves);
// Sets the lowest point and the suggestion. Error for a curve of too few points, and for one that
// falls by no more than its noise.
void suggest_rate(RateCurve& curve);

// "rate,loss,smoothed" and a line for each point.
[[nodiscard]] std::string to_csv(const RateCurve& curve);
// Loss against the logarithm of the rate, with a line at the suggestion.
[[nodiscard]] std::string to_svg(const RateCurve& curve);

}  // namespace tandem
