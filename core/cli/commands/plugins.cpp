#include <fmt/ranges.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/cli/arguments.h"
#include "core/cli/commands.h"
#include "core/cli/print.h"
#include "core/plugin/registry.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

// The version of plugins/abi.h that the module was built with; "": not known.
std::string version_text(const ModuleReport& module) {
  if (module.abi_major == 0) return "";
  return fmt::format("{}.{}", module.abi_major, module.abi_minor);
}

int list_plugins(bool as_json) {
  Registry registry = Registry::with_defaults();
  registry.load_all();
  json tree = json::array();
  for (const ModuleReport& module : registry.modules()) {
    tree.push_back({{"path", module.path.string()},
                    {"name", module.name},
                    {"version", module.version},
                    {"abi", version_text(module)},
                    {"parts", module.parts},
                    {"loaded", module.loaded},
                    {"reason", module.reason},
                    {"left_out", module.left_out},
                    {"offers", module.offers}});
    if (as_json) continue;
    if (module.loaded) {
      say("{} {}: {}\n  {}\n  plugin ABI {}: {}\n", module.name, module.version,
          fmt::join(module.offers, ", "), module.path.string(), version_text(module),
          fmt::join(module.parts, ", "));
      for (const std::string& reason : module.left_out) {
        say("  NOT LOADED: {}\n", reason);
      }
    } else {
      say("NOT LOADED: {}\n  {}\n", module.reason, module.path.string());
    }
  }
  if (as_json) print_json(tree);
  if (!as_json && registry.modules().empty()) {
    std::string folders;
    for (const auto& folder : Registry::default_folders())
      folders += fmt::format("\n  {}", folder.string());
    say("no plugin found; these folders were searched (TANDEM_PLUGIN_PATH adds more):{}\n",
        folders);
  }
  return std::all_of(
             registry.modules().begin(), registry.modules().end(),
             [](const ModuleReport& m) { return (m.loaded && m.left_out.empty()) || m.shadowed; })
             ? 0
             : 1;
}

}  // namespace

void add_plugins(CommandLine& line) {
  auto as_json = std::make_shared<bool>(false);
  Command& command =
      line.add("plugins", "List the plugins found, what they offer, and why one did not load");
  add_json_option(command, *as_json);
  command.action([as_json] { return list_plugins(*as_json); });
}

}  // namespace tandem::cli
