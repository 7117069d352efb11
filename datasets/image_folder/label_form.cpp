#include "datasets/image_folder/label_form.h"

#include <algorithm>
#include <cmath>
#include <set>

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
using Kind = LabelForm::Kind;

constexpr int64_t max_class = 1'000'000;

template <class... Parts>
sdk::Refusal wrong_entry(const ListFile& list, const ListEntry& entry, const Parts&... parts) {
  return sdk::invalid(list.file, ":", entry.line, ": ", parts...);
}

class FormFinder {
 public:
  FormFinder(const FormRequest& request, ListFile& list) : request_(request), list_(list) {}

  LabelForm find() {
    survey();
    if (list_.columns.size() == 1) {
      find_of_one_column();
    } else {
      find_of_columns();
    }
    form_.notes.insert(form_.notes.begin(), list_.notes.begin(), list_.notes.end());
    settle_missing(request_, form_, list_);
    if (form_.kind == Kind::one_class) return std::move(form_);
    if (form_.kind == Kind::tags) {
      name_tags();
    } else {
      name_columns();
    }
    if (form_.kind == Kind::one_hot) require_one_hot();
    return std::move(form_);
  }

 private:
  void survey() {
    surveys_.resize(list_.columns.size());
    for (const ListEntry& entry : list_.entries) {
      for (size_t i = 0; i < surveys_.size(); ++i) surveys_[i].add(entry.labels[i]);
    }
  }
  [[nodiscard]] bool is_task(const char* name) const { return request_.task == name; }
  template <class Condition>
  [[nodiscard]] bool all(const Condition& condition) const {
    return std::all_of(surveys_.begin(), surveys_.end(), condition);
  }
  template <class... Parts>
  void note(const Parts&... parts) {
    if (is_task("auto")) form_.notes.push_back(sdk::text(parts...));
  }

  void find_of_one_column() {
    const Survey& only = surveys_[0];
    const std::string title = title_of(list_, 0);
    if (is_task("labels")) return;
    if (is_task("auto") && is_name_of_class()) return note_whole_names(title);
    if (is_task("regression")) {
      form_.kind = Kind::numbers;
    } else if (is_task("multilabel")) {
      const bool is_label = only.has_two_values() && !list_.columns[0].empty();
      form_.kind = is_label ? Kind::columns : Kind::tags;
      if (!is_label) form_.separator = separator(true);
    } else if (only.is_number && !only.distinct.empty()) {
      if (!are_values(only)) return note_classes(only, title);
      form_.kind = Kind::numbers;
      note(title, " has numbers",
           only.is_whole ? sdk::text(", ", only.distinct.size(), " different ones") : std::string(),
           ": a value to predict, not classes (--task labels takes them as classes)");
    } else {
      form_.separator = separator(false);
      if (form_.separator == '\0') return check_texts(only, title);
      form_.kind = Kind::tags;
      note(title, " names several labels of an image, with '",
           form_.separator == '[' ? ',' : form_.separator,
           "' between them (--task labels takes each value as one class)");
    }
  }

  // As in the lists of splits that runs keep: "1.5", "a;b" and "[c]" are names like any others.
  [[nodiscard]] bool is_name_of_class() const {
    return lower_case(list_.columns[0]) == "class_name";
  }
  [[nodiscard]] bool is_called_class() const {
    static constexpr std::string_view of_classes[] = {"label", "class", "category", "target", "id",
                                                      "type",  "code",  "species",  "breed"};
    const std::string heading = lower_case(list_.columns[0]);
    return heading.empty() ||
           std::any_of(std::begin(of_classes), std::end(of_classes),
                       [&](std::string_view one) { return heading.ends_with(one); });
  }
  void note_classes(const Survey& only, const std::string& title) {
    if (is_written_as_float(only)) {
      note(title, " has ", only.distinct.size(), " different whole numbers, as ",
           *only.distinct.begin(),
           ", which are taken as classes (--task regression takes them as values)");
      return;
    }
    if (list_.numbered || is_called_class() || only.distinct.size() <= 2) return;
    note(title, " has ", only.distinct.size(),
         " different whole numbers, which are taken as classes (--task regression takes them as "
         "values)");
  }

  void note_whole_names(const std::string& title) {
    if (separator(false) == '\0') return;
    note(title,
         " names one class in each line, whatever stands in it (--task multilabel divides "
         "it into several labels)");
  }

  // Prices and shares would be as many classes; texts that hardly repeat are no classes.
  void check_texts(const Survey& only, const std::string& title) {
    const std::set<std::string>& texts = only.distinct;
    if (!texts.empty() && std::all_of(texts.begin(), texts.end(), is_written_number)) {
      const auto apart = std::find_if(texts.begin(), texts.end(), are_digits_apart);
      const bool any = apart != texts.end();
      throw sdk::invalid("list '", list_.file, "': ", title, " has '",
                         beginning_of(any ? *apart : *texts.begin()),
                         "' and the like, as numbers to predict: write them as 1234.5; ",
                         any ? "--task multilabel takes them as several labels of an image, " : "",
                         "--task labels takes each as the name of a class");
    }
    if (2 * only.fractions > static_cast<int64_t>(list_.entries.size())) {
      const auto odd =
          std::find_if(list_.entries.begin(), list_.entries.end(), [](const ListEntry& entry) {
            double ignored = 0;
            return !is_missing(entry.labels[0]) && !read_number(entry.labels[0], &ignored);
          });
      throw wrong_entry(
          list_, *odd, title, " has '", beginning_of(odd->labels[0]),
          "' among numbers to predict: write a number or nothing; --task labels takes each "
          "as the name of a class");
    }
    constexpr size_t few = 8;
    if (texts.size() <= few || 2 * texts.size() <= list_.entries.size()) return;
    note(title, " has ", texts.size(), " different texts for ", list_.entries.size(),
         " images: each is taken as a class of its own");
  }
  // "16 0" and "3,50", which may be the numbers of several labels, too.
  [[nodiscard]] static bool are_digits_apart(const std::string& text) {
    return text.find_first_not_of("0123456789, ") == std::string::npos &&
           text.find_first_of(", ") != std::string::npos;
  }
  // A number with a sign of money, a percent sign or commas between thousands.
  [[nodiscard]] static bool is_written_number(std::string text) {
    for (const char* sign : {"$", "€", "£", "%", ",", " "}) {
      for (size_t at; (at = text.find(sign)) != std::string::npos;) {
        text.erase(at, std::string_view(sign).size());
      }
    }
    double ignored = 0;
    return read_number(text, &ignored);
  }

  // As tables with gaps are written by programs that then make all numbers fractions: 0.0 and 1.0.
  [[nodiscard]] bool is_written_as_float(const Survey& only) const {
    constexpr size_t few = 20;
    return !only.is_whole && only.is_count && !list_.columns[0].empty() && is_called_class() &&
           only.distinct.size() <= few && 2 * only.distinct.size() <= list_.entries.size();
  }

  // Few whole numbers are classes. Many are so in a list of Caffe's, and where the column is called
  // so and each occurs often enough to be learned.
  [[nodiscard]] bool are_values(const Survey& only) const {
    if (is_written_as_float(only)) return false;
    if (!only.is_whole) return true;
    if (list_.numbered) return false;
    if (only.has_negative) return !only.has_two_values();
    constexpr size_t few = 20, images_of_value = 5, several = 8;
    const size_t count = only.distinct.size();
    // A number for each image names no class.
    if (count == list_.entries.size() && count >= several && !is_called_class()) return true;
    if (count <= few) return false;
    return !is_called_class() || list_.entries.size() < images_of_value * count;
  }

  // What stands between the names of labels; '\0': each value is one name.
  [[nodiscard]] char separator(bool is_forced) const {
    const std::set<std::string>& values = surveys_[0].distinct;
    const auto any = [&](const auto& condition) {
      return std::any_of(values.begin(), values.end(), condition);
    };
    const auto splits = [&](char one) {
      return any([&](const std::string& value) { return split_at(value, one).size() > 1; });
    };
    const bool are_lists =
        !values.empty() && std::all_of(values.begin(), values.end(), [](const std::string& value) {
          return value.size() > 1 && value.front() == '[' && value.back() == ']';
        });
    if (are_lists) return '[';
    for (const char one : {'|', ';'}) {
      if (splits(one)) return one;
    }
    const std::string heading = lower_case(list_.columns[0]);
    const bool is_plural = heading.ends_with("s") && heading != "class";
    // A column of prices may end with an s, too, as "Preis".
    const bool is_of_labels = is_forced || heading.ends_with("labels") ||
                              heading.ends_with("tags") || heading.ends_with("classes") ||
                              heading.ends_with("categories") || heading.ends_with("targets") ||
                              heading.ends_with("ids");
    if (splits(',') && (is_of_labels || !are_written_numbers(values, ',')) &&
        (is_forced || is_plural || recombines(values, ','))) {
      return ',';
    }
    if (splits(' ') && (is_of_labels || !are_written_numbers(values, ' ')) &&
        (is_forced || is_plural)) {
      return ' ';
    }
    return '\0';
  }

  // Prices as 3,50, 1,234,567 and 1 200: each is one number. In 1,2,3 the commas divide several.
  [[nodiscard]] static bool are_written_numbers(const std::set<std::string>& values, char one) {
    return std::all_of(values.begin(), values.end(), [&](const std::string& value) {
      // "1, 2" is no number that anyone writes.
      if (!is_written_number(value) || value.find(", ") != std::string::npos) return false;
      const size_t first = value.find(one), last = value.rfind(one);
      for (size_t at = first; at < last; at = value.find(one, at + 1)) {
        if (value.find(one, at + 1) != at + 4) return false;
      }
      return one == ',' || last == std::string::npos || value.size() == last + 4;
    });
  }

  // Whether parts of the values are fewer than the values: each is in several of them. The parts of
  // names such as "tench, Tinca tinca" are more.
  [[nodiscard]] static bool recombines(const std::set<std::string>& values, char one) {
    std::set<std::string> parts;
    for (const std::string& value : values) {
      for (const std::string& part : split_at(value, one)) parts.insert(part);
    }
    return parts.size() < values.size();
  }

  void find_of_columns() {
    const bool are_binary = all([](const Survey& one) { return one.has_two_values(); });
    const bool are_numbers = all([](const Survey& one) { return one.is_number; });
    if (is_task("regression")) {
      form_.kind = Kind::numbers;
    } else if (is_task("multilabel") || is_task("labels")) {
      form_.kind = is_task("labels") ? Kind::one_hot : Kind::columns;
    } else if (are_binary) {
      const bool is_one_hot = is_exclusive();
      form_.kind = is_one_hot ? Kind::one_hot : Kind::columns;
      note(list_.columns.size(), " columns of 0 and 1: ",
           is_one_hot
               ? "exactly one is 1 in each line, so they are classes (--task multilabel takes "
                 "them as independent labels)"
               : "several labels of an image");
    } else if (are_numbers && !has_uncertain()) {
      form_.kind = Kind::numbers;
      note(list_.columns.size(), " columns of numbers: values to predict");
    } else {
      refuse_mixture();
    }
  }

  [[nodiscard]] bool is_exclusive() const {
    return std::all_of(list_.entries.begin(), list_.entries.end(), [](const ListEntry& entry) {
      return std::count_if(entry.labels.begin(), entry.labels.end(),
                           [](const std::string& text) { return binary_of(text) == 1; }) == 1;
    });
  }
  // Columns with 0, 1 and -1, as those of CheXpert.
  [[nodiscard]] bool has_uncertain() const {
    return all([](const Survey& one) { return one.is_binary; });
  }

  void refuse_mixture() const {
    std::vector<std::string> odd;
    for (size_t i = 0; i < surveys_.size(); ++i) {
      const Survey& one = surveys_[i];
      if (one.is_binary ? one.has_two_values() : one.is_number && has_uncertain()) continue;
      odd.push_back(list_.columns[i].empty() ? title_of(list_, i) : list_.columns[i]);
    }
    if (has_uncertain()) {
      throw sdk::invalid("list '", list_.file, "': ", list_of(odd), " ha",
                         odd.size() > 1 ? "ve" : "s",
                         " 0, 1 and -1: a label is 0 or 1 (or -1 or 1); write what -1 is to be, or "
                         "--task regression takes them as numbers");
    }
    throw sdk::invalid("list '", list_.file, "' has ", list_.columns.size(),
                       " columns besides the path, which are neither all 0 and 1 nor all numbers (",
                       list_of(odd),
                       "): the data option labels=COLUMN,COLUMN names those to learn");
  }

  void name_tags() {
    form_.names = request_.model_names;
    int64_t without = 0;
    std::set<std::string> distinct;
    for (const ListEntry& entry : list_.entries) {
      const std::vector<std::string> tags = tags_of(form_, entry);
      without += tags.empty() ? 1 : 0;
      distinct.insert(tags.begin(), tags.end());
    }
    if (without > 0) {
      form_.notes.push_back(sdk::text(without, " of ", list_.entries.size(), " images of '",
                                      list_.file, "' have no label"));
    }
    if (!form_.names.empty()) return;
    form_.names.assign(distinct.begin(), distinct.end());
    std::sort(form_.names.begin(), form_.names.end(), natural_less);
    if (form_.names.empty()) throw sdk::invalid("list '", list_.file, "': no image has a label");
  }

  void name_columns() {
    const bool has_headings = !list_.columns[0].empty();
    const std::vector<std::string>& known =
        request_.model_names.empty() ? request_.written_names : request_.model_names;
    const size_t count = list_.columns.size();
    if (!known.empty() && !has_headings && known.size() != count) {
      throw sdk::invalid("list '", list_.file, "' has ", count,
                         " values on each line, but there are ", known.size(),
                         " names: ", list_of(known));
    }
    form_.names = known;
    if (!known.empty() && has_headings) {
      for (const std::string& name : known) {
        if (std::count(list_.columns.begin(), list_.columns.end(), name) == 1) continue;
        throw sdk::invalid("list '", list_.file, "' has no column '", name, "'",
                           did_you_mean(name, list_.columns), ", which the model has; it has ",
                           list_of(list_.columns));
      }
    }
    if (!known.empty()) return note_unknown_columns(known);
    form_.names = list_.columns;
    for (size_t i = 0; i < count; ++i) {
      std::string& name = form_.names[i];
      if (name.empty()) name = count == 1 ? "value" : std::to_string(i);
      if (std::count(form_.names.begin(), form_.names.begin() + static_cast<ptrdiff_t>(i), name)) {
        throw sdk::invalid("list '", list_.file, "' has two columns '", name, "'");
      }
      if (name.size() <= longest_class_name) continue;
      throw sdk::invalid("list '", list_.file, "': a column's heading has ", name.size(),
                         " bytes; a name has at most ", longest_class_name);
    }
  }

  void note_unknown_columns(const std::vector<std::string>& known) {
    std::vector<std::string> unread;
    for (const std::string& heading : list_.columns) {
      const bool is_known = std::find(known.begin(), known.end(), heading) != known.end();
      if (!is_known && !heading.empty()) unread.push_back(heading);
    }
    if (unread.empty()) return;
    form_.notes.push_back(
        sdk::text("columns of '", list_.file,
                  "' that are not read, as training does not have them: ", list_of(unread)));
  }

  void require_one_hot() const {
    for (const ListEntry& entry : list_.entries) (void)class_of(form_, list_, entry);
  }

  static std::vector<std::string> tags_of(const LabelForm& form, const ListEntry& entry) {
    const std::string& text = entry.labels[0];
    const bool has_brackets = text.size() > 1 && text.front() == '[' && text.back() == ']';
    if (form.separator == '[' && !has_brackets) return split_at(text, ',');
    return split_at(text, form.separator);
  }
  friend std::vector<float> image_folder::targets_of(const LabelForm&, const ListFile&,
                                                     const ListEntry&);

  const FormRequest& request_;
  ListFile& list_;
  std::vector<Survey> surveys_;
  LabelForm form_;
};

// The column of the form's name `i`: by its heading.
size_t column_of(const LabelForm& form, const ListFile& list, size_t i) {
  if (list.columns[0].empty()) return i;
  const auto found = std::find(list.columns.begin(), list.columns.end(), form.names[i]);
  return static_cast<size_t>(found - list.columns.begin());
}

float label_value(const ListFile& list, const ListEntry& entry, size_t column) {
  const double value = binary_of(entry.labels[column]);
  if (value != not_binary) return value == 1 ? 1.0F : 0.0F;
  throw wrong_entry(list, entry, title_of(list, column), " has '",
                    beginning_of(entry.labels[column]),
                    "'; a label is 0 or 1 (or -1 or 1, false or true, no or yes)");
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
  const bool is_digits = text.find_first_not_of("0123456789") == std::string::npos;
  if (!is_digits || text.size() > 18) {
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
    case Kind::columns:
    case Kind::tags:
      return TANDEM_TASK_LABELS;
    case Kind::numbers:
      return TANDEM_TASK_VALUES;
    case Kind::one_class:
    case Kind::one_hot:
      break;
  }
  return TANDEM_TASK_CLASSES;
}

LabelForm find_form(const FormRequest& request, ListFile& list) {
  return FormFinder(request, list).find();
}

std::string class_of(const LabelForm& form, const ListFile& list, const ListEntry& entry) {
  if (form.kind == Kind::one_class) {
    if (list.numbered) return number_of_class(list, entry);
    require_name(list, entry, entry.labels[0], "class");
    return entry.labels[0];
  }
  std::string name;
  for (size_t i = 0; i < form.names.size(); ++i) {
    if (label_value(list, entry, column_of(form, list, i)) == 0) continue;
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

std::vector<float> targets_of(const LabelForm& form, const ListFile& list, const ListEntry& entry) {
  std::vector<float> values(form.names.size(), 0.0F);
  if (form.kind == Kind::tags) {
    for (const std::string& tag : FormFinder::tags_of(form, entry)) {
      require_name(list, entry, tag, "label");
      const auto found = std::find(form.names.begin(), form.names.end(), tag);
      if (found == form.names.end()) {
        throw wrong_entry(list, entry, "label '", tag, "' is unknown to training",
                          did_you_mean(tag, form.names), "; known labels: ", list_of(form.names));
      }
      values[static_cast<size_t>(found - form.names.begin())] = 1;
    }
    return values;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t column = column_of(form, list, i);
    if (form.kind == Kind::columns) {
      values[i] = label_value(list, entry, column);
      continue;
    }
    double number = 0;
    const bool is_number = read_number(entry.labels[column], &number);
    values[i] = static_cast<float>(number);
    if (is_number && std::isfinite(values[i])) continue;
    throw wrong_entry(list, entry, title_of(list, column), " has '",
                      beginning_of(entry.labels[column]), "', which is no number");
  }
  return values;
}

}  // namespace tandem::image_folder
