#include "core/train/published.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/strings.h"
#include "core/model/definition.h"
#include "core/model/models.h"
#include "core/train/checkpoint.h"
#include "core/train/run_folder.h"
#include "core/train/safetensors.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* names_file = "torch.names";
constexpr const char* not_needed = "-";

// A rule for names: one '*' on each side stands for the same text.
struct NameRule {
  std::string from, to;
};
struct NameRules {
  std::vector<NameRule> rules;
  std::string net;  // of an architecture under another name, by the line "net NAME"
};

NameRules read_name_rules(const fs::path& file) {
  NameRules result;
  std::istringstream lines(read_text_file(file));
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line);
    NameRule rule;
    std::string more;
    if (!(words >> rule.from) || rule.from.front() == '#') continue;
    if (!(words >> rule.to) || (words >> more)) {
      throw error("{}:{}: a rule is two names, as '*.running_mean *.normalize.mean'", file.string(),
                  number);
    }
    if (rule.from == "net") {
      result.net = rule.to;
    } else {
      result.rules.push_back(rule);
    }
  }
  return result;
}

// The name by the rule; nullopt if it does not fit.
std::optional<std::string> renamed(const std::string& name, const NameRule& rule) {
  const size_t star = rule.from.find('*');
  if (star == std::string::npos) {
    return name == rule.from ? std::optional(rule.to) : std::nullopt;
  }
  const std::string begin = rule.from.substr(0, star), end = rule.from.substr(star + 1);
  const bool fits =
      name.size() >= begin.size() + end.size() && name.starts_with(begin) && name.ends_with(end);
  if (!fits) return std::nullopt;
  const std::string middle = name.substr(begin.size(), name.size() - begin.size() - end.size());
  std::string result = rule.to;
  const size_t place = result.find('*');
  if (place != std::string::npos) result.replace(place, 1, middle);
  return result;
}

// The file's arrays under the names that they have here.
SafetensorsFile with_names_of_net(SafetensorsFile file, const std::vector<NameRule>& rules) {
  std::map<std::string, SafetensorsFile::Array> arrays;
  for (auto& [name, array] : file.arrays) {
    std::string here = name;
    for (const NameRule& rule : rules) {
      if (const auto found = renamed(name, rule)) {
        here = *found;
        break;
      }
    }
    if (here != not_needed) arrays.emplace(here, std::move(array));
  }
  file.arrays = std::move(arrays);
  return file;
}

// BatchNorm keeps sums over the steps and the sum of their weights. In the long run that is
// 1 / (1 - fraction), with which the next step counts as much as in PyTorch.
void add_sums_of_statistics(const Net& net, SafetensorsFile& file) {
  for (const Layer& layer : net.layers) {
    if (std::string(layer.type->name) != "BatchNorm") continue;
    const auto mean = file.arrays.find(layer.name + ".mean");
    const auto variance = file.arrays.find(layer.name + ".variance");
    if (mean == file.arrays.end() || variance == file.arrays.end()) continue;
    const auto sum = static_cast<float>(
        1 / (1 - std::min(0.9999, layer.attributes->number("moving_average_fraction"))));
    for (float& value : mean->second.values) value *= sum;
    for (float& value : variance->second.values) value *= sum;
    file.arrays[layer.name + ".scale_factor"] = {{1}, {sum}};
  }
}

std::string without_tag(const std::string& name) {
  return name.substr(0, name.find('.'));
}

// "" if there is none.
fs::path find_net_of(const std::string& architecture) {
  const fs::path names = find_pretrained_names(architecture);
  const std::string other = names.empty() ? "" : read_name_rules(names).net;
  return find_pretrained_net(other.empty() ? architecture : other);
}

fs::path net_of_architecture(const std::string& architecture, const fs::path& where) {
  const fs::path net = find_net_of(architecture);
  if (!net.empty()) return net;
  const std::vector<std::string> known = pretrained_net_names();
  throw error(
      "weights '{}' are of architecture '{}', of which there is no net here{}; there are {}",
      where.string(), architecture, did_you_mean(architecture, known), fmt::join(known, ", "));
}

// timm writes these beside each other or in "pretrained_cfg".
void read_preparation(const json& tree, PublishedWeights& published) {
  const auto read = [&tree](const char* name, auto& value) {
    if (tree.contains(name) && !tree.at(name).is_null()) tree.at(name).get_to(value);
  };
  read("mean", published.mean);
  read("std", published.std);
  read("crop_pct", published.crop_share);
  read("interpolation", published.interpolation);
  read("license", published.license);
  read("num_classes", published.classes);
  if (tree.contains("input_size")) published.image_size = tree.at("input_size").at(2);
}

void require_preparation(const PublishedWeights& published, const fs::path& config) {
  const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
  if (positive(published.std[0]) && positive(published.std[1]) && positive(published.std[2]) &&
      published.crop_share > 0 && published.crop_share <= 1 && published.image_size > 0 &&
      published.image_size <= 16384) {
    return;
  }
  throw error("'{}': std, crop_pct and input_size must be above 0, crop_pct at most 1",
              config.string());
}

// A run's weights and how its images were prepared.
PublishedWeights read_run_folder(const fs::path& folder) {
  const RunFolder run = RunFolder::open(folder);
  const RunRecord record = run.record();
  const std::string name = has_checkpoint(folder, "best") ? "best" : "last";
  if (!has_checkpoint(folder, name)) throw error("run '{}' has no checkpoint yet", folder.string());
  PublishedWeights published;
  published.is_run = true;
  published.file = folder / (name + ".safetensors");
  published.architecture = record.net_name;
  published.net = run.net_file();
  published.image_size = record.data.h;
  for (const char* one : {"mean", "scale", "color", "interpolation"}) {
    const auto found = record.data_parameters.find(one);
    if (found != record.data_parameters.end()) published.run_parameters.insert(*found);
  }
  double resize = 0;
  const auto found = record.data_parameters.find("resize");
  if (found != record.data_parameters.end()) (void)parse_number(found->second, &resize);
  const auto crop = static_cast<double>(record.data.h);
  published.crop_share = resize > crop ? crop / resize : 1;
  return published;
}

PublishedWeights read_timm_folder(const fs::path& folder) {
  PublishedWeights published;
  const fs::path config = folder / "config.json";
  published.file = folder / "model.safetensors";
  std::error_code code;
  for (const fs::path& file : {config, published.file}) {
    if (fs::is_regular_file(file, code)) continue;
    throw error(
        "weights '{}' is a folder without {}: a folder of timm's has config.json and "
        "model.safetensors; else give a .caffemodel or .safetensors file",
        folder.string(), file.filename().string());
  }
  try {
    const json tree = json::parse(read_text_file(config));
    published.architecture = without_tag(tree.at("architecture").get<std::string>());
    read_preparation(tree, published);
    if (tree.contains("pretrained_cfg")) read_preparation(tree.at("pretrained_cfg"), published);
  } catch (const json::exception& failure) {
    const std::string what = failure.what();
    throw error("'{}' is not a config.json of timm's: {}", config.string(),
                what.substr(what.find("] ") + 2));
  }
  require_preparation(published, config);
  published.net = net_of_architecture(published.architecture, folder);
  return published;
}

}  // namespace

int64_t PublishedWeights::resize_for(int64_t crop) const {
  return std::max(crop, static_cast<int64_t>(static_cast<double>(crop) / crop_share + 1e-6));
}

std::map<std::string, std::string> PublishedWeights::data_parameters() const {
  if (is_run) return run_parameters;
  std::map<std::string, std::string> parameters{
      {"mean", fmt::format("{:.9g},{:.9g},{:.9g}", 255 * mean[2], 255 * mean[1], 255 * mean[0])},
      {"scale", fmt::format("{:.9g}", 1.0 / 255)},
      {"color", "rgb"}};
  if (interpolation == "bicubic") parameters["interpolation"] = interpolation;
  return parameters;
}

std::optional<PublishedWeights> find_published(const fs::path& path, const std::string& model) {
  std::error_code code;
  if (fs::is_directory(path, code)) {
    return RunFolder::holds_run(path) ? read_run_folder(path) : read_timm_folder(path);
  }
  if (path.extension() != ".safetensors" || !fs::is_regular_file(path, code)) return std::nullopt;
  const fs::path net = find_net_of(model);
  if (net.empty()) return std::nullopt;
  const auto metadata = read_safetensors_metadata(path);
  const auto format = metadata.find("format");
  if (format != metadata.end() && format->second == "tandem") return std::nullopt;
  PublishedWeights published;
  published.file = path;
  published.architecture = model;
  published.net = net;
  published.image_size = read_net(net).input_shape().h;
  return published;
}

Pretrained read_published(const PublishedWeights& published, const Net& net,
                          std::vector<float>* values) {
  if (published.is_run) return read_pretrained(published.file, net, values);
  SafetensorsFile file = read_safetensors(published.file, Integers::left_out);
  const fs::path own = find_pretrained_names(published.architecture);
  for (const fs::path& names : {own, published.net.parent_path() / names_file}) {
    if (!names.empty()) file = with_names_of_net(std::move(file), read_name_rules(names).rules);
  }
  file.arrays["std.weight"] = {{3}, {}};
  for (const double value : published.std) {
    file.arrays["std.weight"].values.push_back(static_cast<float>(1 / value));
  }
  add_sums_of_statistics(net, file);
  return copy_arrays(file, published.file, net, values);
}

std::string to_text(const PublishedWeights& published) {
  if (published.is_run) {
    return fmt::format(
        "net '{}' and weights of run '{}', its images resized to {} and cropped to {}",
        published.architecture, published.file.parent_path().string(),
        published.resize_for(published.image_size), published.image_size);
  }
  std::string text = fmt::format(
      "{} of '{}'{}: mean {:.4g}, std {:.4g}, color rgb, resized to {} ({}) and cropped to {}",
      published.architecture, published.file.string(),
      published.license.empty() ? "" : fmt::format(", license {}", published.license),
      fmt::join(published.mean, " "), fmt::join(published.std, " "),
      published.resize_for(published.image_size),
      published.interpolation == "bicubic" ? "bicubic" : "bilinear", published.image_size);
  if (published.interpolation != "bilinear" && published.interpolation != "bicubic") {
    text += fmt::format("; the weights were trained with {} resizing, which there is not here",
                        published.interpolation);
  }
  return text;
}

}  // namespace tandem
