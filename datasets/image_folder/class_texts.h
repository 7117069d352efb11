// Texts that would be taken as the names of classes and look like something else: numbers as people
// write them, words among numbers, sentences.
#pragma once

#include <string>

#include "datasets/image_folder/label_texts.h"
#include "datasets/image_folder/list_file.h"

namespace tandem::image_folder {

// Refusal of columns that would be trained on as nonsense; else what is to be said of the texts,
// "" for usual ones. `is_called_class`: the heading says that they are classes, or there is none.
[[nodiscard]] std::string check_class_texts(const ListFile& list, const Survey& survey,
                                            bool is_called_class);

}  // namespace tandem::image_folder
