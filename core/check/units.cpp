#include "core/check/units.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "core/base/text/strings.h"
#include "core/data/dataset.h"
#include "core/data/dataset_source.h"

namespace tandem::checker {

bool is_file(const std::string& target) {
  return target.find('/') != std::string::npos || target.ends_with(".so");
}

// Those of a module file. It may be in a plugin folder, too, and is loaded already then.
std::vector<Unit> units_of_module(Registry& registry, const std::string& file) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto find = [&]() -> const ModuleReport* {
    for (const ModuleReport& module : registry.modules()) {
      if (!module.shadowed && fs::equivalent(module.path, file, ignored)) return &module;
    }
    return nullptr;
  };
  const ModuleReport* found = find();
  if (found == nullptr && fs::path(file).filename().string().starts_with("tandem_")) {
    registry.load_all();  // it may be deferred
    found = find();
  }
  if (found == nullptr) found = &registry.load(fs::path(file));
  if (!found->loaded) throw error("{} is not loaded: {}", file, found->reason);
  std::vector<Unit> units;
  for (const std::string& offer : found->offers) {
    if (offer.starts_with("layer ")) units.push_back({file, offer.substr(6)});
    if (offer.starts_with("dataset ")) units.push_back({file, offer.substr(8), true});
  }
  if (units.empty())
    throw error("{} has no layer type and no data set: only these are checked", file);
  return units;
}

Error not_there(const std::string& what, const std::string& name,
                const std::vector<std::string>& known) {
  return error("{}{}; there are: {}", what, did_you_mean(name, known), fmt::join(known, ", "));
}

namespace {

// The types of which the net has a layer; each once.
std::vector<std::string> types_of(const std::vector<NetUse>& uses) {
  std::vector<std::string> types;
  for (const NetUse& use : uses) {
    if (std::count(types.begin(), types.end(), use.type) == 0) types.push_back(use.type);
  }
  return types;
}

// First all types with what is quickly done.
std::vector<Unit> units_before_training(const std::vector<std::string>& types) {
  std::vector<Unit> units;
  for (const CaseSizes sizes : {CaseSizes::small, CaseSizes::large}) {
    for (const std::string& type : types) units.push_back({type, type, false, sizes});
  }
  return units;
}

}  // namespace

std::vector<NetUse> uses_of(const Registry& registry, const CheckOptions& options) {
  if (options.net.empty()) return {};
  std::vector<NetUse> uses = uses_in_net(registry, options.net);
  if (options.layer.empty()) return uses;
  std::vector<std::string> known;
  for (const NetUse& use : uses) known.push_back(use.layer);
  std::erase_if(uses, [&](const NetUse& use) {
    return use.layer != options.layer && use.type != options.layer;
  });
  if (uses.empty()) {
    throw not_there(fmt::format("{} has no layer '{}'", options.net, options.layer), options.layer,
                    known);
  }
  return uses;
}

std::vector<Unit> units_of(Registry& registry, const CheckOptions& options) {
  const std::vector<std::string> in_net = types_of(options.cases.uses);
  if (!options.cases.uses.empty() && options.seconds > 0) return units_before_training(in_net);
  std::vector<Unit> units;
  for (const std::string& target : options.targets) {
    if (is_file(target)) {
      for (Unit& unit : units_of_module(registry, target)) units.push_back(std::move(unit));
    } else if (registry.find_layer_type(target) == nullptr && is_dataset(registry, target)) {
      units.push_back({target, target, true});
    } else {
      units.push_back({target, registry.layer_type(target).name});
    }
  }
  if (options.targets.empty()) {
    const std::vector<std::string> all = options.net.empty() ? registry.layer_types() : in_net;
    for (const std::string& type : all) units.push_back({type, type});
  }
  if (!options.net.empty()) {
    std::erase_if(units, [&](const Unit& unit) {
      return std::count(in_net.begin(), in_net.end(), unit.type) == 0;
    });
    if (units.empty()) throw error("{} has no layer of these types", options.net);
    return units;
  }
  if (options.layer.empty()) return units;
  std::vector<std::string> known;
  for (const Unit& unit : units) known.push_back(unit.type);
  std::erase_if(units, [&](const Unit& unit) {
    return unit.type != options.layer || (options.seconds > 0 && !unit.is_data);
  });
  if (units.empty()) {
    throw not_there(fmt::format("no layer type '{}' is checked", options.layer), options.layer,
                    known);
  }
  return units;
}

}  // namespace tandem::checker
