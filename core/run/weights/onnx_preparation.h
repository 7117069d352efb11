// How the images of an ONNX file were prepared, and what its outputs are called, as far as somebody
// says it: a preprocessor_config.json or config.json beside it (Hugging Face, timm), or the file's
// own metadata (this program, Ultralytics, Windows ML). What is said is done, or named as not done.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/run/weights/published_weights.h"

namespace tandem {

// What `preprocessing` of an export of this program says, as parameters of the data set.
[[nodiscard]] std::map<std::string, std::string> parameters_of_export(
    const std::string& text, const std::filesystem::path& file);

struct ToldPreparation {
  std::string source;                    // "the file itself"; "" if nobody says anything
  std::vector<std::string> class_names;  // none: nobody says them
  std::vector<std::string> notes;        // lines on what cannot be done as it is said
};
// Sets mean, deviation, scale, order of channels, resizing and filter of `published`. Error for a
// file beside it that cannot be read, or has a value that does not fit.
[[nodiscard]] ToldPreparation read_preparation_beside(const std::filesystem::path& file,
                                                      PublishedWeights& published);
// The same by the file's metadata, without names.
[[nodiscard]] ToldPreparation read_preparation_in(
    const std::map<std::string, std::string>& metadata, PublishedWeights& published);

// The names of classes that the metadata has; none if it has none.
[[nodiscard]] std::vector<std::string> names_in(const std::map<std::string, std::string>& metadata);

}  // namespace tandem
