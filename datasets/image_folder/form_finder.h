// Finds the form of a list's labels: in the training list by what its texts have in common, unless
// it is known. Every mistake is a Refusal (TANDEM_INVALID) with its file and line.
#pragma once

#include <string>
#include <vector>

#include "datasets/image_folder/label_form.h"

namespace tandem::image_folder {

struct FormRequest {
  std::string task = "auto";               // or labels, multilabel, regression
  std::string missing = "refuse";          // a missing value; or skip its line, zero (of labels)
  std::vector<std::string> model_names;    // of an existing model; its labels and numbers are found
                                           // by them
  bool takes_any_name = false;             // "nan" is a name, too
  std::vector<std::string> written_names;  // of a file of names, for lists without a heading
  const LabelForm* training = nullptr;     // of the training list; null: this is that list
};

// Divides the column of vectors, and removes the entries without a value where they are to be
// skipped.
[[nodiscard]] LabelForm find_form(const FormRequest& request, ListFile& list);

}  // namespace tandem::image_folder
