#include "core/run/weights/preparation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "core/base/error.h"
#include "core/model/adapted/adapted.h"
#include "core/run/weights/config_fields.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

void read_images(const ConfigFields& fields, PublishedWeights& published) {
  constexpr double min_crop = 0.1, min_deviation = 1e-6;
  fields.read_colors("mean", 0, published.mean);
  fields.read_colors("std", min_deviation, published.std);
  fields.read(
      "crop_pct", published.crop_side,
      [](const json& value) { return is_within(value, min_crop, 1); },
      fmt::format("a number from {:g} to 1", min_crop));
  fields.read_line("interpolation", published.interpolation);
  std::string crop_mode = "center";
  fields.read_line("crop_mode", crop_mode);
  static const std::map<std::string, std::string> fits{
      {"center", "crop"}, {"squash", "squash"}, {"border", "pad"}};
  fields.require("crop_mode", fits.contains(crop_mode), "center, squash or border");
  if (fields.find("crop_mode") != nullptr) published.fit = fits.at(crop_mode);
}

void read_preparation(const ConfigFields& fields, PublishedWeights& published) {
  constexpr int64_t max_classes = 10'000'000;  // the classifier's size is the exact test
  read_images(fields, published);
  std::array<int64_t, 3> size{3, published.image_size, published.image_size};
  const auto is_image = [](const json& value) {
    return value.is_array() && value.size() == 3 && is_integer_within(value[0], 3, 3) &&
           is_integer_within(value[1], 1, max_image_side) &&
           is_integer_within(value[2], 1, max_image_side) && value[1] == value[2];
  };
  fields.read(
      "input_size", size, is_image,
      fmt::format("[3, size, size] of square color images, of 1 to {} pixels", max_image_side));
  published.image_size = size[1];
  fields.read(
      "num_classes", published.classes,
      [](const json& value) { return is_integer_within(value, 1, max_classes); },
      fmt::format("an integer from 1 to {}", max_classes));
  fields.read_line("license", published.license);
}

using Reader = void (*)(const ConfigFields&, PublishedWeights&);
void read_both(const json& config, const fs::path& file, PublishedWeights& published, Reader read) {
  const ConfigFields fields(config, file);
  read(fields, published);
  const json* own = fields.find("pretrained_cfg");
  if (own == nullptr) return;
  fields.require("pretrained_cfg", own->is_object(), "an object with 'mean', 'std' and others");
  read(ConfigFields(*own, file), published);
}

// What would make another net of the architecture. Its arrays may have the same names and shapes,
// so that only the config tells.
void require_plain_architecture(const ConfigFields& fields) {
  const json* pool = fields.find("global_pool");
  fields.require("global_pool", pool == nullptr || *pool == "avg" || *pool == "",
                 "\"avg\": other pooling before the classifier is not supported");
  const json* arguments = fields.find("model_args");
  if (arguments == nullptr || arguments->is_null()) return;
  fields.require("model_args", arguments->is_object(), "an object");
  static const std::set<std::string> harmless{"drop_path_rate", "drop_rate", "img_size",
                                              "num_classes"};
  for (const auto& [name, value] : arguments->items()) {
    const bool is_plain = harmless.contains(name) || (name == "global_pool" && value == "avg") ||
                          (name == "in_chans" && value == 3);
    fields.require(
        "model_args", is_plain,
        fmt::format("without '{}', which makes another net than the installed one", name));
  }
}

}  // namespace

std::string read_plain_architecture(const json& config, const fs::path& file) {
  const ConfigFields fields(config, file);
  std::string architecture;
  fields.read_line("architecture", architecture);
  fields.require("architecture", !architecture.empty(), "the name of a net, as \"resnet50\"");
  require_plain_architecture(fields);
  return architecture;
}

void read_timm_preparation(const json& config, const fs::path& file, PublishedWeights& published) {
  read_both(config, file, published, read_preparation);
}

void read_timm_images(const json& config, const fs::path& file, PublishedWeights& published) {
  read_both(config, file, published, read_images);
}

}  // namespace tandem
