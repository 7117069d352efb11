#include "datasets/image_folder/missing_labels.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include "datasets/image_folder/label_texts.h"
#include "datasets/picture/names.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

using FormKind = LabelForm::Kind;

// What programs write where a table has a gap.
bool is_nan(const std::string& text) {
  return picture::lower_case(text) == "nan";
}

class Settler {
 public:
  Settler(const FormRequest& request, LabelForm& form, ListFile& list)
      : request_(request), form_(form), list_(list) {}

  void settle() {
    if (form_.kind == FormKind::tags) return empty_tags();
    if (form_.kind == FormKind::one_class) note_words();
    const auto lacks = [&](const ListEntry& entry) {
      return std::any_of(entry.labels.begin(), entry.labels.end(),
                         [&](const std::string& text) { return is_gap(text); });
    };
    const auto first = std::find_if(list_.entries.begin(), list_.entries.end(), lacks);
    if (first == list_.entries.end()) return;
    const auto count = std::count_if(list_.entries.begin(), list_.entries.end(), lacks);
    const bool has_labels = form_.kind == FormKind::columns || form_.kind == FormKind::one_hot;
    if (request_.missing == "zero" && has_labels) return take_for_zero(count);
    if (request_.missing != "skip") throw refusal(*first, count);
    std::erase_if(list_.entries, lacks);
    form_.notes.push_back(sdk::text(count, count == 1 ? " line of '" : " lines of '", list_.file,
                                    count == 1 ? "' lacks" : "' lack", " a value and ",
                                    count == 1 ? "is" : "are", " left out (missing=skip)"));
    if (list_.entries.empty()) {
      throw sdk::invalid("list '", list_.file, "': every line lacks a value");
    }
  }

 private:
  [[nodiscard]] bool is_named(const std::string& text) const {
    const auto& names = request_.model_names;
    const bool takes_any =
        request_.takes_any_name || picture::lower_case(list_.columns[0]) == "class_name";
    return takes_any || std::find(names.begin(), names.end(), text) != names.end();
  }
  [[nodiscard]] bool is_gap(const std::string& text) const {
    if (form_.kind != FormKind::one_class) return is_missing(text);
    return text.empty() || (is_nan(text) && !is_named(text));
  }

  // An image may have no label at all.
  void empty_tags() {
    for (ListEntry& entry : list_.entries) {
      for (std::string& text : entry.labels) {
        if (is_nan(text) && !is_named(text)) text.clear();
      }
    }
  }

  // Words that are no value among numbers may be the names of classes.
  void note_words() {
    std::map<std::string, int64_t> counts;
    for (const ListEntry& entry : list_.entries) {
      const std::string& text = entry.labels[0];
      if (is_missing(text) && !is_gap(text) && !is_named(text)) ++counts[text];
    }
    for (const auto& [word, count] : counts) {
      form_.notes.push_back(sdk::text("'", list_.file, "': ", count,
                                      count == 1 ? " line has '" : " lines have '", word,
                                      "', which is taken as the name of a class"));
    }
  }

  void take_for_zero(int64_t count) {
    for (ListEntry& entry : list_.entries) {
      for (std::string& text : entry.labels) {
        if (is_missing(text)) text = "0";
      }
    }
    form_.notes.push_back(sdk::text(count, " lines of '", list_.file,
                                    "' lack a label, which counts as 0 (missing=zero)"));
  }

  [[nodiscard]] sdk::Refusal refusal(const ListEntry& first, int64_t count) const {
    const auto gap = std::find_if(first.labels.begin(), first.labels.end(),
                                  [&](const std::string& text) { return is_gap(text); });
    const std::string where = sdk::text(list_.file, ":", first.line, ": ");
    const std::string others =
        sdk::text(" ('", *gap, "'; ", count, " of ", list_.entries.size(), " lines ");
    const char* way = "): the data option missing=skip leaves such images out";
    if (form_.kind == FormKind::one_class) {
      const std::string column =
          list_.columns[0].empty() ? "" : " in column '" + list_.columns[0] + "'";
      const std::string as_name =
          gap->empty() ? "" : sdk::text("; --task labels takes '", *gap, "' as a class's name");
      return sdk::invalid(where, "names no class", column, others, "name none", way, as_name);
    }
    const std::string title =
        title_of(list_, static_cast<size_t>(std::distance(first.labels.begin(), gap)));
    return sdk::invalid(where, title, " has no value", others, "lack one", way,
                        form_.kind == FormKind::numbers ? "" : ", and missing=zero takes it for 0");
  }

  const FormRequest& request_;
  LabelForm& form_;
  ListFile& list_;
};

}  // namespace

std::string title_of(const ListFile& list, size_t column) {
  if (!list.columns[column].empty()) return sdk::text("column '", list.columns[column], "'");
  if (list.columns.size() == 1) return "the label";
  return sdk::text("value ", column + 1, " of the line");
}

void leave_out_unlabeled_test(ListFile& list) {
  int64_t count = 0;
  for (const ListEntry& entry : list.entries) {
    if (entry.split != "test") continue;
    if (!std::all_of(entry.labels.begin(), entry.labels.end(), is_missing)) return;
    ++count;
  }
  if (count == 0) return;
  std::erase_if(list.entries, [](const ListEntry& entry) { return entry.split == "test"; });
  list.notes.push_back(sdk::text("'", list.file, "': the ", count,
                                 " lines of the split test have no labels: not a test split"));
}

void settle_missing(const FormRequest& request, LabelForm& form, ListFile& list) {
  Settler(request, form, list).settle();
}

}  // namespace tandem::image_folder
