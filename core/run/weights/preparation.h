// What the config.json of timm says of the images that weights were trained with. Every mistake is
// an Error with the file, the field and what would be right.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "core/run/weights/published_weights.h"

namespace tandem {

constexpr const char* config_file = "config.json";

// The name of the architecture; Error for options that would make another net of it.
[[nodiscard]] std::string read_plain_architecture(const nlohmann::json& config,
                                                  const std::filesystem::path& file);
// Mean, deviation, size, crop, filter, classes and license. timm writes them beside each other or
// in "pretrained_cfg".
void read_timm_preparation(const nlohmann::json& config, const std::filesystem::path& file,
                           PublishedWeights& published);
// Of these only mean, deviation, crop and filter.
void read_timm_images(const nlohmann::json& config, const std::filesystem::path& file,
                      PublishedWeights& published);

}  // namespace tandem
