#include "core/run/weights/pretrained.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/formats/caffemodel.h"
#include "core/formats/open_arrays.h"
#include "core/model/adapted/models.h"
#include "core/model/file/batch_norm.h"
#include "core/plugin/registry.h"
#include "core/run/folder/checkpoint.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// One array of a file: its layer, and its name there.
struct Source {
  std::string layer, name;
  const std::vector<int64_t>* shape;
  const std::vector<float>* values;
};

// Old files write every array with four sizes, leading ones first; ours may have trailing ones. The
// input of an InnerProduct may be flattened in one file and not in the other: then the number of
// sizes differs, and the first size and the count must agree.
bool fits(const std::vector<int64_t>& there, const Shape& here) {
  const auto without_ones = [](std::vector<int64_t> sizes) {
    std::erase(sizes, 1);
    return sizes;
  };
  const auto count = [](const std::vector<int64_t>& sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  };
  const std::vector<int64_t> a = without_ones(there);
  const std::vector<int64_t> b = without_ones({here.n, here.c, here.h, here.w});
  if (a.size() == b.size()) return a == b;
  if (here.n == 1 && a.size() == 1) return count(a) == count(b);  // the row of one output
  return !a.empty() && !b.empty() && a.front() == b.front() && count(a) == count(b);
}

// Whether `scale` is the Scale of the BatchNorm that is directly before it in the file.
bool belong_together(const CaffeLayer& norm, const CaffeLayer& scale) {
  if (norm.type != "BatchNorm" || scale.type != "Scale") return false;
  if (scale.position != norm.position + 1) return false;
  if (norm.blobs.size() != 3 || scale.blobs.empty() || scale.blobs.size() > 2) return false;
  const bool is_fed = norm.top.empty() || scale.bottom.empty() || norm.top == scale.bottom;
  return is_fed && norm.blobs[0].values.size() == scale.blobs[0].values.size();
}

// Files for nets with a BatchNorm and a Scale, where the net has one layer of the BatchNorm's name
// that is both: the Scale's arrays become those of that layer.
std::vector<CaffeLayer> with_joined_scales(const Net& net, std::vector<CaffeLayer> layers) {
  std::unordered_map<std::string_view, const Layer*> own;
  for (const Layer& layer : net.layers) own.emplace(layer.name, &layer);
  std::vector<CaffeLayer> result;
  for (CaffeLayer& layer : layers) {
    const auto norm = result.empty() ? own.end() : own.find(result.back().name);
    const bool joins = norm != own.end() && is_batch_norm_scale(norm->second->type->name) &&
                       belong_together(result.back(), layer) && !own.contains(layer.name);
    if (!joins) {
      result.push_back(std::move(layer));
      continue;
    }
    if (layer.blobs.size() == 1) {  // without a bias
      layer.blobs.push_back(layer.blobs[0]);
      std::fill(layer.blobs[1].values.begin(), layer.blobs[1].values.end(), 0.0F);
    }
    for (CaffeBlob& blob : layer.blobs) result.back().blobs.push_back(std::move(blob));
  }
  return result;
}

std::vector<Source> sources_of(const std::vector<CaffeLayer>& layers) {
  std::vector<Source> sources;
  for (const CaffeLayer& layer : layers) {
    for (size_t i = 0; i < layer.blobs.size(); ++i) {
      sources.push_back({layer.name, fmt::format("{}[{}]", layer.name, i), &layer.blobs[i].shape,
                         &layer.blobs[i].values});
    }
  }
  return sources;
}

// Arrays of safetensors are named layer.array.
std::vector<Source> sources_of(const ArrayFile& file) {
  std::vector<Source> sources;
  for (const auto& [name, array] : file.arrays) {
    sources.push_back({name.substr(0, name.rfind('.')), name, &array.shape, &array.values});
  }
  return sources;
}

// The arrays of a file by what a net looks them up with: a caffemodel has a layer's arrays one
// after the other; a safetensors file has each under its own name, and one that several layers
// share only once.
class SourceIndex {
 public:
  SourceIndex(const std::vector<Source>& sources, bool by_name) : by_name_(by_name) {
    for (const Source& source : sources) {
      sources_[by_name ? source.name : source.layer].push_back(&source);
    }
  }

  [[nodiscard]] std::vector<const Source*> find(const Layer& layer, const Net& net) const {
    std::vector<const Source*> found;
    if (by_name_) {
      for (const int weight : layer.weights) add(net.weight(weight).name, &found);
    } else {
      add(layer.name, &found);
    }
    return found;
  }

 private:
  void add(const std::string& key, std::vector<const Source*>* found) const {
    const auto here = sources_.find(key);
    if (here == sources_.end()) return;
    found->insert(found->end(), here->second.begin(), here->second.end());
  }

  bool by_name_;
  std::unordered_map<std::string_view, std::vector<const Source*>> sources_;
};

void require_shape(const fs::path& path, const Net& net, const Layer& layer, size_t i,
                   const std::string& name, const std::vector<int64_t>& shape) {
  if (fits(shape, net.weight(layer.weights[i]).shape)) return;
  throw error(
      "weight file '{}' does not fit net '{}': '{}' is {}, {} needs {}; to train this layer "
      "from initial weights, give it another name",
      path.string(), net.name, name, fmt::join(shape, "x"), layer.title(),
      fmt::join(caffe_shape(net, layer, i), "x"));
}

void require_fit(const fs::path& path, const Net& net, const Layer& layer,
                 const std::vector<const Source*>& found) {
  if (found.size() != layer.weights.size()) {
    throw error("weight file '{}' does not fit net '{}': it has {} arrays for {}, which needs {}{}",
                path.string(), net.name, found.size(), layer.title(), layer.weights.size(),
                is_batch_norm_scale(layer.type->name)
                    ? ": the file is for a net with a BatchNorm and a Scale instead of this layer; "
                      "a .caffemodel of it (tandem export) fits if the Scale comes directly after "
                      "the BatchNorm"
                    : "");
  }
  for (const Source* source : found) {
    const auto is_finite = [](float value) { return std::isfinite(value); };
    if (std::all_of(source->values->begin(), source->values->end(), is_finite)) continue;
    throw error("weight file '{}': '{}' holds values that are not finite numbers", path.string(),
                source->name);
  }
  for (size_t i = 0; i < found.size(); ++i) {
    require_shape(path, net, layer, i, found[i]->name, *found[i]->shape);
  }
}

// For messages: a hostile file has any number of names.
std::string list_of(const std::vector<std::string>& names, size_t max_names = 50) {
  const size_t shown = std::min(max_names, names.size());
  const std::string text = fmt::format("{}", fmt::join(std::span(names).first(shown), ", "));
  return shown == names.size() ? text : fmt::format("{} and {} more", text, names.size() - shown);
}

Pretrained copy(const std::vector<Source>& sources, const fs::path& path, const Net& net,
                bool by_name, std::vector<float>* values) {
  Pretrained report;
  std::set<std::string> names;
  std::vector<float> filled = *values;
  const SourceIndex index(sources, by_name);
  for (const Layer& layer : net.layers) {
    if (layer.weights.empty()) continue;
    names.insert(layer.name);
    const std::vector<const Source*> found = index.find(layer, net);
    if (found.empty()) {
      report.missing.push_back(layer.name);
      continue;
    }
    require_fit(path, net, layer, found);
    for (size_t i = 0; i < found.size(); ++i) {
      const std::vector<float>& from = *found[i]->values;
      std::copy(from.begin(), from.end(), filled.begin() + net.weight(layer.weights[i]).offset);
    }
    report.copied.push_back(layer.name);
  }
  for (const Source& source : sources) {
    if (names.insert(source.layer).second) report.unused.push_back(source.layer);
  }
  if (report.copied.empty()) {
    constexpr size_t some = 5;
    throw error(
        "weight file '{}' is of another net: none of its layers ({}) is one of net '{}' ({}){}",
        path.string(), list_of(report.unused, some), net.name, list_of(report.missing, some),
        by_name ? "; names of PyTorch are those of the models marked in 'tandem models'" : "");
  }
  *values = std::move(filled);
  return report;
}

// The optimizer's state of a checkpoint, which is beside the weights.
void refuse_state(const ArrayFile& file, const fs::path& path, const Net& net) {
  constexpr std::string_view ending = ".state.safetensors";
  const std::string name = path.filename().string();
  const bool has_weights =
      std::any_of(net.weights.begin(), net.weights.end(),
                  [&](const WeightArray& weight) { return file.arrays.contains(weight.name); });
  if (!name.ends_with(ending) || has_weights) return;
  const std::string weights = name.substr(0, name.size() - ending.size()) + ".safetensors";
  throw error(
      "weight file '{}' holds the state of a run's optimizer and no weights: those are in '{}'",
      path.string(), (path.parent_path() / weights).string());
}

// BatchNorm keeps sums over the steps and the sum of their weights. In the long run that is
// 1 / (1 - fraction), with which the next step counts as much as in PyTorch.
void add_sums_of_statistics(const Net& net, ArrayFile& file) {
  for (const Layer& layer : net.layers) {
    if (!is_batch_norm(layer.type->name)) continue;
    const auto mean = file.arrays.find(layer.name + ".mean");
    const auto variance = file.arrays.find(layer.name + ".variance");
    if (mean == file.arrays.end() || variance == file.arrays.end()) continue;
    if (file.arrays.contains(layer.name + ".scale_factor")) continue;
    const auto sum = static_cast<float>(
        1 / (1 - std::min(0.9999, layer.attributes->number("moving_average_fraction"))));
    for (float& value : mean->second.values) value *= sum;
    for (float& value : variance->second.values) value *= sum;
    ArrayFile::Array& factor = file.arrays[layer.name + ".scale_factor"] = {};
    factor.shape = {1};
    factor.values = {sum};
  }
}

constexpr const char* not_needed = "-";

// The rules of PyTorch's names that are of no architecture.
std::vector<NameRule> rules_of_any_net() {
  const fs::path names = find_pretrained_names("torch");
  if (names.empty()) return {};
  std::vector<NameRule> rules = read_name_rules(names).rules;
  std::erase_if(rules, [](const NameRule& rule) { return !rule.from.starts_with("*."); });
  return rules;
}

}  // namespace

bool is_of_tandem(const ArrayFile& file) {
  const auto format = file.metadata.find("format");
  return format != file.metadata.end() && format->second == "tandem";
}

ArrayFile with_names_of_net(const fs::path& path, ArrayFile file,
                            const std::vector<NameRule>& rules) {
  std::map<std::string, ArrayFile::Array> arrays;
  for (auto& [name, array] : file.arrays) {
    std::string here = name;
    for (const NameRule& rule : rules) {
      if (const auto found = renamed(name, rule)) {
        here = *found;
        break;
      }
    }
    if (here == not_needed) continue;
    if (!arrays.emplace(here, std::move(array)).second) {
      throw error("'{}' has two arrays for '{}' of the net, one of them '{}'", path.string(), here,
                  name);
    }
  }
  file.arrays = std::move(arrays);
  return file;
}

void read_values(const ArrayReader& reader, const fs::path& path, const Net& net, ArrayFile* file) {
  std::set<ArrayFile::Array*> wanted;
  for (const Layer& layer : net.layers) {
    for (size_t i = 0; i < layer.weights.size(); ++i) {
      const auto found = file->arrays.find(net.weight(layer.weights[i]).name);
      if (found == file->arrays.end()) continue;
      require_shape(path, net, layer, i, found->second.name, found->second.shape);
      wanted.insert(&found->second);
    }
  }
  for (ArrayFile::Array* array : wanted) array->values = reader.values(*array);
}

Pretrained copy_arrays(ArrayFile file, const fs::path& path, const Net& net,
                       std::vector<float>* values) {
  refuse_state(file, path, net);
  add_sums_of_statistics(net, file);
  Pretrained report = copy(sources_of(file), path, net, true, values);
  report.note = file.note;
  return report;
}

Pretrained read_pretrained(const fs::path& path, const Net& net, std::vector<float>* values) {
  if (const std::unique_ptr<ArrayReader> reader = open_arrays(path)) {
    ArrayFile file = reader->contents();
    if (!is_of_tandem(file)) {
      file = with_names_of_net(path, std::move(file), rules_of_any_net());
    }
    read_values(*reader, path, net, &file);
    return copy_arrays(std::move(file), path, net, values);
  }
  const std::vector<CaffeLayer> layers = with_joined_scales(net, read_caffemodel(path));
  return copy(sources_of(layers), path, net, false, values);
}

std::string to_text(const Pretrained& report, const fs::path& path) {
  std::string text =
      fmt::format("weights of {} layers from {}", report.copied.size(), path.string());
  if (!report.note.empty()) text += fmt::format(": {}", report.note);
  if (!report.missing.empty()) {
    text += fmt::format("\nnot in it, so with initial values: {}", list_of(report.missing));
  }
  if (!report.unused.empty()) {
    text += fmt::format("\nin it, but not in the net: {}", list_of(report.unused));
  }
  return text;
}

}  // namespace tandem
