#include "core/run/weights/preparation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/formats/json_text.h"
#include "core/model/adapted/adapted.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool is_within(const json& value, double min, double max) {
  return value.is_number() && value.get<double>() >= min && value.get<double>() <= max;
}

// Also false of integers that int64_t cannot hold.
bool is_integer_within(const json& value, int64_t min, int64_t max) {
  return value.is_number_integer() &&
         is_within(value, static_cast<double>(min), static_cast<double>(max));
}

bool is_line(const json& value) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// The fields of a config.json. timm writes them beside each other or in "pretrained_cfg".
class TimmFields {
 public:
  TimmFields(const json& tree, const fs::path& file) : tree_(tree), file_(file) {}

  // Null if there is no such field.
  [[nodiscard]] const json* find(const char* name) const {
    const auto found = tree_.find(name);
    return found == tree_.end() ? nullptr : &*found;
  }

  // Leaves `value` as it is if there is no such field. Error if it does not fit; `right`: what
  // would.
  template <class T, class Fits>
  void read(const char* name, T& value, const Fits& fits, const std::string& right) const {
    const json* field = find(name);
    if (field == nullptr) return;
    require(name, fits(*field), right);
    field->get_to(value);
  }

  void read_colors(const char* name, double min, std::array<double, 3>& values) const {
    const auto fits = [&](const json& field) {
      return field.is_array() && field.size() == 3 &&
             std::all_of(field.begin(), field.end(),
                         [&](const json& value) { return is_within(value, min, 1); });
    };
    read(name, values, fits,
         fmt::format("three numbers from {:g} to 1, of red, green and blue", min));
  }

  void read_line(const char* name, std::string& text) const {
    read(name, text, is_line, "a line of text");
  }

  void require(const char* name, bool fits, const std::string& right) const {
    if (fits) return;
    constexpr size_t max_shown = 60;
    const json* field = find(name);
    std::string value = field == nullptr ? "is missing" : field->dump();
    if (value.size() > max_shown) value = value.substr(0, max_shown) + "...";
    throw error("'{}': '{}' {}: it must be {}", file_.string(), name, value, right);
  }

 private:
  const json& tree_;
  const fs::path& file_;
};

void read_preparation(const TimmFields& fields, PublishedWeights& published) {
  constexpr int64_t max_classes = 10'000'000;  // the classifier's size is the exact test
  constexpr double min_crop = 0.1, min_deviation = 1e-6;
  fields.read_colors("mean", 0, published.mean);
  fields.read_colors("std", min_deviation, published.std);
  fields.read(
      "crop_pct", published.crop_side,
      [](const json& value) { return is_within(value, min_crop, 1); },
      fmt::format("a number from {:g} to 1", min_crop));
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
  fields.read_line("interpolation", published.interpolation);
  const json* license = fields.find("license");
  if (license != nullptr && !license->is_null()) fields.read_line("license", published.license);
  std::string crop_mode = "center";
  fields.read_line("crop_mode", crop_mode);
  static const std::map<std::string, std::string> fits{
      {"center", "crop"}, {"squash", "squash"}, {"border", "pad"}};
  fields.require("crop_mode", fits.contains(crop_mode), "center, squash or border");
  if (fields.find("crop_mode") != nullptr) published.fit = fits.at(crop_mode);
}

// What would make another net of the architecture. Its arrays may have the same names and shapes,
// so that only the config tells.
void require_plain_architecture(const TimmFields& fields) {
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

json read_timm_config(const fs::path& config) {
  json tree;
  try {
    tree = parse_json(read_text_file(config));
  } catch (const JsonMistake& mistake) {
    throw error("'{}' is not a config.json of timm's: {}", config.string(), mistake.what());
  }
  if (tree.is_object()) return tree;
  throw error("'{}' is not a config.json of timm's: it must be an object", config.string());
}

std::string read_plain_architecture(const json& config, const fs::path& file) {
  const TimmFields fields(config, file);
  std::string architecture;
  fields.read_line("architecture", architecture);
  fields.require("architecture", !architecture.empty(), "the name of a net, as \"resnet50\"");
  require_plain_architecture(fields);
  return architecture;
}

void read_timm_preparation(const json& config, const fs::path& file, PublishedWeights& published) {
  const TimmFields fields(config, file);
  read_preparation(fields, published);
  const json* own = fields.find("pretrained_cfg");
  if (own == nullptr) return;
  fields.require("pretrained_cfg", own->is_object(), "an object with 'mean', 'std' and others");
  read_preparation(TimmFields(*own, file), published);
}

std::map<std::string, std::string> parameters_of_export(const std::string& text,
                                                        const fs::path& file) {
  json tree;
  try {
    tree = parse_json(text);
  } catch (const JsonMistake& mistake) {
    throw error("'{}': its 'preprocessing' cannot be read: {}", file.string(), mistake.what());
  }
  const TimmFields fields(tree, file);
  double scale = 1;
  int64_t resize = 0;
  int64_t resize_width = 0;
  std::string channels, filter, rounding, fit;
  fields.read(
      "scale", scale, [](const json& v) { return v.is_number(); }, "a number");
  fields.read(
      "shorter_side", resize, [](const json& v) { return is_integer_within(v, 0, max_image_side); },
      "a number of pixels");
  fields.read(
      "resized_width", resize_width,
      [](const json& v) { return is_integer_within(v, 0, max_image_side); }, "a number of pixels");
  fields.read_line("fit", fit);
  fields.read_line("channels", channels);
  fields.read_line("filter", filter);
  fields.read_line("rounding", rounding);
  std::map<std::string, std::string> parameters{{"scale", fmt::format("{:.9g}", scale)}};
  if (resize > 0) parameters["resize"] = fmt::format("{}", resize);
  if (resize_width > 0) parameters["resize_width"] = fmt::format("{}", resize_width);
  if (!fit.empty() && fit != "crop") parameters["fit"] = fit;
  if (channels == "rgb") parameters["color"] = "rgb";
  if (filter == "bicubic") parameters["interpolation"] = "bicubic";
  if (rounding == "each pass") parameters["resampling"] = "pillow";
  const json* means = fields.find("mean");
  if (means != nullptr && means->is_array() && !means->empty()) {
    std::vector<double> values;
    for (const json& value : *means) values.push_back(value.is_number() ? value.get<double>() : 0);
    if (channels == "rgb") std::reverse(values.begin(), values.end());  // given as B,G,R
    parameters["mean"] = fmt::format("{:.9g}", fmt::join(values, ","));
  }
  return parameters;
}

std::string read_preparation_beside(const fs::path& file, PublishedWeights& published) {
  for (const char* name : {"preprocessor_config.json", "config.json"}) {
    const fs::path beside = file.parent_path() / name;
    if (!path_status(beside).is_file()) continue;
    json tree;
    try {
      tree = parse_json(read_text_file(beside));
    } catch (const JsonMistake& mistake) {
      throw error("'{}' cannot be read: {}", beside.string(), mistake.what());
    }
    const json* chosen = &tree;
    if (tree.is_object() && tree.contains("pretrained_cfg")) chosen = &tree["pretrained_cfg"];
    const TimmFields fields(*chosen, beside);
    for (const char* prefix : {"", "image_"}) {
      if (fields.find((std::string(prefix) + "mean").c_str()) == nullptr) continue;
      fields.read_colors((std::string(prefix) + "mean").c_str(), 0, published.mean);
      constexpr double min_deviation = 1e-6;
      fields.read_colors((std::string(prefix) + "std").c_str(), min_deviation, published.std);
      return beside.string();
    }
  }
  return "";
}

}  // namespace tandem
