#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/strings.h"
#include "core/cli/commands.h"
#include "core/plugin/registry.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

const char* kind_of(int32_t type) {
  switch (type) {
    case TANDEM_PARAMETER_INTEGER:
      return "integer";
    case TANDEM_PARAMETER_NUMBER:
      return "number";
    case TANDEM_PARAMETER_BOOLEAN:
      return "boolean";
    case TANDEM_PARAMETER_TEXT:
      return "text";
    case TANDEM_PARAMETER_INTEGERS:
      return "integers";
    case TANDEM_PARAMETER_FILLER:
      return "filler";
    case TANDEM_PARAMETER_NUMBERS:
      return "numbers";
    default:
      return "unknown";
  }
}

json parameter_json(const tandem_parameter& p) {
  json entry = {{"name", p.name}, {"type", kind_of(p.type)}, {"required", p.required != 0}};
  if (p.block != nullptr) entry["block"] = p.block;
  if (p.help != nullptr) entry["help"] = p.help;
  if (p.default_value != nullptr) entry["default"] = p.default_value;
  if (p.minimum <= p.maximum) {
    entry["minimum"] = p.minimum;
    entry["maximum"] = p.maximum;
  }
  if (p.choices != nullptr) entry["choices"] = split(p.choices, '|');
  return entry;
}

void print_parameter(const tandem_parameter& p) {
  std::string range;
  if (p.choices != nullptr) range = p.choices;
  if (p.minimum <= p.maximum) range = fmt::format("{:g} to {:g}", p.minimum, p.maximum);
  const std::string fallback =
      p.default_value != nullptr ? p.default_value : (p.required != 0 ? "required" : "-");
  const std::string place = p.block != nullptr ? fmt::format("{}.{}", p.block, p.name) : p.name;
  fmt::print("  {:<42} {:<9} {:<10} {:<22} {}\n", place, kind_of(p.type), fallback, range,
             p.help != nullptr ? p.help : "");
}

std::vector<std::string> kernels_of(const Registry& registry, const std::string& type) {
  std::vector<std::string> kinds;
  for (const ModuleReport& module : registry.modules()) {
    for (const std::string& offer : module.offers) {
      const std::string prefix = "kernel " + type + "/";
      if (offer.rfind(prefix, 0) == 0) kinds.push_back(offer.substr(prefix.size()));
    }
  }
  return kinds;
}

int list_layers(const std::string& name, bool as_json) {
  const Registry registry = Registry::with_defaults();
  std::vector<std::string> names = registry.layer_types();
  if (!name.empty()) names = {registry.layer_type(name).name};
  json tree = json::array();
  for (const std::string& each : names) {
    const tandem_layer_type& type = registry.layer_type(each);
    json entry = {{"name", type.name},
                  {"help", type.help},
                  {"devices", kernels_of(registry, each)},
                  {"parameters", json::array()}};
    for (uint32_t i = 0; i < type.parameter_count; ++i) {
      entry["parameters"].push_back(parameter_json(*type.parameters[i]));
    }
    tree.push_back(entry);
    if (as_json) continue;
    fmt::print("{:<18} {} [{}]\n", type.name, type.help,
               fmt::join(kernels_of(registry, each), ", "));
    if (name.empty()) continue;
    const auto arity = [](int low, int high) {
      return high < 0      ? fmt::format("{} or more", low)
             : low == high ? fmt::format("{}", low)
                           : fmt::format("{} to {}", low, high);
    };
    fmt::print("  inputs: {}, outputs: {}\n", arity(type.minimum_inputs, type.maximum_inputs),
               arity(type.minimum_outputs, type.maximum_outputs));
    fmt::print("  {:<42} {:<9} {:<10} {:<22} {}\n", "parameter", "type", "default", "range", "");
    for (uint32_t i = 0; i < type.parameter_count; ++i) print_parameter(*type.parameters[i]);
  }
  if (as_json) fmt::print("{}\n", tree.dump(2));
  return 0;
}

int list_plugins(bool as_json) {
  Registry registry = Registry::with_defaults();
  registry.load_all();
  json tree = json::array();
  for (const ModuleReport& module : registry.modules()) {
    tree.push_back({{"path", module.path.string()},
                    {"name", module.name},
                    {"version", module.version},
                    {"loaded", module.loaded},
                    {"reason", module.reason},
                    {"offers", module.offers}});
    if (as_json) continue;
    if (module.loaded) {
      fmt::print("{} {}: {}\n  {}\n", module.name, module.version, fmt::join(module.offers, ", "),
                 module.path.string());
    } else {
      fmt::print("NOT LOADED: {}\n  {}\n", module.reason, module.path.string());
    }
  }
  if (as_json) fmt::print("{}\n", tree.dump(2));
  if (!as_json && registry.modules().empty()) {
    std::string folders;
    for (const auto& folder : Registry::default_folders())
      folders += fmt::format("\n  {}", folder.string());
    fmt::print("no plugin found; these folders were searched (TANDEM_PLUGIN_PATH adds more):{}\n",
               folders);
  }
  return 0;
}

int list_devices(bool as_json) {
  const Registry registry = Registry::with_defaults();
  json tree = json::array();
  for (const std::string& kind : registry.backends()) {
    const tandem_backend& backend = registry.backend(kind);
    int32_t count = 0;
    json entry = {{"kind", kind}, {"help", backend.help}, {"devices", json::array()}};
    if (!as_json) fmt::print("{}: {}\n", kind, backend.help);
    if (backend.count(&count) != TANDEM_OK) {
      entry["reason"] = take_reason();
      if (!as_json) fmt::print("  none: {}\n", entry["reason"].get<std::string>());
      count = 0;
    }
    for (int32_t ordinal = 0; ordinal < count; ++ordinal) {
      tandem_device_info info{};
      info.struct_size = sizeof(info);
      if (backend.describe(ordinal, &info) != TANDEM_OK) continue;
      entry["devices"].push_back({{"ordinal", ordinal},
                                  {"name", info.name},
                                  {"memory_bytes", info.memory_bytes},
                                  {"available_bytes", info.available_bytes},
                                  {"threads", info.threads}});
      if (!as_json) {
        fmt::print("  {}:{} {}, {} ({} available){}\n", kind, ordinal, info.name,
                   human_bytes(info.memory_bytes), human_bytes(info.available_bytes),
                   info.threads > 0 ? fmt::format(", {} cores", info.threads) : "");
      }
    }
    tree.push_back(entry);
  }
  if (as_json) fmt::print("{}\n", tree.dump(2));
  return 0;
}

}  // namespace

void add_layers(CLI::App& app, Action& action) {
  auto name = std::make_shared<std::string>();
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("layers", "List the layer types, or one with its parameters");
  command->add_option("name", *name, "A layer type");
  command->add_flag("--json", *as_json, "Print JSON");
  command->callback([&action, name, as_json] {
    action = [name, as_json] { return list_layers(*name, *as_json); };
  });
}

void add_plugins(CLI::App& app, Action& action) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "plugins", "List the plugins found, what they offer, and why one did not load");
  command->add_flag("--json", *as_json, "Print JSON");
  command->callback([&action, as_json] { action = [as_json] { return list_plugins(*as_json); }; });
}

void add_devices(CLI::App& app, Action& action) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("devices", "List the kinds of devices and what this machine has of each");
  command->add_flag("--json", *as_json, "Print JSON");
  command->callback([&action, as_json] { action = [as_json] { return list_devices(*as_json); }; });
}

}  // namespace tandem::cli
