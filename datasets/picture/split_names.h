// The names that people give to splits: train, Training, trainset, seg_train, valid, dev, eval,
// test1, TEST ... Used for folders, for lists and for columns of lists. ASCII letters only.
#pragma once

#include <string>
#include <string_view>

namespace tandem::picture {

struct SplitName {
  std::string split;  // train, val or test; "": the name has no word of a split, or of several
  // The other words in lower case, without those that say nothing (set, data, images, numbers):
  // "seg" of "seg_train". Empty: the name is a split's whatever is beside it.
  std::string rest;
};
[[nodiscard]] SplitName parse_split_name(std::string_view name);

// "train", "val" or "test" if the name is a split's whatever is beside it; else "".
[[nodiscard]] std::string split_of_name(std::string_view name);
// Whether it is one of the words for evaluation (eval), which are of the validation split, or of
// the test split where another folder has a name of the validation split.
[[nodiscard]] bool is_evaluation(std::string_view name);

}  // namespace tandem::picture
