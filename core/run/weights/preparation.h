// What JSON files say of the images that weights were trained with: the config.json of timm, the
// preprocessor_config.json of Hugging Face, and the text in an ONNX file that was exported here.
// Every mistake is an Error with the file, the field and what would be right.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "core/run/weights/published.h"

namespace tandem {

constexpr const char* config_file = "config.json";

// The object that a config.json must be.
[[nodiscard]] nlohmann::json read_timm_config(const std::filesystem::path& config);
// The name of the architecture; Error for options that would make another net of it.
[[nodiscard]] std::string read_plain_architecture(const nlohmann::json& config,
                                                  const std::filesystem::path& file);
// Mean, deviation, size, crop, filter, classes and license. timm writes them beside each other or
// in "pretrained_cfg".
void read_timm_preparation(const nlohmann::json& config, const std::filesystem::path& file,
                           PublishedWeights& published);

// What `preprocessing` of an export says, as parameters of the data set.
[[nodiscard]] std::map<std::string, std::string> parameters_of_export(
    const std::string& text, const std::filesystem::path& file);
// mean and std of a config.json or preprocessor_config.json beside the file. Returns its name.
[[nodiscard]] std::string read_preparation_beside(const std::filesystem::path& file,
                                                  PublishedWeights& published);

}  // namespace tandem
