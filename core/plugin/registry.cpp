#include "core/plugin/registry.h"

#include <algorithm>
#include <system_error>

#include "core/base/files/files.h"
#include "core/base/running_note.h"
#include "core/base/text/strings.h"
#include "core/plugin/program_plugins.h"
#include "core/plugin/tables.h"
#include "core/plugin/titles.h"
#include "core/plugin/trust.h"

namespace tandem {

namespace {

namespace fs = std::filesystem;

const std::string dataset_prefix = "tandem_dataset_";
const std::string backend_prefix = "tandem_backend_";
const std::string kernels_prefix = "tandem_kernels_";
const std::string transport_prefix = "tandem_transport_";
const std::string messages_prefix = "tandem_messages_";

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

// Of what is loaded, and of the modules that are loaded when one asks for them.
template <class Table, class Deferred>
std::vector<std::string> names_of(const Table& loaded, const std::string& prefix,
                                  const Deferred& deferred) {
  std::vector<std::string> names = keys(loaded);
  for (const auto& [stem, path] : deferred) add_named(prefix, stem, names);
  return names;
}

// And of the modules that could not be loaded.
std::vector<std::string> with_failed(const std::string& prefix,
                                     const std::vector<ModuleReport>& modules,
                                     std::vector<std::string> names) {
  for (const ModuleReport& module : modules) {
    if (!module.loaded) add_named(prefix, module.path.stem().string(), names);
  }
  return each_once(std::move(names));
}

// Each once, in their order.
std::vector<fs::path> absolute_folders(const std::vector<fs::path>& named) {
  std::vector<fs::path> folders;
  for (const fs::path& folder : named) {
    const auto path = absolute_path(folder).lexically_normal();
    if (std::find(folders.begin(), folders.end(), path) == folders.end()) folders.push_back(path);
  }
  return folders;
}

}  // namespace

std::vector<fs::path> Registry::own_folders() {
  const fs::path program = program_folder(), library = library_folder();
  std::vector<fs::path> folders;
  if (!program.empty()) folders.push_back(program / "../lib/tandem/plugins");
  if (!library.empty()) folders.push_back(library / "../lib/tandem/plugins");
  if (!library.empty()) folders.push_back(library / "tandem/plugins");
  return absolute_folders(folders);
}

std::vector<fs::path> Registry::default_folders() {
  std::vector<fs::path> folders = program_plugins().folders;
  for (const auto& more : {listed_folders("TANDEM_PLUGIN_PATH"), own_folders()}) {
    folders.insert(folders.end(), more.begin(), more.end());
  }
  return absolute_folders(folders);
}

Registry Registry::with_defaults() {
  Registry registry;
  for (const auto entry : program_plugins().entries) registry.load(entry);
  for (const fs::path& folder : listed_folders("TANDEM_PLUGIN_PATH")) {
    std::error_code ignored;
    if (fs::is_directory(folder, ignored)) continue;
    ModuleReport report;
    report.path = folder;
    report.reason = "TANDEM_PLUGIN_PATH names this folder, but there is no such folder";
    registry.modules_.push_back(std::move(report));
  }
  for (const fs::path& folder : default_folders()) registry.scan(folder);
  return registry;
}

void Registry::scan(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::path& entry : entries_of(folder)) {
    if (entry.extension() == ".so") files.push_back(resolved(folder) / entry.filename());
  }
  for (const fs::path& file : files) {
    const fs::path* earlier = nullptr;
    for (const ModuleReport& module : modules_) {
      if (module.path.filename() == file.filename()) earlier = &module.path;
    }
    for (const auto& [name, path] : deferred_) {
      if (path.filename() == file.filename()) earlier = &path;
    }
    const std::string stem = file.stem().string();
    if (earlier != nullptr) {
      if (resolved(*earlier) == resolved(file)) continue;
      ModuleReport report;
      report.path = file;
      report.shadowed = true;
      report.reason =
          fmt::format("a module of the same file name comes first: {}", earlier->string());
      modules_.push_back(std::move(report));
    } else if (const std::string refusal = why_not_trusted(file); !refusal.empty()) {
      ModuleReport report;
      report.path = file;
      report.reason = refusal;
      modules_.push_back(std::move(report));
    } else if (stem.starts_with(dataset_prefix) || stem.starts_with(backend_prefix) ||
               stem.starts_with(kernels_prefix) || stem.starts_with(transport_prefix) ||
               stem.starts_with(messages_prefix)) {
      deferred_[stem] = file;
    } else {
      load(file);
    }
  }
}

const ModuleReport& Registry::load(const fs::path& path) {
  return load_module(path);
}

const ModuleReport& Registry::load(tandem_plugin_entry_function entry) {
  return add({}, [&](ModuleReport& report) { return open_plugin(entry, "program", report); });
}

const ModuleReport& Registry::load_module(const fs::path& path) const {
  ModuleReport report;
  report.path = absolute_path(path);
  const fs::path folder = resolved(report.path.parent_path());
  for (const fs::path& own : own_folders()) report.built_in |= resolved(own) == folder;
  return add(std::move(report), [](ModuleReport& r) { return open_module(r.path, r); });
}

const ModuleReport& Registry::add(
    ModuleReport report, const std::function<const tandem_plugin*(ModuleReport&)>& open) const {
  try {
    const tandem_plugin* plugin = open(report);
    const std::string place = report.path.string();
    const RunningNote note("loading", place.c_str());
    register_tables(covered_part(*plugin), report);
    report.loaded = true;
  } catch (const Error& failure) {
    report.reason = failure.what();
  }
  return modules_.emplace_back(std::move(report));
}

void Registry::refuse(const std::string& what) const {
  const auto found = refusals_.find(what);
  if (found != refusals_.end()) throw Error(found->second);
}

std::string Registry::failures() const {
  std::string text;
  for (const ModuleReport& module : modules_) {
    if (module.shadowed) continue;
    for (const std::string& reason : module.left_out) {
      text += fmt::format("; not loaded: {}: {}", module.path.string(), reason);
    }
    if (module.loaded) continue;
    text += fmt::format("; not loaded: {}: {}", module.path.string(), module.reason);
  }
  return text;
}

const tandem_layer_type* Registry::find_layer_type(const std::string& name) const {
  refuse(layer_title(name));
  const auto found = layer_types_.find(name);
  return found == layer_types_.end() ? nullptr : found->second.item;
}

const tandem_layer_type& Registry::layer_type(const std::string& name) const {
  if (const tandem_layer_type* type = find_layer_type(name)) return *type;
  throw error("unknown layer type '{}'{}; 'tandem layers' lists the known ones{}", name,
              did_you_mean(name, layer_types()), failures());
}

const tandem_kernel* Registry::find_kernel(const std::string& layer_type,
                                           const std::string& device_kind) const {
  const KernelName name(layer_type, device_kind);
  load_deferred_with(kernels_prefix + device_kind + "_");
  refuse(kernel_title(name));
  const auto found = kernels_.find(name);
  return found == kernels_.end() ? nullptr : found->second.item;
}

const tandem_kernel& Registry::kernel(const std::string& layer_type,
                                      const std::string& device_kind) const {
  if (const tandem_kernel* found = find_kernel(layer_type, device_kind)) return *found;
  std::vector<std::string> kinds;
  for (const auto& [known, entry] : kernels_) {
    if (known.first == layer_type) kinds.push_back(known.second);
  }
  const std::string others =
      kinds.empty() ? "no kernel at all" : fmt::format("one on {}", fmt::join(kinds, ", "));
  throw error("layer type '{}' has no kernel on device kind '{}', it has {}{}", layer_type,
              device_kind, others, failures());
}

const ModuleReport* Registry::module_of_kernel(const std::string& layer_type,
                                               const std::string& device_kind) const {
  const auto found = kernels_.find(KernelName(layer_type, device_kind));
  return found == kernels_.end() ? nullptr : &modules_[found->second.module];
}

template <class T>
const T& Registry::find_deferred(const std::map<std::string, Entry<T>>& entries,
                                 const std::string& name, const std::string& prefix,
                                 const std::string& title, const char* what,
                                 std::vector<std::string> (Registry::*names)() const) const {
  load_deferred(prefix + name);
  refuse(title);
  const auto found = entries.find(name);
  if (found != entries.end()) return *found->second.item;
  for (const ModuleReport& module : modules_) {
    if (module.loaded || module.shadowed || module.path.stem() != prefix + name) continue;
    throw error("{} is not loaded: {}: {}", title, module.path.string(), module.reason);
  }
  const std::vector<std::string> known = (this->*names)();
  throw error("unknown {} '{}'{}; known: {}{}", what, name, did_you_mean(name, known),
              known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")), failures());
}

const tandem_backend& Registry::backend(const std::string& kind) const {
  return find_deferred(backends_, kind, backend_prefix, backend_title(kind), "device kind",
                       &Registry::backends);
}

std::vector<std::string> Registry::backends_with(
    const std::function<bool(const tandem_backend&)>& capability) const {
  std::vector<std::string> result;
  for (const std::string& kind : backends()) {
    try {
      if (capability(backend(kind))) result.push_back(kind);
    } catch (const Error&) {
      continue;  // whoever asks for this backend gets the reason
    }
  }
  return result;
}

const tandem_dataset_type& Registry::dataset(const std::string& name) {
  return find_deferred(datasets_, name, dataset_prefix, dataset_title(name), "data set",
                       &Registry::datasets);
}

const tandem_transport& Registry::transport(const std::string& name) const {
  return find_deferred(transports_, name, transport_prefix, transport_title(name), "transport",
                       &Registry::transports);
}

const tandem_device_transport& Registry::device_transport(const std::string& kind) const {
  return find_deferred(device_transports_, kind, messages_prefix, device_transport_title(kind),
                       "transport between devices", &Registry::device_transports);
}

std::vector<std::string> Registry::layer_types() const {
  return keys(layer_types_);
}

void Registry::load_deferred(const std::string& stem) const {
  const auto found = deferred_.find(stem);
  if (found == deferred_.end()) return;
  const fs::path path = found->second;
  deferred_.erase(found);
  load_module(path);
}

void Registry::load_deferred_with(const std::string& prefix) const {
  for (;;) {
    const auto first = deferred_.lower_bound(prefix);
    if (first == deferred_.end() || !first->first.starts_with(prefix)) return;
    load_deferred(std::string(first->first));
  }
}

void Registry::load_all() {
  load_deferred_with("");
}

void Registry::load_kernels() {
  load_deferred_with(kernels_prefix);
}

std::vector<std::string> Registry::backends() const {
  return with_failed(backend_prefix, modules_, names_of(backends_, backend_prefix, deferred_));
}

std::vector<std::string> Registry::datasets() const {
  return each_once(names_of(datasets_, dataset_prefix, deferred_));
}

std::vector<std::string> Registry::transports() const {
  return each_once(names_of(transports_, transport_prefix, deferred_));
}

std::vector<std::string> Registry::device_transports() const {
  return with_failed(messages_prefix, modules_,
                     names_of(device_transports_, messages_prefix, deferred_));
}

}  // namespace tandem
