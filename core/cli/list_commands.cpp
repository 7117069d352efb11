#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/strings.h"
#include "core/cli/commands.h"
#include "core/device/find_topology.h"
#include "core/plugin/registry.h"
#include "core/train/measure_links.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

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

// What there is of one kind, and why there is none or less.
json devices_json(const Registry& registry, const std::string& kind) {
  json entry = {{"kind", kind}, {"help", ""}, {"devices", json::array()}};
  const tandem_backend* backend = nullptr;
  try {
    backend = &registry.backend(kind);
  } catch (const Error& failure) {
    entry["reason"] = failure.what();
    return entry;
  }
  entry["help"] = backend->help;
  int32_t count = 0;
  if (backend->count(&count) != TANDEM_OK) {
    entry["reason"] = take_reason();
    return entry;
  }
  for (int32_t ordinal = 0; ordinal < count; ++ordinal) {
    tandem_device_info info{};
    info.struct_size = sizeof(info);
    if (backend->describe(ordinal, &info) != TANDEM_OK) {
      entry["reason"] = fmt::format("{}:{}: {}", kind, ordinal, take_reason());
      continue;
    }
    entry["devices"].push_back({{"ordinal", ordinal},
                                {"name", info.name},
                                {"memory_bytes", info.memory_bytes},
                                {"available_bytes", info.available_bytes},
                                {"threads", info.threads}});
  }
  return entry;
}

void print_devices(const json& entry) {
  const std::string kind = entry["kind"], help = entry["help"];
  fmt::print("{}{}{}\n", kind, help.empty() ? "" : ": ", help);
  for (const json& device : entry["devices"]) {
    const int threads = device["threads"];
    fmt::print("  {}:{} {}, {} ({} available){}\n", kind, device["ordinal"].get<int>(),
               device["name"].get<std::string>(), human_bytes(device["memory_bytes"]),
               human_bytes(device["available_bytes"]),
               threads > 0 ? fmt::format(", {} cores", threads) : "");
  }
  if (!entry.contains("reason")) return;
  fmt::print("  {}{}\n",
             entry["devices"].empty() ? "none: " : "not: ", entry["reason"].get<std::string>());
}

int list_devices(bool as_json) {
  const Registry registry = Registry::with_defaults();
  json tree = json::array();
  for (const std::string& kind : registry.backends()) {
    tree.push_back(devices_json(registry, kind));
    if (!as_json) print_devices(tree.back());
  }
  if (as_json) fmt::print("{}\n", tree.dump(2));
  return 0;
}

// What says how to measure says nothing of a list, and only which devices matters to their links.
void require_measure(const CLI::App& command, bool of_links) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || name == "--json" || name == "--links") continue;
    if (of_links && name == "--devices") continue;
    throw error("{}: it goes with --measure FILE only; {}", name,
                of_links ? "--links asks the devices as they are" : "the list is of all devices");
  }
}

DeviceSpec require_several(const Registry& registry, const std::string& text) {
  const DeviceSpec spec = parse_devices(text, registry);
  if (spec.count() >= 2) return spec;
  throw error("--devices {}: links are between devices, so at least 2, as in {}", text,
              to_string(DeviceSpec{spec.kind, {0, 1}, spec.is_counted}));
}

// What the hardware says of them, and where each number is from.
int print_links(const std::string& text) {
  const Registry registry = Registry::with_defaults();
  const DeviceSpec spec = require_several(registry, text);
  const Machine machine(registry.backend(spec.kind), spec, MachineOptions{});
  const std::shared_ptr<const Topology> topology = find_topology(machine);
  if (topology == nullptr) {
    fmt::print("the links of {} devices are not known: {}\n", spec.kind,
               machine.has(TANDEM_VIRTUAL_TIME) ? "--link and --topology say what they are"
                                                : "--measure FILE measures them");
    return 0;
  }
  for (int device = 0; device < spec.count(); ++device) {
    fmt::print("{}: {}:{} {}\n", topology->devices[size_t(device)], spec.kind,
               spec.ordinals[size_t(device)], machine.device_info(device).name);
  }
  fmt::print("{}", links_table(*topology));
  return 0;
}

// Every pair of the devices, and a topology file of what was measured of each alone.
int measure_devices(const std::string& text, const std::string& file,
                    const MachineArguments& arguments) {
  const Registry registry = Registry::with_defaults();
  const DeviceSpec spec = require_several(registry, text);
  if ((registry.backend(spec.kind).capabilities & TANDEM_VIRTUAL_TIME) != 0) {
    throw error("--devices {}: simulated devices copy nothing that could be measured", text);
  }
  if (std::error_code code; std::filesystem::exists(file, code)) {
    throw error("--measure {}: the file exists already: choose another name", file);
  }
  const Machine machine(registry.backend(spec.kind), spec, arguments.options());
  const std::vector<LinkMeasurement> measured = measure_links(machine);
  fmt::print("{:<8} {:>12} {:>10} {:>16} {:>22}\n", "copy", "GB/s alone", "latency",
             "GB/s both ways", "GB/s while all send");
  std::vector<MeasuredLink> links;
  for (const LinkMeasurement& link : measured) {
    fmt::print("{:<8} {:>12.2f} {:>10} {:>16.2f} {:>22}\n",
               fmt::format("{} -> {}", link.alone.source, link.alone.target),
               link.alone.bandwidth / 1e9, human_seconds(link.alone.latency), link.both_ways / 1e9,
               link.contended > 0 ? fmt::format("{:.2f}", link.contended / 1e9) : "-");
    links.push_back(link.alone);
  }
  std::vector<std::string> names;
  for (int d = 0; d < spec.count(); ++d) names.push_back(fmt::format("{}{}", spec.kind, d));
  write_output(file, topology_text(names, links));
  fmt::print("topology written to {} (for --topology)\n", file);
  return 0;
}

}  // namespace

void add_plugins(CLI::App& app, Action& action) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "plugins", "List the plugins found, what they offer, and why one did not load");
  command->add_flag("--json", *as_json, "Print JSON");
  command->callback([&action, as_json] { action = [as_json] { return list_plugins(*as_json); }; });
}

void add_devices(CLI::App& app, Action& action) {
  struct Arguments {
    bool as_json = false, links = false;
    std::string devices = to_string(DeviceSpec{default_kind, {0, 1}}), measure;
    MachineArguments machine;
  };
  auto a = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("devices", "List the kinds of devices and what this machine has of each");
  CLI::Option* as_json = command->add_flag("--json", a->as_json, "Print JSON");
  CLI::Option* measure =
      command
          ->add_option(
              "--measure", a->measure,
              "Measure the copies between every pair of --devices and write this topology file")
          ->excludes(as_json);
  command
      ->add_flag("--links", a->links,
                 "Print what the hardware says of the links between --devices: PCIe, NVLink")
      ->excludes(as_json)
      ->excludes(measure);
  command->add_option("--devices", a->devices, "Between which devices, e.g. cpu:4")
      ->capture_default_str();
  add_machine_options(*command, a->machine);
  command->callback([&action, a, command] {
    action = [a, command] {
      if (!a->measure.empty()) return measure_devices(a->devices, a->measure, a->machine);
      require_measure(*command, a->links);
      if (a->links) return print_links(a->devices);
      return list_devices(a->as_json);
    };
  });
}

}  // namespace tandem::cli
