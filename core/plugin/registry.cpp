#include "core/plugin/registry.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <system_error>

#include "core/base/files/files.h"
#include "core/base/running_note.h"
#include "core/base/text/strings.h"
#include "core/plugin/examine.h"
#include "core/plugin/tables.h"
#include "core/plugin/trial.h"
#include "core/plugin/trust.h"

namespace tandem {

// The names of the modules without which Tandem is not complete, each ended by ';'
// (CMakeLists.txt).
extern const std::string_view own_modules;

namespace {

namespace fs = std::filesystem;
using namespace kinds;

bool is_own_folder(const fs::path& folder) {
  const std::vector<fs::path> own = Registry::own_folders();
  return std::any_of(own.begin(), own.end(),
                     [&](const fs::path& one) { return resolved(one) == folder; });
}

template <class Map>
std::vector<std::string> keys(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name);
  return names;
}

bool is_deferred(const std::string& stem) {
  const auto begins = [&](const Kind& kind) { return stem.starts_with(kind.prefix); };
  return begins(kind_of<tandem_dataset_type>) || begins(kind_of<tandem_backend>) ||
         begins(kind_of<tandem_kernel>) || begins(kind_of<tandem_transport>) ||
         begins(kind_of<tandem_device_transport>);
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

ProgramPlugins& program_plugins() {
  static ProgramPlugins plugins;
  return plugins;
}

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
    registry.report_unloaded(folder,
                             "TANDEM_PLUGIN_PATH names this folder, but there is no such folder");
  }
  for (const fs::path& folder : default_folders()) registry.scan(folder);
  registry.report_missing();
  return registry;
}

// Of an installation; a program that links only the library may have none of them.
void Registry::report_missing() {
  std::set<std::string> known;
  fs::path folder;
  for (const ModuleReport& module : modules_) {
    known.insert(module.path.stem().string());
    if (module.built_in) folder = module.path.parent_path();
  }
  for (const auto& [stem, path] : deferred_) known.insert(stem);
  if (folder.empty()) return;
  for (const std::string& name : split(std::string(own_modules), ';')) {
    if (name.empty() || known.contains(name)) continue;
    report_unloaded(folder / (name + ".so"), "it is missing: install Tandem again", false, true);
  }
  std::vector<const ModuleReport*> lost;
  for (const ModuleReport& module : modules_) {
    if (module.built_in && !module.loaded && !module.shadowed) lost.push_back(&module);
  }
  if (lost.empty() || program_plugins().warn == nullptr) return;
  program_plugins().warn(fmt::format(
      "note: {} of Tandem's own modules {} not loaded, and results may differ from those with {}: "
      "{}: {}{}",
      lost.size(), lost.size() == 1 ? "is" : "are", lost.size() == 1 ? "it" : "them",
      lost[0]->path.string(), lost[0]->reason,
      lost.size() == 1 ? "" : "; 'tandem plugins' lists the others"));
}

void Registry::report_unloaded(const fs::path& path, const std::string& reason, bool shadowed,
                               bool is_own) {
  ModuleReport& report = modules_.emplace_back();
  report.path = path;
  report.reason = reason;
  report.shadowed = shadowed;
  report.built_in = is_own;
}

std::string Registry::why_not_safe(const fs::path& path, bool is_own) {
  if (!PathStatus(path.string()).is_file()) return "";  // who opens it says so
  try {
    std::string reason = why_not_mappable(path);
    if (!reason.empty() || is_own) return reason;
    return why_it_ends_a_process(path, [&] { Registry().load_module(path, is_own); });
  } catch (const Error& failure) {
    return failure.what();
  }
}

void Registry::scan(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::path& entry : entries_of(folder)) {
    if (entry.extension() == ".so") files.push_back(resolved(folder) / entry.filename());
  }
  const bool is_own = is_own_folder(resolved(folder));
  for (const fs::path& file : files) {
    const fs::path* earlier = nullptr;
    for (const ModuleReport& module : modules_) {
      if (module.path.filename() == file.filename()) earlier = &module.path;
    }
    for (const auto& [name, path] : deferred_) {
      if (path.filename() == file.filename()) earlier = &path;
    }
    if (earlier != nullptr) {
      if (resolved(*earlier) == resolved(file)) continue;
      report_unloaded(file, "a module of the same file name comes first: " + earlier->string(),
                      true);
      continue;
    }
    std::string refusal = why_not_trusted(file, is_own);
    if (refusal.empty()) refusal = why_not_safe(file, is_own);
    if (!refusal.empty()) {
      report_unloaded(file, refusal, false, is_own);
    } else if (const std::string stem = file.stem().string(); is_deferred(stem)) {
      deferred_[stem] = file;
    } else {
      load_module(file, is_own);
    }
  }
}

const ModuleReport& Registry::load(const fs::path& path) {
  const fs::path file = absolute_path(path);
  const bool is_own = is_own_folder(resolved(file.parent_path()));
  const std::string refusal = why_not_safe(file, is_own);
  if (refusal.empty()) return load_module(file, is_own);
  report_unloaded(file, refusal, false, is_own);
  return modules_.back();
}

const ModuleReport& Registry::load(tandem_plugin_entry_function entry) {
  return add({}, [&](ModuleReport& report) { return open_plugin(entry, "program", report); });
}

const ModuleReport& Registry::load_module(const fs::path& path, bool is_own) const {
  ModuleReport report;
  report.path = path;
  report.built_in = is_own;
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
  constexpr size_t named = 3;
  std::vector<std::string> all;
  for (const ModuleReport& module : modules_) {
    if (module.shadowed) continue;
    std::vector<std::string> reasons = module.left_out;
    if (!module.loaded) reasons.push_back(module.reason);
    for (const std::string& reason : reasons) {
      all.push_back(fmt::format("; not loaded: {}: {}", module.path.string(), reason));
    }
  }
  const size_t more = all.size() > named ? all.size() - named : 0;
  all.resize(all.size() - more);
  std::string text = fmt::format("{}", fmt::join(all, ""));
  if (more > 0) text += fmt::format("; and {} more ('tandem plugins' lists them)", more);
  return text;
}

const tandem_layer_type* Registry::find_layer_type(const std::string& name) const {
  refuse(title_of(kind_of<tandem_layer_type>, name));
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
  const Kind& kernels = kind_of<tandem_kernel>;
  load_deferred_with(fmt::format("{}{}_", kernels.prefix, device_kind));
  refuse(title_of(kernels, name));
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

const ModuleReport* Registry::module_of_dataset(const std::string& name) const {
  const auto found = datasets_.find(name);
  return found == datasets_.end() ? nullptr : &modules_[found->second.module];
}

template <class T>
const T& Registry::find_deferred(const Entries<T>& entries, const std::string& name) const {
  const Kind& kind = kind_of<T>;
  const std::string stem = std::string(kind.prefix) + name, title = title_of(kind, name);
  load_deferred(stem);
  refuse(title);
  const auto found = entries.find(name);
  if (found != entries.end()) return *found->second.item;
  for (const ModuleReport& module : modules_) {
    if (module.loaded || module.shadowed || module.path.stem() != stem) continue;
    throw error("{} is not loaded: {}: {}", title, module.path.string(), module.reason);
  }
  const std::vector<std::string> known = names_of(entries);
  throw error("unknown {} '{}'{}; known: {}{}", kind.asked, name, did_you_mean(name, known),
              known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")), failures());
}

template <class T>
std::vector<std::string> Registry::names_of(const Entries<T>& entries) const {
  const Kind& kind = kind_of<T>;
  std::vector<std::string> names = keys(entries);
  const auto add = [&](const std::string& stem) {
    if (stem.starts_with(kind.prefix)) names.push_back(stem.substr(kind.prefix.size()));
  };
  for (const auto& [stem, path] : deferred_) add(stem);
  for (const ModuleReport& module : modules_) {
    if (kind.lists_failed && !module.loaded) add(module.path.stem().string());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

const tandem_backend& Registry::backend(const std::string& kind) const {
  return find_deferred(backends_, kind);
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
  const std::string prefix(kind_of<tandem_dataset_type>.prefix);  // of modules
  load_deferred(prefix + name);
  // A module may have data sets of other names than its own, as image_folder has image_list.
  if (!datasets_.contains(name)) load_deferred_with(prefix);
  return find_deferred(datasets_, name);
}

const tandem_transport& Registry::transport(const std::string& name) const {
  return find_deferred(transports_, name);
}

const tandem_device_transport& Registry::device_transport(const std::string& kind) const {
  return find_deferred(device_transports_, kind);
}

std::vector<std::string> Registry::layer_types() const {
  return keys(layer_types_);
}

void Registry::load_deferred(const std::string& stem) const {
  const auto found = deferred_.find(stem);
  if (found == deferred_.end()) return;
  const fs::path path = found->second;
  deferred_.erase(found);
  load_module(path, is_own_folder(path.parent_path()));
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
  load_deferred_with(std::string(kind_of<tandem_kernel>.prefix));
}

std::vector<std::string> Registry::backends() const {
  return names_of(backends_);
}

std::vector<std::string> Registry::datasets() const {
  return names_of(datasets_);
}

std::vector<std::string> Registry::transports() const {
  return names_of(transports_);
}

std::vector<std::string> Registry::device_transports() const {
  return names_of(device_transports_);
}

std::vector<std::string> kinds_with_kernel(const Registry& registry,
                                           const std::string& layer_type) {
  const std::string prefix = offer_of(kind_of<tandem_kernel>, KernelName(layer_type, ""));
  std::vector<std::string> kinds;
  for (const ModuleReport& module : registry.modules()) {
    for (const std::string& offer : module.offers) {
      if (!offer.starts_with(prefix)) continue;
      const std::string kind = offer.substr(prefix.size());
      if (std::count(kinds.begin(), kinds.end(), kind) == 0) kinds.push_back(kind);
    }
  }
  return kinds;
}

}  // namespace tandem
