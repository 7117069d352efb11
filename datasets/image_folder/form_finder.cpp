#include "datasets/image_folder/form_finder.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "datasets/image_folder/class_texts.h"
#include "datasets/image_folder/label_texts.h"
#include "datasets/image_folder/label_vectors.h"
#include "datasets/image_folder/list_repeats.h"
#include "datasets/image_folder/missing_labels.h"
#include "datasets/image_folder/tag_separator.h"
#include "datasets/image_folder/truth_words.h"
#include "datasets/image_folder/value_steps.h"
#include "datasets/picture/names.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

using picture::did_you_mean;
using picture::list_of;
using picture::lower_case;
using FormKind = LabelForm::Kind;

class FormFinder {
 public:
  FormFinder(const FormRequest& request, ListFile& list) : request_(request), list_(list) {}

  LabelForm find() {
    form_.file = list_.file;
    if (request_.training != nullptr) form_.training_file = request_.training->file;
    if (const std::string text = divide_vectors(request_, list_); !text.empty()) note(text);
    survey();
    if (list_.columns.size() == 1) {
      find_of_one_column();
    } else {
      find_of_columns();
    }
    form_.notes.insert(form_.notes.begin(), list_.notes.begin(), list_.notes.end());
    join_lines();
    settle_missing(request_, form_, list_);
    if (form_.kind == FormKind::one_class) return std::move(form_);
    if (form_.kind == FormKind::tags) {
      name_tags();
    } else {
      name_columns();
    }
    if (form_.kind != FormKind::numbers && form_.kind != FormKind::tags) require_two_values();
    if (form_.kind == FormKind::one_hot) require_one_hot();
    if (form_.kind == FormKind::numbers) {
      settle_truths(request_, surveys_, form_, list_);
      if (request_.model_names.empty()) note_lost_steps(form_, list_);
    }
    return std::move(form_);
  }

 private:
  // A line for each label of an image, as of Open Images.
  void join_lines() {
    if (form_.kind == FormKind::tags) {
      const size_t count = join_repeats(list_);
      if (count == 0) return;
      form_.notes.push_back(sdk::text("'", list_.file, "': ", count,
                                      count == 1 ? " image has" : " images have",
                                      " several lines, whose labels are joined"));
      return;
    }
    if (form_.kind != FormKind::one_class) return;  // of a number it is a weight
    const auto count = std::erase_if(list_.entries, [](const auto& one) { return one.is_denied; });
    if (count == 0) return;
    form_.notes.push_back(sdk::text("'", list_.file, "': ", count,
                                    count == 1 ? " line says" : " lines say",
                                    " that an image does not have the label (Confidence 0): left "
                                    "out (--task multilabel takes all labels of an image)"));
    if (list_.entries.empty()) {
      throw sdk::invalid("list '", list_.file, "': every line has the Confidence 0");
    }
  }

  void survey() {
    constexpr size_t some = 64;  // of many columns the texts are not counted
    surveys_.resize(list_.columns.size());
    if (surveys_.size() > 1) {
      for (Survey& one : surveys_) one.most_distinct = some;
    }
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
    if (is_task("auto")) refuse_several_truths(only, title);
    if (is_task("regression")) {
      form_.kind = FormKind::numbers;
    } else if (is_task("multilabel")) {
      const bool is_label = only.has_two_values() && !list_.columns[0].empty();
      const LabelForm* known = request_.training;
      form_.kind = known != nullptr ? known->kind : is_label ? FormKind::columns : FormKind::tags;
      if (form_.kind != FormKind::tags) return;
      form_.separator = known != nullptr ? known->separator
                                         : tag_separator(only.distinct, list_.columns[0], true);
    } else if (only.is_number && !only.distinct.empty()) {
      if (!are_values(only)) return note_classes(only, title);
      form_.kind = FormKind::numbers;
      note(title, " has numbers",
           only.is_whole ? sdk::text(", ", only.distinct.size(), " different ones") : std::string(),
           ": a value to predict, not classes (--task labels takes them as classes)");
    } else {
      form_.separator = tag_separator(only.distinct, list_.columns[0], false);
      if (form_.separator == '\0') return note_texts(only);
      form_.kind = FormKind::tags;
      note(title, " names several labels of an image, with '",
           form_.separator == '[' ? ',' : form_.separator,
           "' between them (--task labels takes each value as one class)");
    }
  }

  // Of tables that were joined: "yes" and "1" would be two classes.
  void refuse_several_truths(const Survey& only, const std::string& title) const {
    if (!only.has_two_values() || only.is_number || only.distinct.size() <= 2) return;
    throw sdk::invalid("list '", list_.file, "': ", title, " says yes and no in several ways (",
                       list_of({only.distinct.begin(), only.distinct.end()}),
                       "): write each in one way (--task labels takes each text as a class)");
  }

  void note_texts(const Survey& only) {
    const std::string text = check_class_texts(list_, only, is_called_class());
    if (!text.empty()) note(text);
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
    if (tag_separator(surveys_[0].distinct, list_.columns[0], false) == '\0') return;
    note(title,
         " names one class in each line, whatever stands in it (--task multilabel divides "
         "it into several labels)");
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

  void find_of_columns() {
    const bool are_binary = all([](const Survey& one) { return one.has_two_values(); });
    const bool are_numbers =
        all([](const Survey& one) { return one.is_number || one.has_two_values(); });
    if (is_task("regression")) {
      form_.kind = FormKind::numbers;
    } else if (is_task("multilabel") || is_task("labels")) {
      form_.kind = is_task("labels") ? FormKind::one_hot : FormKind::columns;
    } else if (are_binary) {
      const bool is_one_hot = is_exclusive();
      form_.kind = is_one_hot ? FormKind::one_hot : FormKind::columns;
      note(list_.columns.size(), " columns of 0 and 1: ",
           is_one_hot
               ? "exactly one is 1 in each line, so they are classes (--task multilabel takes "
                 "them as independent labels)"
               : "several labels of an image");
    } else if (are_numbers && !has_uncertain()) {
      form_.kind = FormKind::numbers;
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

  [[nodiscard]] std::string name_of_column(size_t i) const {
    return !list_.columns[i].empty()                ? list_.columns[i]
           : list_.places.size() == surveys_.size() ? std::to_string(list_.places[i])
                                                    : title_of(list_, i);
  }
  [[nodiscard]] sdk::Refusal uncertain(const std::vector<std::string>& columns) const {
    return sdk::invalid("list '", list_.file, "': ", list_of(columns), " ha",
                        columns.size() > 1 ? "ve" : "s",
                        " 0, 1 and -1: a label is 0 or 1 (or -1 or 1); write what -1 is to be, or "
                        "--task regression takes them as numbers");
  }
  // Of a task that is given. In one list -1 is no, in another one it is not known.
  void require_two_values() const {
    std::vector<std::string> odd;
    for (size_t i = 0; i < form_.names.size(); ++i) {
      const size_t column = form_.places.empty() ? i : form_.places[i];
      const Survey& one = surveys_[column];
      if (one.is_binary && !one.has_two_values()) odd.push_back(name_of_column(column));
    }
    if (!odd.empty()) throw uncertain(odd);
  }

  void refuse_mixture() const {
    std::vector<std::string> odd;
    for (size_t i = 0; i < surveys_.size(); ++i) {
      const Survey& one = surveys_[i];
      if (!one.has_two_values() && (!one.is_number || has_uncertain())) {
        odd.push_back(name_of_column(i));
      }
    }
    if (has_uncertain()) throw uncertain(odd);
    const char* way =
        list_.columns[0].empty()
            ? "): the data option labels=N,N names those to learn by their places in the line, the "
              "first of which is 1"
            : "): the data option labels=COLUMN,COLUMN names those to learn";
    throw sdk::invalid("list '", list_.file, "' has ", list_.columns.size(),
                       " columns besides the path, which are neither all 0 and 1 nor all numbers (",
                       list_of(odd), way);
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
    const std::vector<std::string>& written = request_.written_names;
    if (!written.empty()) {
      if (are_numbers_of(distinct, written)) form_.number_names = written;
      require_written(distinct, written);
      if (form_.names.empty()) form_.names = written;
    }
    if (!form_.names.empty()) return;
    form_.names.assign(distinct.begin(), distinct.end());
    std::sort(form_.names.begin(), form_.names.end(), natural_less);
    if (form_.names.empty()) throw sdk::invalid("list '", list_.file, "': no image has a label");
  }

  void require_written(const std::set<std::string>& tags,
                       const std::vector<std::string>& written) const {
    for (const std::string& tag : tags) {
      const bool is_name = std::find(written.begin(), written.end(), tag) != written.end();
      const bool is_number =
          !form_.number_names.empty() && tag.size() < 10 && std::stoull(tag) < written.size();
      if (is_name || is_number) continue;
      throw sdk::invalid("list '", list_.file, "': label '", tag,
                         "' is not in the file of names (classes=)", did_you_mean(tag, written),
                         ", which has ", list_of(written));
    }
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
        if (request_.model_names.empty()) {
          throw sdk::invalid("list '", list_.file, "': the headings name the columns (",
                             list_of(list_.columns), "), and '", name,
                             "' of the file of names (classes=) is none of them",
                             did_you_mean(name, list_.columns), ": leave the option out");
        }
        throw sdk::invalid("list '", list_.file, "' has no column '", name, "'",
                           did_you_mean(name, list_.columns), ", which the model has; it has ",
                           list_of(list_.columns));
      }
    }
    if (!known.empty()) {
      if (has_headings) find_places();
      return note_unknown_columns(known);
    }
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

  void find_places() {
    std::unordered_map<std::string, size_t> places;
    for (size_t i = 0; i < list_.columns.size(); ++i) places.emplace(list_.columns[i], i);
    for (const std::string& name : form_.names) form_.places.push_back(places.at(name));
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

  const FormRequest& request_;
  ListFile& list_;
  std::vector<Survey> surveys_;
  LabelForm form_;
};

}  // namespace

LabelForm find_form(const FormRequest& request, ListFile& list) {
  return FormFinder(request, list).find();
}

}  // namespace tandem::image_folder
