#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/cli/commands.h"
#include "core/device/topology.h"
#include "core/plugin/host.h"
#include "core/plugin/registry.h"
#include "core/ranks/measure_links.h"
#include "core/ranks/rank_links.h"
#include "core/ranks/ranks.h"
#include "core/run/setup/program_options.h"

namespace tandem::cli {
namespace {

struct DevicesArguments {
  bool as_json = false, links = false;
  std::string devices = to_string(DeviceSpec{default_kind, {0, 1}}), measure;
  DeviceOptions machine;
};

// The devices of one kind; "reason": why there is none, or why one is left out.
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
                                {"threads", info.threads},
                                {"limits", info.threads > 0 ? core_limits(nullptr) : ""},
                                {"kernels", info.kernels}});
  }
  return entry;
}

void print_devices(const json& entry) {
  const std::string kind = entry["kind"], help = entry["help"];
  say("{}{}{}\n", kind, help.empty() ? "" : ": ", help);
  for (const json& device : entry["devices"]) {
    const int threads = device["threads"];
    say("  {}:{} {}, {} ({} available){}\n", kind, device["ordinal"].get<int>(),
        device["name"].get<std::string>(), human_bytes(device["memory_bytes"]),
        human_bytes(device["available_bytes"]),
        threads > 0 ? fmt::format(", {} cores", threads) : "");
    const std::string kernels = device["kernels"], limits = device["limits"];
    if (!limits.empty()) say("        {}\n", limits);
    if (!kernels.empty()) say("        kernels: {}\n", kernels);
  }
  if (!entry.contains("reason")) return;
  say("  {}{}\n",
      entry["devices"].empty() ? "none: " : "not: ", entry["reason"].get<std::string>());
}

int list_devices(bool as_json) {
  const Registry registry = Registry::with_defaults();
  json tree = json::array();
  for (const std::string& kind : registry.backends()) {
    tree.push_back(devices_json(registry, kind));
    if (!as_json) print_devices(tree.back());
  }
  return as_json ? print_json(tree) : 0;
}

// Options for measuring have no effect on a list; of these only --devices has one on --links.
void require_measure(const Command& command, bool of_links) {
  for (const std::string& name : command.given()) {
    if (name == "--json" || name == "--links" || (of_links && name == "--devices")) continue;
    throw error("{}: it goes with --measure FILE only; {}", name,
                of_links ? "--links reads what the devices report" : "the list is of all devices");
  }
}

DeviceSpec require_several(const Registry& registry, const std::string& text) {
  DeviceSpec spec = parse_devices(text, registry);
  if (spec.count() >= 2) return spec;
  throw error("--devices {}: links are between devices, so at least 2, as in {}", text,
              to_string(DeviceSpec{spec.kind, {0, 1}, spec.is_counted}));
}

// What the hardware reports of the links between devices, with the source of each number.
int print_links(const std::string& text) {
  const Registry registry = Registry::with_defaults();
  const DeviceSpec spec = require_several(registry, text);
  const Machine machine(registry.backend(spec.kind), spec, MachineOptions{});
  const std::shared_ptr<const Topology> topology = find_topology(machine);
  if (topology == nullptr) {
    say("{} devices report nothing about their links: {}\n", spec.kind,
        machine.has_virtual_time() ? "describe them with --link or --topology"
                                   : "measure them with --measure FILE");
    return 0;
  }
  for (int device = 0; device < spec.count(); ++device) {
    say("{}: {}:{} {}\n", topology->devices[size_t(device)], spec.kind,
        spec.ordinals[size_t(device)], machine.device_info(device).name);
  }
  say("{}", links_table(*topology));
  return 0;
}

void require_absent(const std::string& file) {
  if (std::error_code code; std::filesystem::exists(file, code)) {
    throw error("--measure {}: the file exists already: choose another name", file);
  }
}

// Measures every pair of the devices; the topology file has the speed of each pair alone.
int measure_devices(const Registry& registry, const std::string& text, const std::string& file,
                    const DeviceOptions& options) {
  const DeviceSpec spec = require_several(registry, text);
  if (has_virtual_time(registry.backend(spec.kind))) {
    throw error("--devices {}: simulated devices copy nothing, so there is nothing to measure",
                text);
  }
  const Machine machine(registry.backend(spec.kind), spec, machine_options(options));
  const std::vector<LinkMeasurement> measured = measure_links(machine);
  say("{:<8} {:>12} {:>10} {:>16} {:>22}\n", "copy", "GB/s alone", "latency", "GB/s both ways",
      "GB/s while all send");
  std::vector<MeasuredLink> links;
  for (const LinkMeasurement& link : measured) {
    say("{:<8} {:>12.2f} {:>10} {:>16.2f} {:>22}\n",
        fmt::format("{} -> {}", link.alone.source, link.alone.target), link.alone.bandwidth / 1e9,
        human_seconds(link.alone.latency), link.both_ways / 1e9,
        link.contended > 0 ? fmt::format("{:.2f}", link.contended / 1e9) : "-");
    links.push_back(link.alone);
  }
  std::vector<std::string> names;
  for (int d = 0; d < spec.count(); ++d) names.push_back(fmt::format("{}{}", spec.kind, d));
  write_output(file, topology_text(names, links));
  say("topology written to {} (for --topology)\n", file);
  return 0;
}

void print_link(const std::string& what, const std::optional<LinkSpeed>& link) {
  if (!link) return;
  say("{}: {:.2f} GB/s, latency {}\n", what, link->bandwidth / 1e9, human_seconds(link->latency));
}

// As measure_devices(), of the devices of all ranks; rank 0 prints and writes.
int measure_ranks(const Communicator& ranks, const Registry& registry, const DeviceSpec& spec,
                  const std::string& file, int threads) {
  const RankLinks links = measure_rank_links(ranks, registry, spec, threads);
  if (ranks.rank() > 0) return 0;
  if (!links.path.empty()) say("{}\n", links.path);
  print_link("copies between the devices of a rank", links.copies);
  for (size_t host = 0; host < links.hosts.size(); ++host) {
    print_link(fmt::format("messages between ranks on {}", links.hosts[host]), links.within[host]);
    print_link(fmt::format("messages between {} and {}", links.hosts[0], links.hosts[host]),
               links.to_first[host]);
  }
  write_output(file, rank_topology_text(links, spec.count()));
  say("topology of {} ranks of {} written to {} (for --topology)\n", ranks.size(), to_string(spec),
      file);
  return 0;
}

int measure_all(const DevicesArguments& a, const Command& command) {
  constexpr double watchdog_seconds = 600;
  const Registry registry = Registry::with_defaults();
  const std::unique_ptr<Communicator> ranks =
      open_ranks(registry, 0, watchdog_seconds, command.given_values());
  return as_rank(ranks.get(), [&] {
    if (ranks == nullptr || ranks->rank() == 0) require_absent(a.measure);
    if (ranks == nullptr) return measure_devices(registry, a.devices, a.measure, a.machine);
    if (!a.machine.link.empty() || !a.machine.topology.empty()) {
      throw error("--link and --topology are for one process: links between ranks are measured");
    }
    require_messages_from(registry, a.devices);
    return measure_ranks(*ranks, registry, parse_devices(a.devices, registry), a.measure,
                         machine_options(a.machine).threads);
  });
}

int run_devices(DevicesArguments& a, const Command& command) {
  if (!a.measure.empty()) return measure_all(a, command);
  require_measure(command, a.links);
  return a.links ? print_links(a.devices) : list_devices(a.as_json);
}

}  // namespace

void add_devices(CommandLine& line) {
  Command& command =
      line.add("devices", "List the kinds of devices and what this machine has of each");
  DevicesArguments& a = command.runs(run_devices);
  command.add({
      json_option(a.as_json),
      {"--measure FILE", &a.measure,
       "Measure the copies between every pair of --devices, or the messages between ranks, and "
       "write this topology file",
       excludes("--json")},
      {"--links", &a.links,
       "Print what the hardware reports of the links between --devices: PCIe, NVLink",
       excludes("--json"), excludes("--measure")},
      {"--devices DEVICES", &a.devices, "Between which devices, e.g. cpu:4", show_default},
  });
  add_device_options(command, a.machine);
}

}  // namespace tandem::cli
