#include "core/cli/plan_report.h"

#include <fmt/format.h>

#include "core/base/strings.h"
#include "core/device/find_topology.h"

namespace tandem::cli {

using nlohmann::json;

std::string links_text(const MachineOptions& machine) {
  if (machine.topology != nullptr) return "links: " + source_text(*machine.topology) + "\n";
  if (machine.link.bandwidth <= 0) return "links: 4 GB/s between each pair (no --link)\n";
  return fmt::format("links: {:.3g} GB/s and {} between each pair, each direction by itself\n",
                     machine.link.bandwidth / 1e9, human_seconds(machine.link.latency));
}

std::string bounds_text(const StepBounds& bounds, const ChainBound& chain, double step) {
  std::string text =
      fmt::format("bound: compute {} on device {}{}; the larger is {:.1f} % of the step\n",
                  human_seconds(bounds.compute), bounds.device,
                  bounds.link_name.empty()
                      ? ""
                      : fmt::format(", link '{}' {}", bounds.link_name, human_seconds(bounds.link)),
                  100 * bounds.step() / step);
  if (chain.seconds > bounds.step()) {
    text += fmt::format(
        "chain: {} from '{}' to the next, of which device {} computes {}; that is {:.1f} % of the "
        "step\n",
        human_seconds(chain.seconds), chain.task, chain.device, human_seconds(chain.computes),
        100 * chain.seconds / step);
  }
  return text;
}

std::string memory_text(const MemoryPlan& memory) {
  std::string text;
  for (size_t d = 0; d < memory.persistent_bytes.size(); ++d) {
    text += fmt::format(
        "memory of device {}: {} (weights and solver state {}, activations and buffers {})\n", d,
        human_bytes(memory.persistent_bytes[d] + memory.transient_bytes[d]),
        human_bytes(memory.persistent_bytes[d]), human_bytes(memory.transient_bytes[d]));
    if (memory.extended_bytes[d] == 0) continue;
    text +=
        fmt::format("extended memory of device {}: {}\n", d, human_bytes(memory.extended_bytes[d]));
  }
  return text;
}

json to_json(const Forecast& forecast) {
  json tree = {{"strategy", forecast.strategy}, {"name", forecast.name}};
  if (!forecast.refusal.empty()) {
    tree["refused"] = forecast.refusal;
    return tree;
  }
  tree["predicted_step_seconds"] = forecast.step_seconds();
  tree["images_per_second"] = forecast.measured.images_per_second;
  tree["speed_up"] = forecast.speed_up;
  tree["exposed_communication_seconds"] = forecast.exposed_seconds();
  tree["memory_bytes"] = forecast.memory;
  tree["fits"] = forecast.fits;
  tree["path"] = json::array();
  for (const PathPart& part : forecast.path) {
    tree["path"].push_back({{"stage", to_string(part.stage)}, {"share", part.share}});
  }
  return tree;
}

json tasks_json(const Plan& plan) {
  json tasks = json::array();
  for (const Task& task : plan.tasks) {
    json entry = {{"label", task.label},
                  {"stage", to_string(task.stage)},
                  {"streams", json::array()},
                  {"after", json::array()}};
    for (const StreamId& id : task.streams) {
      entry["streams"].push_back({{"device", id.device}, {"stream", to_string(id.kind)}});
    }
    for (const Dependency& d : task.after) {
      entry["after"].push_back({{"task", plan.tasks[static_cast<size_t>(d.task)].label},
                                {"micro_batches_back", d.micro_batches_back}});
    }
    tasks.push_back(entry);
  }
  return tasks;
}

}  // namespace tandem::cli
