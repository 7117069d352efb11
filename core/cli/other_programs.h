// What the commands and options of other programs (Caffe, Ultralytics, timm, fastai, Keras) are
// here, for those who type what they know.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace tandem::cli {

// "here it is 'test'"; "" for a word that is no command of theirs.
[[nodiscard]] std::string command_of_other_program(const std::string& name);

// Names that options have in other programs, with values as here, and the option here.
[[nodiscard]] const std::map<std::string, std::string>& options_of_other_programs();

// What another option is here: "here it is '--devices gpu:0'"; "" for one that is not known, or
// whose counterpart the command has not. `name`: with two dashes, words parted by '-' or '_'.
[[nodiscard]] std::string option_of_other_program(
    const std::string& name, const std::function<bool(const char* option)>& has_option);

}  // namespace tandem::cli
