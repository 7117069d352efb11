#include "datasets/image_folder/value_steps.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "datasets/image_folder/missing_labels.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {

void refuse_lost_steps(const LabelForm& form, const ListFile& list) {
  constexpr double few_steps = 50;
  for (size_t column = 0; column < std::min(form.names.size(), list.columns.size()); ++column) {
    double count = 0, mean = 0, squares = 0, least = std::numeric_limits<double>::infinity(),
           most = -least;
    for (const ListEntry& entry : list.entries) {
      double value = 0;
      if (!read_number(entry.labels[column], &value)) return;  // refused where it is read
      const double difference = value - mean;
      mean += difference / ++count;
      squares += difference * (value - mean);
      least = std::min(least, value);
      most = std::max(most, value);
    }
    const double deviation = std::sqrt(squares / count);
    const auto largest = static_cast<float>(std::max(std::abs(least), std::abs(most)));
    const double step = std::nextafter(largest, std::numeric_limits<float>::infinity()) - largest;
    if (!std::isfinite(largest) || deviation == 0 || few_steps * step <= deviation) continue;
    char whole[400];  // the digits of any double
    const double begin = std::floor(least);
    const bool is_whole = begin != 0;
    (void)std::snprintf(whole, sizeof whole, is_whole ? "%.0f" : "%.9g", is_whole ? begin : least);
    throw sdk::invalid("list '", list.file, "': ", title_of(list, column),
                       " has values with a standard deviation of ", deviation, ", from ", whole,
                       " on, but nets are trained in float32, which has steps of ", step,
                       " there: subtract ", whole,
                       " from all of them (--task labels takes each as a class)");
  }
}

}  // namespace tandem::image_folder
