#include "datasets/image_folder/class_texts.h"

#include <algorithm>
#include <set>

#include "datasets/image_folder/label_cells.h"
#include "datasets/image_folder/missing_labels.h"
#include "datasets/picture/names.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

using picture::beginning_of;
using Texts = std::set<std::string>;

// "16 0" and "3,50", which may be the numbers of several labels, too.
bool are_digits_apart(const std::string& text) {
  return text.find_first_not_of("0123456789, ") == std::string::npos &&
         text.find_first_of(", ") != std::string::npos;
}

bool is_nested(const std::string& text) {
  return read_cell(text).form == Cell::Form::nested;
}

constexpr const char* as_names = "--task labels takes each as the name of a class";

sdk::Refusal refusal_of_numbers(const ListFile& list, const std::string& text, bool are_apart) {
  return sdk::invalid(
      "list '", list.file, "': ", title_of(list, 0), " has '", beginning_of(text),
      "' and the like, as numbers to predict: write them as 1234.5; ",
      are_apart ? "--task multilabel takes them as several labels of an image, " : "", as_names);
}

const ListEntry& first_word(const ListFile& list) {
  return *std::find_if(list.entries.begin(), list.entries.end(), [](const ListEntry& entry) {
    double ignored = 0;
    return !is_missing(entry.labels[0]) && !read_number(entry.labels[0], &ignored);
  });
}

void refuse_word(const ListFile& list) {
  const ListEntry& odd = first_word(list);
  throw sdk::invalid(list.file, ":", odd.line, ": ", title_of(list, 0), " has '",
                     beginning_of(odd.labels[0]),
                     "' among numbers to predict: write a number or nothing; ", as_names);
}

void refuse_nested(const ListFile& list) {
  for (const ListEntry& entry : list.entries) {
    if (!is_nested(entry.labels[0])) continue;
    throw sdk::invalid(list.file, ":", entry.line, ": ", title_of(list, 0), " has '",
                       beginning_of(entry.labels[0]),
                       "', which is more than a list of names: write the names of an image's "
                       "labels with '|' between them; ",
                       as_names);
  }
}

}  // namespace

std::string check_class_texts(const ListFile& list, const Survey& survey, bool is_called_class) {
  const Texts& texts = survey.distinct;
  const auto count = static_cast<int64_t>(list.entries.size());
  const auto all = [&](bool (*is)(const std::string&)) {
    return !texts.empty() && std::all_of(texts.begin(), texts.end(), is);
  };
  refuse_nested(list);
  if (all([](const std::string& text) { return is_written_number(text); })) {
    const auto apart = std::find_if(texts.begin(), texts.end(), are_digits_apart);
    const bool any = apart != texts.end();
    throw refusal_of_numbers(list, any ? *apart : *texts.begin(), any);
  }
  constexpr int64_t several = 8;
  const bool are_numbers = survey.numbers > several && 2 * survey.numbers > count;
  const auto number_texts = std::count_if(texts.begin(), texts.end(), is_written_number);
  if (2 * survey.fractions > count || (are_numbers && !is_called_class && number_texts > several)) {
    refuse_word(list);
  }
  const std::string title = title_of(list, 0);
  if (2 * survey.numbers > count) {
    return sdk::text(title, " has numbers and '", beginning_of(first_word(list).labels[0]),
                     "': each is taken as the name of a class (to predict numbers, write a number "
                     "or nothing there)");
  }
  if (all(is_quantity)) {
    const bool has_fraction = std::any_of(texts.begin(), texts.end(), [](const std::string& text) {
      return text.find_first_of(".,") != std::string::npos;
    });
    if (has_fraction && !is_called_class) throw refusal_of_numbers(list, *texts.begin(), false);
    return sdk::text(title, " has '", beginning_of(*texts.begin()),
                     "' and the like, which are taken as the names of classes (to predict "
                     "numbers, write them as 1234.5)");
  }
  constexpr size_t few = 8;
  if (texts.size() <= few || 2 * texts.size() <= list.entries.size()) return "";
  return sdk::text(title, " has ", texts.size(), " different texts for ", count,
                   " images: each is taken as a class of its own");
}

}  // namespace tandem::image_folder
