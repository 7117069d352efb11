#include "core/run/weights/published.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/text/strings.h"
#include "core/formats/json_text.h"
#include "core/formats/onnx_reader/file.h"
#include "core/formats/open_arrays.h"
#include "core/model/adapted/adapted.h"
#include "core/model/adapted/models.h"
#include "core/model/file/definition.h"
#include "core/model/file/name_rules.h"
#include "core/run/folder/checkpoint.h"
#include "core/run/folder/run_folder.h"
#include "core/run/weights/config_fields.h"
#include "core/run/weights/hub.h"
#include "core/run/weights/onnx_preparation.h"
#include "core/run/weights/preparation.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* names_file = "torch.names";
constexpr const char* shard_index = "model.safetensors.index.json";

std::string without_tag(const std::string& name) {
  return name.substr(0, name.find('.'));
}

fs::path net_of_architecture(const std::string& architecture, const fs::path& where) {
  const fs::path net = find_pretrained_net(architecture);
  if (!net.empty()) return net;
  throw error(
      "weights '{}' are of architecture '{}', and no net of it is installed{}; installed are {}",
      where.string(), architecture, near_model(architecture, pretrained_net_names()),
      fmt::join(pretrained_net_names(), ", "));
}

std::unique_ptr<ArrayReader> open_published(const fs::path& file) {
  std::unique_ptr<ArrayReader> reader = open_arrays(file);
  if (reader != nullptr) return reader;
  throw error("'{}' is no file of weights that is known: {}", file.string(), weight_formats);
}

// The file's arrays under the net's names, without their values.
ArrayFile arrays_of(const PublishedWeights& published, const ArrayReader& reader) {
  ArrayFile file = reader.contents();
  const fs::path own = find_pretrained_names(published.architecture);
  for (const fs::path& names : {own, published.net.parent_path() / names_file}) {
    if (names.empty()) continue;
    file = with_names_of_net(published.file, std::move(file), read_name_rules(names).rules);
  }
  return file;
}

// The resizing of a run's or an export's images, which stays in proportion to the crop.
void take_resizing(std::map<std::string, std::string>& parameters, PublishedWeights& published) {
  double resize = 0;
  const auto found = parameters.find("resize");
  published.resizes =
      found != parameters.end() && parse_number(found->second, &resize) && resize > 0;
  if (found != parameters.end()) parameters.erase(found);
  if (!published.resizes) return;
  published.crop_side = static_cast<double>(
      std::max<int64_t>(1, std::max(published.image_size, published.image_width)));
  published.resized_side = std::min<double>(resize, max_image_side);
}

// A run's weights and how its images were prepared.
PublishedWeights read_run_folder(const fs::path& folder) {
  const RunFolder run = RunFolder::open(folder);
  const RunRecord record = run.record();
  PublishedWeights published;
  published.is_run = true;
  published.file = weights_file(folder, checkpoint_name(folder, "best"));
  published.architecture = record.net_name;
  published.net = run.net_before_tuning(record);
  published.image_size = record.data.h;
  published.image_width = record.data.w;
  published.run_parameters = preparation_of(record);
  take_resizing(published.run_parameters, published);
  return published;
}

// The file of weights in a folder of timm's or of Hugging Face; "" if there is none.
fs::path weights_in(const fs::path& folder) {
  for (const char* name : {"model.safetensors", shard_index, "pytorch_model.bin"}) {
    if (path_status(folder / name).is_file()) return folder / name;
  }
  return {};
}

// As of a net of several parts, "model-00001-of-00002.safetensors".
std::vector<std::string> parts_in(const fs::path& folder) {
  std::error_code failure;
  std::vector<std::string> parts;
  for (const fs::path& path : entries_of(folder, failure)) {
    const std::string name = path.filename().string();
    if (name.find("-of-") != name.npos && name.ends_with(".safetensors")) parts.push_back(name);
  }
  std::sort(parts.begin(), parts.end());
  return parts;
}

std::string missing_in(const fs::path& folder, bool has_config, const fs::path& weights) {
  const char* file = parts_in(folder).empty() ? "model.safetensors" : shard_index;
  if (!weights.empty()) return config_file;
  return has_config ? file : fmt::format("{} and {}", config_file, file);
}

// Instead of a folder that lacks something. `weights`: the file that it has; "": none.
std::string what_to_give(const fs::path& folder, const fs::path& weights) {
  constexpr const char* how = "with the name of the net (--net NAME)";
  if (!weights.empty()) return fmt::format("else give the file '{}', {}", weights.string(), how);
  const std::vector<std::string> parts = parts_in(folder);
  if (parts.empty()) return fmt::format("else give a file: {}", weight_formats);
  return fmt::format(
      "'{}' and others are parts of one file, and {}, which says what is in each, belongs to them: "
      "copy it, too, and give it, {}",
      parts[0], shard_index, how);
}

// `file`: its weights; "" for those that the folder has.
PublishedWeights read_timm_folder(const fs::path& folder, const fs::path& file) {
  PublishedWeights published;
  const fs::path config = folder / config_file;
  published.file = file.empty() ? weights_in(folder) : file;
  const bool has_config = path_status(config).is_file();
  if (!has_config || published.file.empty()) {
    throw error(
        "weights '{}' is a folder without {}: a folder of timm's has config.json and "
        "model.safetensors; {}",
        folder.string(), missing_in(folder, has_config, published.file),
        what_to_give(folder, published.file));
  }
  const json tree = read_config(config, "is not a config.json of timm's");
  published.architecture = without_tag(read_plain_architecture(tree, config));
  read_timm_preparation(tree, config, published);
  published.net = net_of_architecture(published.architecture, file.empty() ? folder : file);
  return published;
}

// Whether the file has PyTorch's names of arrays.
bool is_of_torch(const fs::path& file) {
  if (!path_status(file).is_file()) return false;
  const std::unique_ptr<ArrayReader> reader = open_arrays(file);
  return reader != nullptr && !is_of_tandem(reader->contents());
}

// The architecture that a config.json beside the file names; "" if there is none.
std::string architecture_beside(const fs::path& file) {
  const fs::path config = file.parent_path() / config_file;
  if (!path_status(config).is_file()) return "";
  try {
    const json tree = parse_json(read_text_file(config));
    const auto found = tree.find("architecture");
    if (found != tree.end() && found->is_string()) return without_tag(found->get<std::string>());
  } catch (const JsonMistake&) {  // of another program
  }
  return "";
}

void require_model(const fs::path& path, const std::string& model,
                   const std::string& architecture) {
  if (model.empty() || model == architecture) return;
  throw error("--model {}, but weights '{}' are of architecture {}: leave --model out", model,
              path.string(), architecture);
}

// The folder in the cache for the name of a repository that is no path here; else the path.
fs::path fetched_folder(const fs::path& path, bool downloads) {
  const std::string name = path.string();
  if (path_status(path).exists() || !is_repository_name(name)) return path;
  if (!is_cached(name)) {
    if (!downloads) {
      throw error(
          "weights '{0}' are no file or folder here, and of Hugging Face's '{0}' nothing was "
          "fetched: 'tandem fetch {0}' does that, or --download",
          name);
    }
    (void)fetch_repository(name);
  }
  return cached_folder(name);
}

}  // namespace

namespace {

// Deviations of the channels as the net reads them.
std::array<double, 3> deviations_of(const PublishedWeights& published) {
  std::array<double, 3> deviations = published.std;
  if (published.is_bgr) std::reverse(deviations.begin(), deviations.end());
  return deviations;
}

// The file's net, and how its images are prepared: by what is beside the file, else by what is in
// it. An export of this program and a file that takes bytes prepare them themselves.
OnnxImport read_told(const fs::path& path, PublishedWeights& published) {
  OnnxImport onnx = import_onnx(path, std::nullopt);
  if (!onnx.preparation.empty()) return onnx;
  ToldPreparation told = read_preparation_beside(path, published);
  std::vector<std::string> names = told.class_names;
  if (told.source.empty()) {
    const std::vector<std::string> notes = told.notes;
    told = read_preparation_in(onnx.metadata, published);
    told.notes.insert(told.notes.begin(), notes.begin(), notes.end());
  }
  if (names.empty()) names = names_in(onnx.metadata);
  if (!told.source.empty()) onnx = import_onnx(path, deviations_of(published));
  onnx.class_names = names;
  published.preparation_source = told.source;
  onnx.notes.insert(onnx.notes.begin(), told.notes.begin(), told.notes.end());
  return onnx;
}

PublishedWeights read_onnx_weights(const fs::path& path) {
  PublishedWeights published;
  published.file = published.net = path;
  published.architecture = path.filename().string();  // no name of a model
  auto onnx = std::make_shared<OnnxImport>(read_told(path, published));
  if (onnx->largest_pixel > 0) {
    published.preparation_source = "the file itself";
    published.mean = {0, 0, 0};
    published.scale = onnx->largest_pixel > 1 ? 1 : 1.0 / 255;
  }
  published.image_size = onnx->net.input_shape().h;
  published.image_width = onnx->net.input_shape().w;
  if (!onnx->preparation.empty()) {
    published.run_parameters = parameters_of_export(onnx->preparation, path);
    published.preparation_source = "the file itself";
    take_resizing(published.run_parameters, published);
    if (onnx->preparation.find("\"mean_image\"") != std::string::npos &&
        published.run_parameters.contains("mean")) {
      onnx->notes.push_back(
          "the net learned with a mean of each pixel, which the file does not hold: the mean of "
          "each channel is subtracted (--data-option mean_image=mean_image.binaryproto of the "
          "run)");
    }
  }
  published.onnx = std::move(onnx);
  return published;
}

}  // namespace

std::optional<PublishedWeights> find_published(const fs::path& given, const std::string& model,
                                               bool downloads) {
  const fs::path path = fetched_folder(given, downloads);
  if (is_onnx_file(path) && path_status(path).is_file()) return read_onnx_weights(path);
  if (path_status(path).is_folder()) {
    if (RunFolder::holds_run(path)) return read_run_folder(path);
    PublishedWeights published = read_timm_folder(path, "");
    require_model(path, model, published.architecture);
    return published;
  }
  const fs::path net = find_pretrained_net(model);
  const std::string beside = net.empty() && !model.empty() ? "" : architecture_beside(path);
  if ((net.empty() && beside.empty()) || !is_of_torch(path)) return std::nullopt;
  if (!beside.empty() && (model.empty() || model == beside)) {
    return read_timm_folder(path.parent_path(), path);
  }
  PublishedWeights published;
  published.file = path;
  published.architecture = model;
  published.net = net;
  published.image_size = read_net(net).input_shape().h;
  const fs::path names = find_pretrained_names(model);
  if (names.empty()) return published;
  const NameRules rules = read_name_rules(names);
  if (!rules.interpolation.empty()) published.interpolation = rules.interpolation;
  if (rules.resize > 0 && rules.resize < published.image_size) {
    throw error("{}: resize {} is less than the side of the net's images, {}", names.string(),
                rules.resize, published.image_size);
  }
  if (rules.resize > 0) {
    published.crop_side = static_cast<double>(published.image_size);
    published.resized_side = static_cast<double>(rules.resize);
  }
  return published;
}

fs::path find_cached(const std::string& model) {
  const fs::path net = find_pretrained_net(model);
  if (net.empty()) return {};
  for (const fs::path& folder : cached_folders()) {
    const std::string architecture = architecture_beside(folder / config_file);
    if (architecture.empty() || weights_in(folder).empty()) continue;
    if (find_pretrained_net(architecture) == net) return folder;
  }
  return {};
}

NetDefinition net_of(const PublishedWeights& published) {
  if (published.onnx != nullptr) return published.onnx->net;
  NetDefinition net = read_net(published.net);
  // A run's net may have a size of its own, which need not be square.
  const bool is_square = !published.is_run || published.image_size == published.image_width;
  if (is_square) net = with_image_size(net, published.image_size);
  const fs::path names = published.is_run ? "" : find_pretrained_names(published.architecture);
  if (names.empty()) return net;
  const double eps = read_name_rules(names).eps;
  return eps > 0 ? with_batch_norm_eps(net, eps) : net;
}

int64_t classes_in_file(const PublishedWeights& published, const std::string& classifier) {
  if (published.onnx != nullptr) return 0;
  const ArrayFile file = arrays_of(published, *open_published(published.file));
  const auto found = file.arrays.find(classifier + ".weight");
  if (found == file.arrays.end() || found->second.shape.empty()) return 0;
  const int64_t outputs = found->second.shape.front();
  if (published.classes > 0 && outputs != published.classes) {
    throw error("'{}': 'num_classes' {}, but the classifier '{}' of '{}' has {} outputs",
                (published.file.parent_path() / "config.json").string(), published.classes,
                classifier, published.file.string(), outputs);
  }
  constexpr int64_t max_outputs = 1'000'000;
  if (outputs >= 1 && outputs <= max_outputs) return outputs;
  throw error("'{}': the classifier '{}' has {} outputs; there must be 1 to {}",
              published.file.string(), classifier, outputs, max_outputs);
}

Pretrained read_published(const PublishedWeights& published, const Net& net,
                          std::vector<float>* values) {
  if (published.onnx != nullptr) {
    return copy_arrays(published.onnx->arrays, published.file, net, values);
  }
  if (published.is_run) return read_pretrained(published.file, net, values);
  const std::unique_ptr<ArrayReader> reader = open_published(published.file);
  ArrayFile file = arrays_of(published, *reader);
  read_values(*reader, published.file, net, &file);
  ArrayFile::Array& deviations = file.arrays["std.weight"] = {};
  deviations.shape = {3};
  for (const double value : published.std) {
    deviations.values.push_back(static_cast<float>(1 / value));
  }
  return copy_arrays(std::move(file), published.file, net, values);
}

std::string to_text(const PublishedWeights& published) {
  if (published.onnx != nullptr) {
    std::vector<std::string> parts;
    for (const auto& [name, value] : published.data_parameters()) {
      parts.push_back(fmt::format("{} {}", name, value));
    }
    std::string text = fmt::format(
        "net of '{}', its images prepared with {}{} ({}; --data-option of 'tandem train'{} changes "
        "it)",
        published.file.string(), fmt::join(parts, ", "),
        published.run_parameters.empty() && published.onnx->net.input_shape().c == 3 &&
                published.onnx->largest_pixel == 0
            ? fmt::format(", std {:.4g}", fmt::join(deviations_of(published), " "))
            : "",
        published.preparation_source.empty()
            ? "as torchvision's: the file does not say it, nor a preprocessor_config.json or "
              "config.json beside it"
            : "as " + published.preparation_source + " says",
        published.onnx->preparation.empty() ? " or a preprocessor_config.json beside it" : "");
    for (const std::string& note : published.onnx->notes) text += "\n" + note;
    return text;
  }
  if (published.is_run) {
    return fmt::format("net '{}' and weights of run '{}'", published.architecture,
                       published.file.parent_path().string());
  }
  std::string text = fmt::format(
      "{} of '{}'{}: mean {:.4g}, std {:.4g}", published.architecture, published.file.string(),
      published.license.empty() ? "" : fmt::format(", license {}", published.license),
      fmt::join(published.mean, " "), fmt::join(published.std, " "));
  if (published.interpolation != "bilinear" && published.interpolation != "bicubic") {
    text += fmt::format(
        "; the weights were trained with {} resizing, which is not supported: bilinear is used",
        published.interpolation);
  }
  return text;
}

}  // namespace tandem
