#include "datasets/image_folder/value_steps.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "datasets/image_folder/missing_labels.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

// What rounding to float32 does to a column.
struct Steps {
  double deviation = 0, error = 0;  // of the values; of their floats from them
  double least = std::numeric_limits<double>::infinity(), most = -least;
  bool are_numbers = true;

  // A column without any deviation is found where all data sets are looked at.
  [[nodiscard]] bool are_lost() const {
    constexpr double most_error = 0.005;  // some fifty steps of float32 in the deviation
    return are_numbers && error > most_error * deviation;
  }
};

Steps steps_of(const ListFile& list, size_t column) {
  Steps result;
  double count = 0, mean = 0, squares = 0, errors = 0;
  for (const ListEntry& entry : list.entries) {
    double value = 0;
    result.are_numbers = result.are_numbers && read_number(entry.labels[column], &value);
    const double error = value - static_cast<double>(static_cast<float>(value));
    result.are_numbers = result.are_numbers && std::isfinite(error);
    if (!result.are_numbers) return result;  // refused where it is read
    const double difference = value - mean;
    mean += difference / ++count;
    squares += difference * (value - mean);
    errors += error * error;
    result.least = std::min(result.least, value);
    result.most = std::max(result.most, value);
  }
  result.deviation = std::sqrt(squares / count);
  result.error = result.least == result.most ? 0 : std::sqrt(errors / count);
  return result;
}

// What is lost, and which number is to be subtracted.
std::string text_of(const Steps& steps, const std::string& title) {
  const auto largest = static_cast<float>(std::max(std::abs(steps.least), std::abs(steps.most)));
  const double step = std::nextafter(largest, std::numeric_limits<float>::infinity()) - largest;
  char whole[400];  // the digits of any double
  const double begin = std::floor(steps.least);
  const bool is_whole = begin != 0;
  (void)std::snprintf(whole, sizeof whole, is_whole ? "%.0f" : "%.9g",
                      is_whole ? begin : steps.least);
  return sdk::text(title, " has values with a standard deviation of ", steps.deviation, ", from ",
                   whole, " on, but nets are trained in float32, which has steps of ", step,
                   " there: subtract ", whole, " from all of them");
}

}  // namespace

void note_lost_steps(LabelForm& form, const ListFile& list) {
  const size_t count = std::min(form.names.size(), list.columns.size());
  std::vector<std::string> lost;
  for (size_t column = 0; column < count; ++column) {
    const Steps steps = steps_of(list, column);
    if (steps.are_lost()) lost.push_back(text_of(steps, title_of(list, column)));
  }
  if (!lost.empty() && lost.size() == count) {
    throw sdk::invalid("list '", list.file, "': ", lost[0],
                       " (--task labels takes each as a class)");
  }
  for (const std::string& text : lost) {
    form.notes.push_back(sdk::text("'", list.file, "': ", text,
                                   "; as they are, next to nothing of this column is learned"));
  }
}

}  // namespace tandem::image_folder
