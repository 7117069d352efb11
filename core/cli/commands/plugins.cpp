#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "core/cli/commands.h"
#include "core/plugin/registry.h"

namespace tandem::cli {
namespace {

// The version of plugins/abi.h that the module was built with; "": not known.
std::string version_text(const ModuleReport& module) {
  if (module.abi_major == 0) return "";
  return fmt::format("{}.{}", module.abi_major, module.abi_minor);
}

json module_json(const ModuleReport& module) {
  return {
      {"path", module.path.string()}, {"name", module.name},         {"version", module.version},
      {"abi", version_text(module)},  {"parts", module.parts},       {"loaded", module.loaded},
      {"reason", module.reason},      {"left_out", module.left_out}, {"offers", module.offers}};
}

void print_module(const ModuleReport& module) {
  if (!module.loaded) {
    say("NOT LOADED: {}\n  {}\n", module.reason, module.path.string());
    return;
  }
  say("{} {}: {}\n  {}\n  plugin ABI {}: {}\n", module.name, module.version,
      fmt::join(module.offers, ", "), module.path.string(), version_text(module),
      fmt::join(module.parts, ", "));
  for (const std::string& reason : module.left_out) say("  NOT LOADED: {}\n", reason);
}

struct PluginsArguments {
  bool as_json = false;
};

int list_plugins(PluginsArguments& a) {
  Registry registry = Registry::with_defaults();
  registry.load_all();
  json tree = json::array();
  bool all_loaded = true;
  for (const ModuleReport& module : registry.modules()) {
    all_loaded = all_loaded && ((module.loaded && module.left_out.empty()) || module.shadowed);
    a.as_json ? tree.push_back(module_json(module)) : print_module(module);
  }
  if (a.as_json) {
    print_json(tree);
  } else if (registry.modules().empty()) {
    say("no plugin found; these folders were searched (TANDEM_PLUGIN_PATH adds more):");
    for (const auto& folder : Registry::default_folders()) say("\n  {}", folder.string());
    say("\n");
  }
  return all_loaded ? 0 : 1;
}

}  // namespace

void add_plugins(CommandLine& line) {
  Command& command =
      line.add("plugins", "List the plugins found, what they offer, and why one did not load");
  command.add({json_option(command.runs(list_plugins).as_json)});
}

}  // namespace tandem::cli
