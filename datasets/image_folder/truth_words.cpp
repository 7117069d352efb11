#include "datasets/image_folder/truth_words.h"

#include <algorithm>

#include "datasets/image_folder/missing_labels.h"
#include "datasets/picture/names.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

using Truth = LabelForm::Truth;

Truth truth_of(const Survey& column) {
  if (column.distinct.empty() || !column.has_two_values()) return Truth::other;
  if (!column.is_number) return Truth::words;
  return column.has_minus_one ? Truth::minus_one_one : Truth::zero_one;
}

// The first text that is no number; else the first one.
std::string example_of(const Survey& column) {
  double ignored = 0;
  const auto word = std::find_if(column.distinct.begin(), column.distinct.end(),
                                 [&](const auto& text) { return !read_number(text, &ignored); });
  return picture::beginning_of(word == column.distinct.end() ? *column.distinct.begin() : *word);
}

void write_numbers(size_t column, const char* no, ListFile& list) {
  for (ListEntry& entry : list.entries) {
    std::string& text = entry.labels[column];
    if (!is_missing(text)) text = binary_of(text) == 1 ? "1" : no;
  }
}

}  // namespace

void settle_truths(const FormRequest& request, const std::vector<Survey>& columns, LabelForm& form,
                   ListFile& list) {
  const LabelForm* training = request.training;
  for (size_t i = 0; i < form.names.size(); ++i) {
    const size_t column = form.places.empty() ? i : form.places[i];
    const Truth own = truth_of(columns[column]);
    const Truth known = training == nullptr ? own : training->truths[i];
    form.truths.push_back(known);
    const std::string has = sdk::text("'", list.file, "': ", title_of(list, column), " has '",
                                      example_of(columns[column]), "' and the like");
    if (own == Truth::words && known == Truth::other) {
      throw sdk::invalid("list ", has, ", where the training list '", training->file,
                         "' has numbers other than 0 and 1: write numbers there");
    }
    const std::string as = training == nullptr ? "" : " as in '" + training->file + "'";
    const char* no = known == Truth::minus_one_one ? "-1" : "0";
    if (own == Truth::words || (known == Truth::words && own == Truth::minus_one_one)) {
      write_numbers(column, no, list);
      form.notes.push_back(sdk::text(has, ": ", no, " and 1 among numbers", as));
    } else if (own != known && own != Truth::other && known == Truth::minus_one_one) {
      form.notes.push_back(sdk::text(has, ", where '", training->file,
                                     "' has -1 and 1: taken as the numbers that they are"));
    }
  }
}

}  // namespace tandem::image_folder
