#include "core/cli/plan_report.h"

#include <fmt/format.h>

#include <tuple>

#include "core/base/text/strings.h"
#include "core/device/topology.h"

namespace tandem::cli {

namespace {

json forecast_json(const Forecast& forecast) {
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
      entry["after"].push_back({{"task", plan.tasks[size_t(d.task)].label},
                                {"micro_batches_back", d.micro_batches_back}});
    }
    tasks.push_back(entry);
  }
  return tasks;
}

}  // namespace

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
  constexpr size_t named = 8;  // more devices alike are one line
  std::string text;
  const auto bytes_of = [&](size_t device) {
    return std::tuple(memory.persistent_bytes[device], memory.transient_bytes[device],
                      memory.extended_bytes[device]);
  };
  const size_t count = memory.persistent_bytes.size();
  for (size_t first = 0, end = 0; first < count; first = end) {
    for (end = first + 1; end < count && bytes_of(end) == bytes_of(first);) ++end;
    const bool is_many = end - first > named;
    if (!is_many) end = first + 1;
    const std::string devices = is_many ? fmt::format("each of devices {} to {}", first, end - 1)
                                        : fmt::format("device {}", first);
    const auto [persistent, transient, extended] = bytes_of(first);
    text += fmt::format(
        "memory of {}: {} (weights and solver state {}, activations and buffers {})\n", devices,
        human_bytes(persistent + transient), human_bytes(persistent), human_bytes(transient));
    if (extended == 0) continue;
    text += fmt::format("extended memory of {}: {}\n", devices, human_bytes(extended));
  }
  return text;
}

json to_json(const ForecastList& list) {
  json tree = {{"devices", list.devices},
               {"batch", list.batch},
               {"one_device_step_seconds", list.one_device_seconds},
               {"one_device_batch", list.one_device_batch},
               {"measured_costs", list.measured_costs},
               {"estimated_costs", list.estimated_costs},
               {"strategies", json::array()}};
  for (const Forecast& forecast : list.forecasts)
    tree["strategies"].push_back(forecast_json(forecast));
  return tree;
}

json to_json(const PlannedStep& step, const Plan& plan) {
  json tree = {{"strategy", plan.strategy},
               {"devices", step.devices},
               {"split", plan.split_layer},
               {"predicted_step_seconds", step.predicted.step_seconds},
               {"without_communication_seconds", step.alone},
               {"bound_seconds",
                {{"compute", step.bounds.compute},
                 {"link", step.bounds.link},
                 {"chain", step.chain.seconds}}},
               {"images_per_second", step.predicted.images_per_second},
               {"measured_costs", step.sources.measured},
               {"estimated_costs", step.sources.estimated},
               {"notes", plan.notes},
               {"tasks", tasks_json(plan)},
               {"memory_bytes", json::array()}};
  for (size_t d = 0; d < step.memory.persistent_bytes.size(); ++d) {
    tree["memory_bytes"].push_back(step.memory.persistent_bytes[d] +
                                   step.memory.transient_bytes[d]);
  }
  return tree;
}

}  // namespace tandem::cli
