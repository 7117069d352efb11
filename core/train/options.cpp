#include "core/train/options.h"

#include <nlohmann/json.hpp>

#include "core/device/find_topology.h"
#include "core/schedule/cost/topology_file.h"
#include "core/schedule/strategies/strategy_options.h"

namespace tandem {
namespace {

using nlohmann::json;

// One that was read is kept as it was written; one that the hardware told of itself, as it is.
json topology_json(const Topology& topology) {
  json tree = {{"file", topology.file}, {"text", topology.text}};
  if (!topology.text.empty()) return tree;
  tree["devices"] = topology.devices;
  for (const Topology::Channel& channel : topology.channels) {
    tree["channels"].push_back({channel.name, channel.bandwidth});
  }
  for (const Topology::Path& path : topology.paths) {
    tree["paths"].push_back({path.latency, path.channels});
  }
  return tree;
}

std::shared_ptr<const Topology> topology_from(const json& tree) {
  const std::string text = tree.at("text"), file = tree.at("file");
  if (!text.empty()) return std::make_shared<Topology>(parse_topology(text, file));
  auto topology = std::make_shared<Topology>();
  topology->file = file;
  topology->devices = tree.at("devices").get<std::vector<std::string>>();
  topology->speeds.assign(topology->devices.size(), 1.0);
  for (const json& channel : tree.at("channels")) {
    topology->channels.push_back({channel.at(0), channel.at(1)});
  }
  for (const json& path : tree.at("paths")) {
    topology->paths.push_back({path.at(0), path.at(1).get<std::vector<uint32_t>>()});
  }
  require_sound(*topology);
  return topology;
}

json machine_json(const MachineOptions& machine) {
  json tree = {{"threads", machine.threads},
               {"link_bandwidth", machine.link.bandwidth},
               {"link_latency", machine.link.latency}};
  if (machine.topology != nullptr) {
    tree["topology"] = topology_json(*machine.topology);
  }
  return tree;
}

json roles_json(const RoleOptions& roles) {
  return {{"conv_devices", roles.conv_devices},
          {"fc_devices", roles.fc_devices},
          {"groups", roles.groups},
          {"slices", roles.slices},
          {"quota", roles.quota},
          {"eager", roles.eager},
          {"fc_memory", roles.fc_memory}};
}

RoleOptions roles_from(const json& tree) {
  RoleOptions roles;
  roles.conv_devices = tree.at("conv_devices");
  roles.fc_devices = tree.at("fc_devices");
  roles.groups = tree.at("groups");
  roles.slices = tree.value("slices", std::string());
  roles.quota = tree.at("quota");
  roles.eager = tree.value("eager", false);
  roles.fc_memory = tree.value("fc_memory", std::string());
  return roles;
}

json options_json(const TrainOptions& o) {
  return {{"data", o.data},
          {"net", o.net},
          {"solver", o.solver},
          {"devices", o.devices},
          {"precision", o.precision},
          {"loss_scale", o.loss_scale ? json(*o.loss_scale) : json()},
          {"pixels", o.pixels},
          {"strategy", o.strategy},
          {"split", o.strategy_options.split},
          {"hidden_broadcast", o.strategy_options.hidden_broadcast},
          {"time_threshold", o.strategy_options.time_threshold},
          {"weight_threshold", o.strategy_options.weight_threshold},
          {"reduce", o.strategy_options.reduce},
          {"bucket", o.strategy_options.bucket},
          {"roles", roles_json(o.strategy_options.roles)},
          {"explicit_options", o.explicit_options},
          {"batch", o.batch},
          {"epochs", o.epochs},
          {"steps", o.steps},
          {"rate", o.rate ? json(*o.rate) : json()},
          {"seed", o.seed ? json(*o.seed) : json()},
          {"test_interval", o.test_interval},
          {"display", o.display},
          {"snapshot", o.snapshot},
          {"decode_threads", o.decode_threads},
          {"balance", o.balance},
          {"mixup", o.mixup},
          {"cutmix", o.cutmix},
          {"class_weights", o.class_weights},
          {"bad_share_limit", o.bad_share_limit},
          {"data_parameters", o.data_parameters},
          {"tune", o.tune},
          {"machine", machine_json(o.machine)}};
}

TrainOptions options_from(const json& tree) {
  TrainOptions o;
  o.data = tree.at("data");
  o.net = tree.at("net");
  o.solver = tree.at("solver");
  o.devices = tree.at("devices");
  o.precision = tree.value("precision", std::string("float32"));
  if (tree.contains("loss_scale") && !tree.at("loss_scale").is_null()) {
    o.loss_scale = tree.at("loss_scale").get<double>();
  }
  o.pixels = tree.value("pixels", std::string("floats"));
  o.strategy = tree.at("strategy");
  o.strategy_options.split = tree.at("split");
  o.strategy_options.hidden_broadcast = tree.at("hidden_broadcast");
  o.strategy_options.time_threshold = tree.at("time_threshold");
  o.strategy_options.weight_threshold = tree.at("weight_threshold");
  // What records of earlier versions do not say is the default.
  o.strategy_options.reduce = tree.value("reduce", std::string());
  o.strategy_options.bucket = tree.value("bucket", int64_t{0});
  if (tree.contains("roles")) o.strategy_options.roles = roles_from(tree.at("roles"));
  o.explicit_options = tree.value("explicit_options", explicit_names(o.strategy_options));
  o.batch = tree.at("batch");
  o.epochs = tree.at("epochs");
  o.steps = tree.at("steps");
  if (!tree.at("rate").is_null()) o.rate = tree.at("rate").get<double>();
  if (!tree.at("seed").is_null()) o.seed = tree.at("seed").get<uint64_t>();
  o.test_interval = tree.at("test_interval");
  o.display = tree.at("display");
  o.snapshot = tree.at("snapshot");
  o.decode_threads = tree.at("decode_threads");
  o.balance = tree.value("balance", false);
  o.mixup = tree.value("mixup", 0.0);
  o.cutmix = tree.value("cutmix", 0.0);
  o.class_weights = tree.value("class_weights", std::string());
  o.bad_share_limit = tree.value("bad_share_limit", o.bad_share_limit);
  o.data_parameters = tree.at("data_parameters").get<std::map<std::string, std::string>>();
  o.tune = tree.value("tune", false);
  const json& machine = tree.at("machine");
  o.machine.threads = machine.at("threads");
  o.machine.link.bandwidth = machine.at("link_bandwidth");
  o.machine.link.latency = machine.at("link_latency");
  if (machine.contains("topology")) {
    o.machine.topology = topology_from(machine.at("topology"));
  }
  return o;
}

}  // namespace

std::string to_json(const RunRecord& record) {
  const json tree = {{"format", "tandem run 1"},
                     {"options", options_json(record.options)},
                     {"net_name", record.net_name},
                     {"data_shape", {record.data.c, record.data.h, record.data.w}},
                     {"class_names", record.class_names},
                     {"training_samples", record.training_samples},
                     {"class_weights", record.class_weights},
                     {"data_parameters", record.data_parameters},
                     {"choices",
                      {{"split", record.split},
                       {"strategy", record.strategy},
                       {"algorithms", record.algorithms}}}};
  return tree.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

RunRecord run_record_from_json(const std::string& text, const std::string& file) {
  try {
    const json tree = json::parse(text);
    RunRecord record;
    record.options = options_from(tree.at("options"));
    record.net_name = tree.at("net_name");
    const json& shape = tree.at("data_shape");
    record.data = {1, shape.at(0), shape.at(1), shape.at(2)};
    record.class_names = tree.at("class_names").get<std::vector<std::string>>();
    record.training_samples = tree.at("training_samples");
    record.class_weights = tree.value("class_weights", std::vector<float>());
    record.data_parameters = tree.at("data_parameters").get<std::map<std::string, std::string>>();
    record.split = tree.at("choices").at("split");
    record.strategy = tree.at("choices").value("strategy", std::string());
    record.algorithms = tree.at("choices").value("algorithms", KernelChoices());
    return record;
  } catch (const json::exception& failure) {
    throw error("file '{}' is not a run's record: {}", file, failure.what());
  }
}

}  // namespace tandem
