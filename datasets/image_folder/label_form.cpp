#include "datasets/image_folder/label_form.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "datasets/image_folder/label_cells.h"
#include "datasets/image_folder/label_texts.h"
#include "datasets/image_folder/missing_labels.h"
#include "datasets/picture/names.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

using picture::beginning_of;
using picture::did_you_mean;
using picture::list_of;
using picture::lower_case;
using FormKind = LabelForm::Kind;

constexpr int64_t max_class = 1'000'000;

template <class... Parts>
sdk::Refusal wrong_entry(const ListFile& list, const ListEntry& entry, const Parts&... parts) {
  return sdk::invalid(list.file, ":", entry.line, ": ", parts...);
}

// The list's column of the form's name `i`.
size_t column_of(const LabelForm& form, size_t i) {
  return form.places.empty() ? i : form.places[i];
}

// "; the training list 'train.csv' has numbers": what a further list should have, too.
std::string unlike_training(const LabelForm& form, const char* what) {
  return form.training_file.empty()
             ? ""
             : sdk::text("; the training list '", form.training_file, "' has ", what);
}

float label_value(const LabelForm& form, const ListFile& list, const ListEntry& entry,
                  size_t column) {
  const double value = binary_of(entry.labels[column]);
  if (value != not_binary) return value == 1 ? 1.0F : 0.0F;
  throw wrong_entry(list, entry, title_of(list, column), " has '",
                    beginning_of(entry.labels[column]),
                    "'; a label is 0 or 1 (or -1 or 1, false or true, no or yes)",
                    unlike_training(form, "such labels"));
}

bool is_count(const std::string& text) {
  constexpr size_t most_digits = 18;
  return !text.empty() && text.size() <= most_digits &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

void require_name(const ListFile& list, const ListEntry& entry, const std::string& name,
                  const char* what) {
  if (name.empty()) throw wrong_entry(list, entry, "names no class");
  if (name.size() > longest_class_name) {
    throw wrong_entry(list, entry, "names a ", what, " by ", name.size(),
                      " bytes; a name has at most ", longest_class_name);
  }
}

std::string number_of_class(const ListFile& list, const ListEntry& entry) {
  const std::string& text = entry.labels[0];
  if (!is_count(text)) {
    throw wrong_entry(
        list, entry, "the class '", beginning_of(text),
        "' must be a number from 0 on (a list with class names is CSV: path,label; --task "
        "regression takes numbers as values)");
  }
  const int64_t number = std::stoll(text);
  if (number > max_class) {
    throw wrong_entry(list, entry, "the class number ", number, " is absurd; at most ", max_class,
                      " (--task regression takes numbers as values)");
  }
  return std::to_string(number);
}

}  // namespace

int64_t LabelForm::task() const {
  switch (kind) {
    case FormKind::columns:
    case FormKind::tags:
      return TANDEM_TASK_LABELS;
    case FormKind::numbers:
      return TANDEM_TASK_VALUES;
    case FormKind::one_class:
    case FormKind::one_hot:
      break;
  }
  return TANDEM_TASK_CLASSES;
}

bool are_numbers_of(const std::set<std::string>& texts, const std::vector<std::string>& names) {
  return !texts.empty() && std::all_of(texts.begin(), texts.end(), [&](const std::string& text) {
    return is_count(text) && std::find(names.begin(), names.end(), text) == names.end();
  });
}

std::string class_of(const LabelForm& form, const ListFile& list, const ListEntry& entry) {
  if (form.kind == FormKind::one_class) {
    if (list.numbered) return number_of_class(list, entry);
    require_name(list, entry, entry.labels[0], "class");
    return entry.labels[0];
  }
  std::string name;
  for (size_t i = 0; i < form.names.size(); ++i) {
    if (label_value(form, list, entry, column_of(form, i)) == 0) continue;
    if (!name.empty()) {
      throw wrong_entry(list, entry, "has 1 in '", name, "' and '", form.names[i],
                        "': one of the columns is the class (--task multilabel takes several)");
    }
    name = form.names[i];
  }
  if (name.empty()) {
    throw wrong_entry(list, entry,
                      "has no 1: one of the columns is the class (--task multilabel takes "
                      "none, too)");
  }
  return name;
}

std::vector<std::string> tags_of(const LabelForm& form, const ListEntry& entry) {
  std::vector<std::string> tags;
  for (const std::string& text : entry.labels) {
    for (std::string& tag : split_at(text, form.separator)) {
      if (!form.number_names.empty() && is_count(tag)) {
        const size_t number = std::stoull(tag);
        if (number < form.number_names.size()) tag = form.number_names[number];
      }
      if (std::find(tags.begin(), tags.end(), tag) == tags.end()) tags.push_back(std::move(tag));
    }
  }
  return tags;
}

std::vector<float> targets_of(const LabelForm& form, const ListFile& list, const ListEntry& entry) {
  std::vector<float> values(form.names.size(), 0.0F);
  if (form.kind == FormKind::tags) {
    for (const std::string& tag : tags_of(form, entry)) {
      require_name(list, entry, tag, "label");
      const auto found = std::find(form.names.begin(), form.names.end(), tag);
      if (found == form.names.end()) {
        throw wrong_entry(list, entry, "label '", tag, "' is unknown to training",
                          did_you_mean(tag, form.names), "; known labels: ", list_of(form.names),
                          unlike_training(form, "these"));
      }
      values[static_cast<size_t>(found - form.names.begin())] = 1;
    }
    return values;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t column = column_of(form, i);
    if (form.kind == FormKind::columns) {
      values[i] = label_value(form, list, entry, column);
      continue;
    }
    double number = 0;
    const bool is_number = read_number(entry.labels[column], &number);
    values[i] = static_cast<float>(number);
    if (is_number && std::isfinite(values[i])) continue;
    throw wrong_entry(list, entry, title_of(list, column), " has '",
                      beginning_of(entry.labels[column]), "', which is no number",
                      unlike_training(form, "numbers"));
  }
  return values;
}

}  // namespace tandem::image_folder
