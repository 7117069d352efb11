// What is measured over the samples of a data set before training: means of channels and of numbers
// to learn, and the class of every sample.
#pragma once

#include <cstdint>
#include <vector>

#include "core/data/dataset.h"

namespace tandem {

// "classes", "labels" or "values", as messages say it.
[[nodiscard]] const char* task_text(int64_t task);
// Of the values of all samples; a deviation of 0 becomes 1.
[[nodiscard]] TargetScale measure_target_scale(const Dataset& dataset);

// The mean of each channel over at most `limit` evenly spaced samples, as get() gives them. Error
// if all of them are damaged.
[[nodiscard]] std::vector<double> channel_means(const Dataset& dataset, int64_t limit);

// The class of every sample. Error if the data set cannot tell it without reading pixels.
[[nodiscard]] std::vector<int64_t> class_labels(const Dataset& dataset);

}  // namespace tandem
