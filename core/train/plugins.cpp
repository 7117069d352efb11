#include "include/tandem/plugins.h"

#include "core/plugin/program_plugins.h"
#include "core/plugin/registry.h"

namespace tandem {

void add_plugin_folder(const std::filesystem::path& folder) {
  program_plugins().folders.push_back(folder);
}

void register_plugin(const tandem_plugin* (*entry)(const tandem_host*)) {
  Registry registry;
  const ModuleReport& report = registry.load(entry);
  if (!report.loaded) throw error("the program's plugin cannot be used: {}", report.reason);
  program_plugins().entries.push_back(entry);
}

std::vector<PluginReport> plugins() {
  Registry registry = Registry::with_defaults();
  registry.load_all();
  std::vector<PluginReport> reports;
  for (const ModuleReport& module : registry.modules()) {
    reports.push_back(
        {module.path, module.name, module.version, module.loaded, module.reason, module.offers});
  }
  return reports;
}

}  // namespace tandem
