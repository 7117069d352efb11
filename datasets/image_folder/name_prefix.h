// Pictures of all classes in one folder, with the class before the number in each name:
// cat.0.jpg, dog_12.png, red car (3).jpg.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "datasets/image_folder/folder.h"

namespace tandem::image_folder {

constexpr const char* prefix_option = "--data-option layout=prefix";

// "cat" of "train/cat.0.jpg"; "": the name is no class with a number behind it.
[[nodiscard]] std::string class_of_name(const std::string& file);

// Whether an image below the folder has one.
[[nodiscard]] bool has_class_in_names(const std::filesystem::path& tree);

// The images below a folder by these classes, both in natural order. Refusal for an image of none.
[[nodiscard]] std::vector<ClassFolder> classes_of_names(const std::filesystem::path& tree);

// What a refusal adds of a folder in which all names seem to have classes; "" of another one.
[[nodiscard]] std::string advice_on_names(const std::filesystem::path& tree);

}  // namespace tandem::image_folder
