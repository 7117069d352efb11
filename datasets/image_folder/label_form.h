// What the label columns of a list hold: a class of each image, several labels, or numbers; and the
// values of an entry in that form. Every mistake is a Refusal (TANDEM_INVALID) with its file and
// line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "datasets/image_folder/list_file.h"
#include "plugins/abi.h"

namespace tandem::image_folder {

constexpr size_t longest_class_name = 1000;  // bytes; messages contain it

struct LabelForm {
  enum class Kind {
    one_class,  // a class's name or number
    one_hot,    // a column for each class, of which one is 1
    columns,    // a column of 0 and 1 for each label
    tags,       // names of labels in one column
    numbers
  };
  // How a column of numbers says yes and no, if it says nothing else.
  enum class Truth { other, words, zero_one, minus_one_one };

  Kind kind = Kind::one_class;
  std::string file;           // the list
  std::string training_file;  // that of training, whose form this has; "": this is of training
  // Between tags; '[': as a list of Python's is written; '\0': each is one.
  char separator = '\0';
  // Of columns, numbers and tags; of classes those of one_hot.
  std::vector<std::string> names;
  std::vector<size_t> places;  // of each name the column of the list; empty: in their order
  std::vector<Truth> truths;   // of numbers, for each name
  // Of tags that are written as numbers, from 0 on, where a file names these; else none.
  std::vector<std::string> number_names;
  std::vector<std::string> notes;  // what was taken for what

  [[nodiscard]] int64_t task() const;  // TANDEM_TASK_CLASSES, ...
};

// Whether texts are numbers from 0 on, and none of them is one of the names that a file gives.
[[nodiscard]] bool are_numbers_of(const std::set<std::string>& texts,
                                  const std::vector<std::string>& names);

// The class of an entry: its name, or its number in a list of Caffe's.
[[nodiscard]] std::string class_of(const LabelForm& form, const ListFile& list,
                                   const ListEntry& entry);
// The names of labels of an entry, each once.
[[nodiscard]] std::vector<std::string> tags_of(const LabelForm& form, const ListEntry& entry);
// Values of the names of a form that has several labels or numbers.
[[nodiscard]] std::vector<float> targets_of(const LabelForm& form, const ListFile& list,
                                            const ListEntry& entry);

}  // namespace tandem::image_folder
