#include "core/run/weights/onnx_preparation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/formats/json_text.h"
#include "core/model/adapted/adapted.h"
#include "core/run/weights/config_fields.h"
#include "core/run/weights/preparation.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double min_deviation = 1e-6, max_color = 65535;

// Whether there is a field with that value; `usual` where there is no such field.
bool is_true(const ConfigFields& fields, const char* name, bool usual) {
  bool value = usual;
  fields.read(
      name, value, [](const json& v) { return v.is_boolean(); }, "true or false");
  return value;
}

// "size" and "crop_size" of Hugging Face: a number, {"height", "width"} or {"shortest_edge"}.
struct Size {
  bool is_given = false, is_edge = false;
  int64_t side = 0;  // the larger one
};

Size size_of(const ConfigFields& fields, const char* name, ToldPreparation& told) {
  const json* field = fields.find(name);
  if (field == nullptr) return {};
  const auto side = [](const json& v) { return is_integer_within(v, 1, max_image_side); };
  if (side(*field)) return {true, false, field->get<int64_t>()};
  if (field->is_array() && field->size() == 2) {
    fields.require(name, side(field->front()) && side(field->back()), "two numbers of pixels");
    return {true, false, std::max(field->front().get<int64_t>(), field->back().get<int64_t>())};
  }
  constexpr const char* right =
      R"(a number of pixels, {"height": H, "width": W} or {"shortest_edge": S})";
  fields.require(name, field->is_object(), right);
  if (field->contains("shortest_edge")) {
    fields.require(name, side(field->at("shortest_edge")), right);
    return {true, true, field->at("shortest_edge").get<int64_t>()};
  }
  if (!field->contains("height") || !field->contains("width")) {
    told.notes.push_back(fmt::format("'{}' {}: it is not done", name, field->dump()));
    return {};
  }
  fields.require(name, side(field->at("height")) && side(field->at("width")), right);
  return {true, false,
          std::max(field->at("height").get<int64_t>(), field->at("width").get<int64_t>())};
}

// What classes of Hugging Face's do that no field says. `type`: how their names begin.
struct Processor {
  const char* type = "";
  bool squashes_before_crop = false;  // a size of one number
  bool enlarges_by_crop_pct = false;  // the shorter side
  double enlarges_by = 1;             // the same
  bool may_divide_twice = false;      // by the deviation, unless "include_top" is false
};
constexpr std::array processors{Processor{.type = "DeiT", .squashes_before_crop = true},
                                Processor{.type = "PoolFormer", .enlarges_by_crop_pct = true},
                                Processor{.type = "Levit", .enlarges_by = 256.0 / 224},
                                Processor{.type = "EfficientNet", .may_divide_twice = true}};

Processor processor_of(const ConfigFields& fields) {
  std::string type;
  for (const char* name : {"feature_extractor_type", "image_processor_type"}) {
    fields.read_line(name, type);
  }
  for (const Processor& one : processors) {
    if (type.starts_with(one.type)) return one;
  }
  return {};
}

// x = (pixel scale - mean) / std, where each of the steps is done.
void read_arithmetic(const ConfigFields& fields, PublishedWeights& published,
                     ToldPreparation& told) {
  const bool has_prefix = fields.find("image_mean") != nullptr || fields.find("mean") == nullptr;
  const std::string mean = has_prefix ? "image_mean" : "mean",
                    std = has_prefix ? "image_std" : "std";
  fields.read_colors(mean.c_str(), -max_color, published.mean, max_color);
  fields.read_colors(std.c_str(), min_deviation, published.std, max_color);
  if (!is_true(fields, "do_normalize", fields.find(mean.c_str()) != nullptr)) {
    published.mean = {0, 0, 0};
    published.std = {1, 1, 1};
  } else {
    for (const std::string& name : {mean, std}) {
      if (fields.find(name.c_str()) != nullptr) continue;
      told.notes.push_back(fmt::format("'{}' is missing: torchvision's is taken", name));
    }
  }
  fields.read(
      "rescale_factor", published.scale, [](const json& v) { return is_within(v, 1e-9, 1e3); },
      "a number above 0");
  const bool rescales = is_true(fields, "do_rescale", true);
  if (!rescales) published.scale = 1;
  if (rescales && is_true(fields, "rescale_offset", false)) {
    for (double& value : published.mean) value += 1;
  }
  if (processor_of(fields).may_divide_twice && is_true(fields, "include_top", true)) {
    for (double& value : published.std) value *= value;
  }
  published.is_bgr = is_true(fields, "do_flip_channel_order", false);
}

void read_filter(const ConfigFields& fields, PublishedWeights& published) {
  static constexpr std::array names{"nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"};
  int64_t filter = 2;  // Pillow's number
  fields.read(
      "resample", filter,
      [](const json& v) { return is_integer_within(v, 0, int64_t(names.size()) - 1); },
      "a filter's number in Pillow, 0 to 5");
  published.interpolation = names.at(size_t(filter));
}

void read_resizing(const ConfigFields& fields, PublishedWeights& published, ToldPreparation& told) {
  constexpr double largest_whole = 384;  // from which on ConvNeXt's images are not cropped
  Size size = size_of(fields, "size", told), crop = size_of(fields, "crop_size", told);
  const bool crops = is_true(fields, "do_center_crop", crop.is_given);
  if (!is_true(fields, "do_resize", true)) {
    told.notes.push_back("'do_resize' false: images are resized nevertheless, as the net needs");
    size = {};
  }
  double share = 0;
  fields.read(
      "crop_pct", share, [](const json& v) { return is_within(v, 0.1, 1); },
      "a number from 0.1 to 1");
  published.crop_side = published.resized_side = 1;
  if (!size.is_given) return;
  auto edge = static_cast<double>(size.side);
  const Processor processor = processor_of(fields);
  if (share > 0 && !crops) {
    published.fit = edge < largest_whole ? "crop" : "squash";
    if (edge < largest_whole) published.crop_side = share;
    return;
  }
  // A number alone is the shorter side of images that are cropped, and both sides of others.
  const bool keeps_shape = size.is_edge || (crops && fields.find("size")->is_number() &&
                                            !processor.squashes_before_crop);
  published.fit = keeps_shape ? "crop" : "squash";
  if (!crops || !crop.is_given) return;
  edge = std::floor(edge * processor.enlarges_by);
  if (processor.enlarges_by_crop_pct && share > 0) edge = std::floor(edge / share);
  published.crop_side = static_cast<double>(crop.side);
  published.resized_side = std::max(edge, published.crop_side);
  if (edge < published.crop_side) {
    told.notes.push_back(fmt::format("'size' {} is less than 'crop_size' {}: {} is taken for both",
                                     size.side, crop.side, crop.side));
  }
}

// {"0": "cat", "1": "dog"}; none unless there is a name for each number.
std::vector<std::string> numbered_names(const json& tree) {
  if (!tree.is_object()) return {};
  std::vector<std::string> names;
  for (size_t i = 0; i < tree.size(); ++i) {
    const auto name = tree.find(std::to_string(i));
    if (name == tree.end() || !name->is_string()) return {};
    names.push_back(name->get<std::string>());
  }
  return names;
}

// timm's "label_names", with "label_descriptions" of each where they are; Hugging Face's
// "id2label".
std::vector<std::string> class_names_of(const json& tree) {
  if (!tree.is_object()) return {};
  if (const auto found = tree.find("id2label"); found != tree.end()) return numbered_names(*found);
  const auto listed = tree.find("label_names");
  if (listed == tree.end() || !listed->is_array()) return {};
  const auto texts = tree.find("label_descriptions");
  std::vector<std::string> names;
  for (const json& name : *listed) {
    if (!name.is_string()) return {};
    names.push_back(name.get<std::string>());
    if (texts == tree.end() || !texts->is_object()) continue;
    const auto text = texts->find(names.back());
    if (text != texts->end() && text->is_string()) names.back() = text->get<std::string>();
  }
  return names;
}

// What is known of such files and changes no pixel, or is read above. Another "do_..." is named.
void note_other_steps(const json& tree, ToldPreparation& told) {
  static const std::set<std::string> known{
      "do_resize",      "do_center_crop",        "do_rescale",       "do_normalize",
      "do_convert_rgb", "do_flip_channel_order", "do_reduce_labels", "do_resize_and_center_crop"};
  for (const auto& [name, value] : tree.items()) {
    if (name.starts_with("do_") && value == true && !known.contains(name)) {
      told.notes.push_back(fmt::format("'{}' is not done here", name));
    }
  }
}

// A field of Hugging Face's that says what is done to pixels.
bool is_processor(const json& tree) {
  static constexpr std::array fields{"image_mean", "do_normalize", "do_rescale", "do_resize"};
  return std::any_of(fields.begin(), fields.end(),
                     [&](const char* name) { return tree.contains(name); });
}

// Another program's may be called so, too.
bool is_of_timm(const ConfigFields& fields) {
  const json *own = fields.find("pretrained_cfg"), *mean = fields.find("mean");
  return (own != nullptr && own->is_object()) || (mean != nullptr && mean->is_array());
}

}  // namespace

std::map<std::string, std::string> parameters_of_export(const std::string& text,
                                                        const fs::path& file) {
  json tree;
  try {
    tree = parse_json(text);
  } catch (const JsonMistake& mistake) {
    throw error("'{}': its 'preprocessing' cannot be read: {}", file.string(), mistake.what());
  }
  const ConfigFields fields(tree, file);
  const json* is_inside = fields.find("in_model");
  if (is_inside != nullptr && *is_inside == true) {
    std::string given;
    fields.read_line("channels_of_input", given);
    std::map<std::string, std::string> plain{{"scale", "1"}};
    if (given == "rgb") plain["color"] = "rgb";
    return plain;
  }
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

ToldPreparation read_preparation_beside(const fs::path& file, PublishedWeights& published) {
  ToldPreparation told;
  for (const char* name : {"preprocessor_config.json", "config.json"}) {
    const fs::path beside = file.parent_path() / name;
    if (!path_status(beside).is_file()) continue;
    json tree;
    try {
      tree = read_config(beside);
    } catch (const Error& unreadable) {
      if (std::string(name) != config_file) throw;  // any program may call a file so
      told.notes.push_back(unreadable.what());
      continue;
    }
    if (told.class_names.empty()) told.class_names = class_names_of(tree);
    if (!told.source.empty()) continue;
    const ConfigFields fields(tree, beside);
    if (is_processor(tree)) {
      read_arithmetic(fields, published, told);
      read_filter(fields, published);
      read_resizing(fields, published, told);
      note_other_steps(tree, told);
    } else if (is_of_timm(fields)) {
      read_timm_images(tree, beside, published);
    } else {
      continue;
    }
    told.source = beside.string();
  }
  if (published.interpolation != "bilinear" && published.interpolation != "bicubic") {
    told.notes.push_back(
        fmt::format("its images are resized by '{}', which is not supported: "
                    "bilinear is used",
                    published.interpolation));
  }
  return told;
}

namespace {

std::string value_of(const std::map<std::string, std::string>& metadata, const char* name) {
  const auto found = metadata.find(name);
  return found == metadata.end() ? "" : found->second;
}

// "{0: 'cat', 1: \"d'or\"}", as Python writes it; none for another text.
std::vector<std::string> names_of_python(const std::string& text) {
  std::vector<std::string> names;
  size_t at = 0;
  const auto skip = [&](const std::string& some) {
    while (at < text.size() && some.find(text[at]) != std::string::npos) ++at;
  };
  skip(" {");
  while (at < text.size() && text[at] != '}') {
    const std::string number = std::to_string(names.size()) + ":";
    if (text.compare(at, number.size(), number) != 0) return {};
    at += number.size();
    skip(" ");
    const char quote = at < text.size() ? text[at] : ' ';
    if (quote != '\'' && quote != '"') return {};
    std::string name;
    for (++at; at < text.size() && text[at] != quote; ++at) {
      if (text[at] == '\\') {
        ++at;
        if (at == text.size() || std::string("\\'\"").find(text[at]) == std::string::npos)
          return {};
      }
      name += text[at];
    }
    names.push_back(name);
    ++at;
    skip(" ,");
  }
  return names;
}

// What pixels of 0 to 255 become by "Image.NominalPixelRange" of Windows ML.
struct PixelRange {
  const char* name;
  double scale, mean, deviation;
};
constexpr std::array pixel_ranges{PixelRange{"", 1, 0, 1},
                                  PixelRange{"NominalRange_0_255", 1, 0, 1},
                                  PixelRange{"NominalRange_16_235", 219.0 / 255, -16, 1},
                                  PixelRange{"Normalized_0_1", 1.0 / 255, 0, 1},
                                  PixelRange{"Normalized_1_1", 1.0 / 255, 0.5, 0.5}};

bool take_windows_ml(const std::map<std::string, std::string>& metadata,
                     PublishedWeights& published, ToldPreparation& told) {
  const std::string format = value_of(metadata, "Image.BitmapPixelFormat"),
                    range = value_of(metadata, "Image.NominalPixelRange");
  if (format.empty() && range.empty()) return false;
  const auto found = std::find_if(pixel_ranges.begin(), pixel_ranges.end(),
                                  [&](const PixelRange& one) { return range == one.name; });
  if (found == pixel_ranges.end()) {
    told.notes.push_back(fmt::format(
        "'Image.NominalPixelRange' {} is not known: pixels of 0 to 255 are given", range));
  }
  const PixelRange& given = found == pixel_ranges.end() ? pixel_ranges[0] : *found;
  published.scale = given.scale;
  published.mean.fill(given.mean);
  published.std.fill(given.deviation);
  published.is_bgr = format.starts_with("Bgr");
  return true;
}

}  // namespace

ToldPreparation read_preparation_in(const std::map<std::string, std::string>& metadata,
                                    PublishedWeights& published) {
  ToldPreparation told;
  if (take_windows_ml(metadata, published, told)) {
    told.source = "the file itself";
  } else if (value_of(metadata, "author") == "Ultralytics") {
    published.mean = {0, 0, 0};
    published.std = {1, 1, 1};
    published.crop_side = published.resized_side = 1;
    told.source = "the file itself (of Ultralytics: pixels of 0 to 1)";
  }
  return told;
}

std::vector<std::string> names_in(const std::map<std::string, std::string>& metadata) {
  return names_of_python(value_of(metadata, "names"));
}

}  // namespace tandem
