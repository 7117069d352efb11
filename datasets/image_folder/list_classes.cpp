#include "datasets/image_folder/list_classes.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "datasets/image_folder/label_texts.h"
#include "datasets/picture/data_file.h"
#include "datasets/picture/names.h"
#include "plugins/class_names.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

namespace fs = std::filesystem;
using picture::as_utf8;

std::vector<std::string> names_of_file(const std::string& file, Listing& listing) {
  ClassNames read = read_class_names(picture::text_of_file(file));
  const auto wrong = [&](size_t line, const std::string& what) {
    const std::string where =
        line > 0 ? sdk::text(file, ":", line) : sdk::text("classes '", file, "'");
    return sdk::invalid(where, ": ", what);
  };
  if (!read.mistake.empty()) throw wrong(read.line, read.mistake);
  std::set<std::string> seen;
  for (std::string& name : read.names) {
    name = as_utf8(name);
    if (name.empty()) throw wrong(0, "a class has no name");
    if (name.size() > longest_class_name) {
      throw wrong(0, sdk::text("a name has ", name.size(), " bytes; a class name has at most ",
                               longest_class_name));
    }
    if (!seen.insert(name).second) throw wrong(0, sdk::text("class '", name, "' is there twice"));
  }
  for (const std::string& note : read.notes) listing.note("'", file, "': ", note);
  return std::move(read.names);
}

// Files beside a list that may name its classes.
std::string names_beside(const fs::path& folder) {
  for (const char* name : {"classes.txt", "labels.txt", "names.txt", "class_names.txt",
                           "synset_words.txt", "obj.names", "data.yaml"}) {
    const std::string file = (folder / name).string();
    if (picture::path_status(file).is_file()) return file;
  }
  return "";
}

}  // namespace

ListClasses::ListClasses(std::string file, std::vector<std::string> of_model, Listing& listing)
    : file_(std::move(file)), of_model_(std::move(of_model)), listing_(listing) {
  if (!file_.empty()) written_names_ = names_of_file(file_, listing_);
}

std::string ListClasses::name_of(const LabelForm& form, const ListFile& list,
                                 const ListEntry& entry) const {
  std::string name = class_of(form, list, entry);
  const bool is_one = form.kind == LabelForm::Kind::one_class;
  if (!has_numbers_ || written_names_.empty() || !is_one) return name;
  // In CSV a further list may have names.
  if (name.find_first_not_of("0123456789") != std::string::npos) return name;
  const auto number = static_cast<size_t>(std::stoull(name));
  if (number < written_names_.size()) return written_names_[number];
  throw sdk::invalid(list.file, ":", entry.line, ": class ", name, ", but '", file_,
                     "' names classes 0 to ", written_names_.size() - 1);
}

std::vector<std::string> ListClasses::names_of(const LabelForm& form, const ListFile& train) {
  if (!of_model_.empty()) return of_model_;
  if (form.kind == LabelForm::Kind::one_hot) return form.names;
  if (!written_names_.empty()) return written_names_;
  std::vector<std::string> names;
  if (!train.numbered) {
    std::set<std::string> distinct;
    for (const ListEntry& entry : train.entries) distinct.insert(name_of(form, train, entry));
    names.assign(distinct.begin(), distinct.end());
    std::sort(names.begin(), names.end(), natural_less);
    return names;
  }
  size_t largest = 0;
  for (const ListEntry& entry : train.entries) {
    largest = std::max<size_t>(largest, std::stoull(name_of(form, train, entry)));
  }
  for (size_t i = 0; i <= largest; ++i) names.push_back(std::to_string(i));
  const std::string beside = names_beside(fs::path(train.file).parent_path());
  if (!beside.empty() && beside != train.file) {
    listing_.note("the classes are called by their numbers; --data-option classes=", beside,
                  " names them, if that is what the file does");
  }
  return names;
}

void ListClasses::name(const LabelForm& form, const ListFile& train) {
  std::vector<std::string>& names = listing_.class_names;
  listing_.task = form.task();
  if (listing_.task != TANDEM_TASK_CLASSES) {
    names = form.names;
    return listing_.note_similar_classes();
  }
  std::set<std::string> texts;
  for (const ListEntry& entry : train.entries) texts.insert(entry.labels[0]);
  has_numbers_ = train.numbered || are_numbers_of(texts, written_names_);
  names = names_of(form, train);
  listing_.note_similar_classes();
  if (names.size() < 2) {
    throw sdk::invalid("there is one class only, '", names[0],
                       "'; a classifier needs at least two");
  }
  for (size_t i = 0; i < names.size(); ++i) {
    numbers_.emplace(as_utf8(names[i]), static_cast<int64_t>(i));
  }
  match_words(form, train);
}

void ListClasses::match_words(const LabelForm& form, const ListFile& list) {
  words_.clear();
  const std::vector<std::string>& names = listing_.class_names;
  if (listing_.task != TANDEM_TASK_CLASSES || names.size() != 2) return;
  const double first = binary_of(names[0]), second = binary_of(names[1]);
  const bool are_truths = first != not_binary && second != not_binary;
  if (!are_truths || (first == 1) == (second == 1)) return;
  Survey texts;
  for (const ListEntry& entry : list.entries) texts.add(name_of(form, list, entry));
  if (!texts.has_two_values()) return;
  std::string taken;
  for (const std::string& text : texts.distinct) {
    if (numbers_.contains(as_utf8(text))) continue;
    const size_t number = (binary_of(text) == 1) == (first == 1) ? 0 : 1;
    words_.emplace(as_utf8(text), static_cast<int64_t>(number));
    taken +=
        sdk::text(taken.empty() ? "" : ", ", "'", text, "' is the class '", names[number], "'");
  }
  if (!taken.empty()) listing_.note("'", list.file, "': ", taken);
}

int64_t ListClasses::label_of(const LabelForm& form, const ListFile& list,
                              const ListEntry& entry) const {
  if (listing_.task != TANDEM_TASK_CLASSES) return 0;
  const std::string name = name_of(form, list, entry);
  const std::string key = as_utf8(name);
  if (const auto found = numbers_.find(key); found != numbers_.end()) return found->second;
  if (const auto found = words_.find(key); found != words_.end()) return found->second;
  const std::string training =
      form.training_file.empty() ? "training" : "training ('" + form.training_file + "')";
  throw sdk::invalid(list.file, ":", entry.line, ": class '", name, "' is unknown to ",
                     !of_model_.empty()       ? std::string("the model")
                     : written_names_.empty() ? training
                                              : "'" + file_ + "'",
                     picture::did_you_mean(name, listing_.class_names),
                     "; known classes: ", picture::list_of(listing_.class_names),
                     list.numbered && written_names_.empty()
                         ? "; the data option classes=FILE names those of numbers"
                         : "");
}

}  // namespace tandem::image_folder
