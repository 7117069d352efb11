#include "core/train/run_record.h"

#include "core/device/find_topology.h"
#include "core/schedule/cost/topology_file.h"
#include "core/schedule/strategies/strategies.h"
#include "core/train/json_text.h"

namespace tandem {
namespace {

using nlohmann::json;

// A topology that was read from a file is kept as its text, one that the hardware reported by
// parts.
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

json strategy_options_json(const StrategyOptions& options) {
  json tree = json::object();
  for (const auto& [key, value] : options) {
    std::visit([&, name = key](const auto& v) { tree[name] = v; }, value);
  }
  return tree;
}

OptionValue option_value_from(const json& tree) {
  if (tree.is_boolean()) return tree.get<bool>();
  if (tree.is_number_integer()) return tree.get<int64_t>();
  if (tree.is_number()) return tree.get<double>();
  return tree.get<std::string>();
}

StrategyOptions strategy_options_from(const json& tree) {
  StrategyOptions options;
  for (const auto& [key, value] : tree.items()) options[key] = option_value_from(value);
  return options;
}

// Records of earlier versions hold all strategies' options among the others and in "roles", and the
// names of those that were given.
void read_old_strategy_options(const json& tree, RunRecord& record) {
  const json& options = tree.at("options");
  const json roles = options.value("roles", json::object());
  const std::string split = tree.at("choices").at("split");
  const auto names = options.value("explicit_options", std::set<std::string>());
  StrategyOptions values;
  for (const KnownOption& known : built_in_strategies().options()) {
    const std::string& key = known.option.key;
    const json& holder = options.contains(key) ? options : roles;
    if (holder.contains(key)) values[key] = option_value_from(holder.at(key));
    if (key == "split" && !split.empty()) values[key] = split;
    if (names.contains(known.option.name)) record.given_options.insert(key);
  }
  const std::string& strategy = record.options.strategy;
  record.options.strategy_options =
      built_in_strategies().explicit_options(built_in_strategies().options_of(strategy, values));
}

json options_json(const TrainOptions& o, const MachineOptions& machine) {
  return {{"data", o.data},
          {"net", o.net},
          {"solver", o.solver},
          {"devices", o.devices},
          {"ranks", o.ranks},
          {"precision", o.precision},
          {"loss_scale", o.loss_scale ? json(*o.loss_scale) : json()},
          {"pixels", o.pixels},
          {"strategy", o.strategy},
          {"strategy_options", strategy_options_json(o.strategy_options)},
          {"image_size", o.image_size},
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
          {"label_smoothing", o.label_smoothing},
          {"patience", o.patience},
          {"recipe", o.recipe},
          {"augment", o.augment},
          {"freeze", o.freeze},
          {"freeze_bn", o.freeze_batch_norm},
          {"head_lr", o.head_rate},
          {"ema", o.average_decay},
          {"bad_share_limit", o.bad_share_limit},
          {"data_parameters", o.data_parameters},
          {"tune", o.tune},
          {"machine", machine_json(machine)}};
}

TrainOptions options_from(const json& tree) {
  TrainOptions o;
  o.data = tree.at("data");
  o.net = tree.at("net");
  o.solver = tree.at("solver");
  o.devices = tree.at("devices");
  o.ranks = tree.value("ranks", 1);
  o.precision = tree.value("precision", std::string("float32"));
  if (tree.contains("loss_scale") && !tree.at("loss_scale").is_null()) {
    o.loss_scale = tree.at("loss_scale").get<double>();
  }
  o.pixels = tree.value("pixels", std::string("floats"));
  o.strategy = tree.at("strategy");
  if (tree.contains("strategy_options")) {
    o.strategy_options = strategy_options_from(tree.at("strategy_options"));
  }
  o.image_size = tree.value("image_size", int64_t{0});
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
  o.label_smoothing = tree.value("label_smoothing", 0.0);
  o.patience = tree.value("patience", int64_t{0});
  o.recipe = tree.value("recipe", std::string());
  o.augment = tree.value("augment", std::string());
  o.freeze = tree.value("freeze", std::vector<std::string>());
  o.freeze_batch_norm = tree.value("freeze_bn", false);
  o.head_rate = tree.value("head_lr", 1.0);
  o.average_decay = tree.value("ema", 0.0);
  o.bad_share_limit = tree.value("bad_share_limit", o.bad_share_limit);
  o.data_parameters = tree.at("data_parameters").get<std::map<std::string, std::string>>();
  o.tune = tree.value("tune", false);
  return o;
}

MachineOptions machine_from(const json& tree) {
  MachineOptions machine;
  machine.threads = tree.at("threads");
  machine.link.bandwidth = tree.at("link_bandwidth");
  machine.link.latency = tree.at("link_latency");
  if (tree.contains("topology")) machine.topology = topology_from(tree.at("topology"));
  return machine;
}

}  // namespace

std::string to_json(const RunRecord& record) {
  const json tree = {
      {"format", "tandem run 1"},
      {"options", options_json(record.options, record.machine)},
      {"net_name", record.net_name},
      {"folder", record.folder.string()},
      {"data_shape", {record.data.c, record.data.h, record.data.w}},
      {"class_names", record.class_names},
      {"training_samples", record.training_samples},
      {"class_weights", record.class_weights},
      {"data_parameters", record.data_parameters},
      {"given_options", record.given_options},
      {"choices", {{"strategy", record.strategy}, {"algorithms", record.algorithms}}}};
  return tree.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

RunRecord run_record_from_json(const std::string& text, const std::string& file) {
  try {
    const json tree = parse_json(text);
    RunRecord record;
    record.options = options_from(tree.at("options"));
    record.machine = machine_from(tree.at("options").at("machine"));
    record.net_name = tree.at("net_name");
    record.folder = tree.value("folder", std::string());
    const json& shape = tree.at("data_shape");
    record.data = {1, shape.at(0), shape.at(1), shape.at(2)};
    record.class_names = tree.at("class_names").get<std::vector<std::string>>();
    record.training_samples = tree.at("training_samples");
    record.class_weights = tree.value("class_weights", std::vector<float>());
    record.data_parameters = tree.at("data_parameters").get<std::map<std::string, std::string>>();
    if (tree.contains("given_options")) {
      record.given_options = tree.at("given_options").get<std::set<std::string>>();
    } else {
      read_old_strategy_options(tree, record);
    }
    record.strategy = tree.at("choices").value("strategy", std::string());
    record.algorithms = tree.at("choices").value("algorithms", KernelChoices());
    return record;
  } catch (const json::exception& failure) {
    throw error("file '{}' is not a run's record: {}", file, reason_of(failure));
  }
}

}  // namespace tandem
