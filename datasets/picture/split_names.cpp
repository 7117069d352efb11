#include "datasets/picture/split_names.h"

#include <algorithm>
#include <array>
#include <vector>

#include "datasets/picture/names.h"

namespace tandem::picture {
namespace {

struct Word {
  std::string_view word, split;
};
constexpr std::array words{
    Word{"train", "train"},     Word{"training", "train"},  Word{"trn", "train"},
    Word{"val", "val"},         Word{"valid", "val"},       Word{"validation", "val"},
    Word{"validate", "val"},    Word{"validating", "val"},  Word{"dev", "val"},
    Word{"devel", "val"},       Word{"development", "val"}, Word{"eval", "val"},
    Word{"evaluation", "val"},  Word{"evaluate", "val"},    Word{"holdout", "val"},
    Word{"publictest", "val"},  // of FER2013
    Word{"test", "test"},       Word{"testing", "test"},    Word{"tst", "test"},
    Word{"privatetest", "test"}};
constexpr std::array<std::string_view, 22> without_meaning{
    "set",   "sets",    "data",     "dataset", "datasets", "image",  "images", "img",
    "imgs",  "picture", "pictures", "photos",  "split",    "folder", "dir",    "list",
    "files", "file",    "labels",   "samples", "jpg",      "png"};

bool is_one_of_without_meaning(std::string_view word) {
  return std::find(without_meaning.begin(), without_meaning.end(), word) != without_meaning.end();
}

// The words of a name in lower case: letters between anything else, divided before a capital
// letter that follows a small one, as in "trainSet".
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> result;
  bool inside = false, was_small = false;
  for (const char c : name) {
    const char small = characters::lower(c);
    const bool is_capital = small != c;
    const bool is_part = (small >= 'a' && small <= 'z') || static_cast<unsigned char>(c) >= 0x80;
    if (is_part && (!inside || (is_capital && was_small))) result.emplace_back();
    if (is_part) result.back() += small;
    inside = is_part;
    was_small = is_part && !is_capital;
  }
  return result;
}

std::string_view split_of_word(std::string_view word) {
  for (const Word& known : words) {
    if (word == known.word) return known.split;
  }
  // Written as one word: "trainset", "testdata".
  for (const std::string_view end : without_meaning) {
    if (!word.ends_with(end)) continue;
    for (const Word& known : words) {
      if (word.substr(0, word.size() - end.size()) == known.word) return known.split;
    }
  }
  return "";
}

}  // namespace

SplitName parse_split_name(std::string_view name) {
  SplitName result;
  std::string whole;
  const std::vector<std::string> parts = words_of(name);
  for (const std::string& part : parts) whole += part;
  // "PublicTest" and "hold_out" are two words.
  if (const std::string_view split = split_of_word(whole); !split.empty()) {
    return {std::string(split), ""};
  }
  for (const std::string& part : parts) {
    const std::string_view split = split_of_word(part);
    if (!split.empty() && !result.split.empty() && split != result.split) return {"", ""};
    if (!split.empty()) {
      result.split = split;
    } else if (!is_one_of_without_meaning(part)) {
      result.rest += (result.rest.empty() ? "" : " ") + part;
    }
  }
  return result;
}

std::string split_of_name(std::string_view name) {
  const SplitName found = parse_split_name(name);
  return found.rest.empty() ? found.split : "";
}

bool is_evaluation(std::string_view name) {
  const std::vector<std::string> parts = words_of(name);
  return std::any_of(parts.begin(), parts.end(),
                     [](const std::string& part) { return part.starts_with("eval"); });
}

}  // namespace tandem::picture
