// What the registry loads when it is first asked for.
#include "core/plugin/put_off.h"

#include <algorithm>

#include "core/plugin/registry.h"

namespace tandem {

namespace {

template <class Map>
std::vector<std::string> keys(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name);
  return names;
}

void add_named(const std::string& prefix, const std::string& stem,
               std::vector<std::string>& names) {
  if (stem.starts_with(prefix)) names.push_back(stem.substr(prefix.size()));
}

std::vector<std::string> each_once(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

void Registry::load_put_off(const std::string& name) const {
  const auto found = put_off_.find(name);
  if (found == put_off_.end()) return;
  const std::filesystem::path path = found->second;
  put_off_.erase(found);
  load_module(path);
}

void Registry::load_put_off_beginning(const std::string& prefix) const {
  for (;;) {
    const auto first = put_off_.lower_bound(prefix);
    if (first == put_off_.end() || !first->first.starts_with(prefix)) return;
    load_put_off(std::string(first->first));
  }
}

void Registry::load_all() {
  load_put_off_beginning("");
}

void Registry::load_kernels() {
  load_put_off_beginning(kernels_prefix);
}

void Registry::refuse_failed(const std::string& file_stem, const std::string& title) const {
  for (const ModuleReport& module : modules_) {
    if (module.loaded || module.shadowed || module.path.stem() != file_stem) continue;
    throw error("{} is not loaded: {}: {}", title, module.path.string(), module.reason);
  }
}

std::vector<std::string> Registry::backends() const {
  std::vector<std::string> names = keys(backends_);
  for (const auto& [stem, path] : put_off_) add_named(backend_prefix, stem, names);
  for (const ModuleReport& module : modules_) {
    if (!module.loaded) add_named(backend_prefix, module.path.stem().string(), names);
  }
  return each_once(std::move(names));
}

std::vector<std::string> Registry::datasets() const {
  std::vector<std::string> names = keys(datasets_);
  for (const auto& [stem, path] : put_off_) add_named(dataset_prefix, stem, names);
  return each_once(std::move(names));
}

}  // namespace tandem
