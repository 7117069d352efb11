#include "core/run/folder/run_record.h"

#include "core/device/topology.h"
#include "core/formats/json_text.h"
#include "core/schedule/cost/topology_file.h"
#include "core/schedule/strategies/strategies.h"

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

// Calls function(first, second) for each pair in a list of pairs, which says whether it has read
// both.
template <class Function>
void for_each_pair(const JsonFields& fields, const char* key, const Function& function) {
  const char* expected = "a list of pairs as they are written here";
  const json& list = fields.at(key);
  if (!list.is_array()) fields.wrong(key, expected);
  for (const json& pair : list) {
    const bool is_pair = pair.is_array() && pair.size() == 2;
    if (!is_pair || !function(pair[0], pair[1])) fields.wrong(key, expected);
  }
}

std::shared_ptr<const Topology> topology_from(const JsonFields& fields) {
  const auto text = fields.get<std::string>("text"), file = fields.get<std::string>("file");
  if (!text.empty()) return std::make_shared<Topology>(parse_topology(text, file));
  auto topology = std::make_shared<Topology>();
  topology->file = file;
  topology->devices = fields.get<std::vector<std::string>>("devices");
  topology->speeds.assign(topology->devices.size(), 1.0);
  for_each_pair(fields, "channels", [&](const json& name, const json& bandwidth) {
    Topology::Channel& channel = topology->channels.emplace_back();
    return json_values::read(name, channel.name) && json_values::read(bandwidth, channel.bandwidth);
  });
  for_each_pair(fields, "paths", [&](const json& latency, const json& channels) {
    Topology::Path& path = topology->paths.emplace_back();
    return json_values::read(latency, path.latency) && json_values::read(channels, path.channels);
  });
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

OptionValue option_value_from(const JsonFields& fields, const std::string& key) {
  const json& value = fields.at(key);
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return fields.get<int64_t>(key);
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) fields.wrong(key, "a text, a number, true or false");
  return value.get<std::string>();
}

StrategyOptions strategy_options_from(const JsonFields& fields, const json& tree) {
  StrategyOptions options;
  for (const auto& [key, value] : tree.items()) options[key] = option_value_from(fields, key);
  return options;
}

// Records of earlier versions hold all strategies' options among the others and in "roles", and the
// names of those that were given.
void read_old_strategy_options(const JsonFields& fields, RunRecord& record) {
  const JsonFields options = fields.object("options");
  const auto split = fields.object("choices").get<std::string>("split");
  const auto names = options.get("explicit_options", std::set<std::string>());
  StrategyOptions values;
  for (const KnownOption& known : built_in_strategies().options()) {
    const std::string& key = known.option.key;
    if (options.find(key) != nullptr) {
      values[key] = option_value_from(options, key);
    } else if (options.find("roles") != nullptr) {
      const JsonFields roles = options.object("roles");
      if (roles.find(key) != nullptr) values[key] = option_value_from(roles, key);
    }
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
          {"recompute", o.recompute.value_or(false)},
          {"machine", machine_json(machine)}};
}

template <class T>
std::optional<T> optional_from(const JsonFields& fields, const char* key) {
  const json* value = fields.find(key);
  return value == nullptr || value->is_null() ? std::nullopt : std::optional(fields.get<T>(key));
}

TrainOptions options_from(const JsonFields& fields) {
  TrainOptions o;
  const auto read = [&](const char* key, auto& value) {
    value = fields.get<std::decay_t<decltype(value)>>(key);
  };
  const auto read_newer = [&](const char* key, auto& value) { value = fields.get(key, value); };
  read("data", o.data);
  read("net", o.net);
  read("solver", o.solver);
  read("devices", o.devices);
  o.ranks = fields.get("ranks", 1);
  o.precision = fields.get("precision", std::string("float32"));
  o.loss_scale = optional_from<double>(fields, "loss_scale");
  o.pixels = fields.get("pixels", std::string("floats"));
  read("strategy", o.strategy);
  if (const json* strategy_options = fields.find("strategy_options")) {
    o.strategy_options =
        strategy_options_from(fields.object("strategy_options"), *strategy_options);
  }
  read_newer("image_size", o.image_size);
  read("batch", o.batch);
  read("epochs", o.epochs);
  read("steps", o.steps);
  o.rate = optional_from<double>(fields, "rate");
  o.seed = optional_from<uint64_t>(fields, "seed");
  read("test_interval", o.test_interval);
  read("display", o.display);
  read("snapshot", o.snapshot);
  read("decode_threads", o.decode_threads);
  read_newer("balance", o.balance);
  read_newer("mixup", o.mixup);
  read_newer("cutmix", o.cutmix);
  read_newer("class_weights", o.class_weights);
  read_newer("label_smoothing", o.label_smoothing);
  read_newer("patience", o.patience);
  read_newer("recipe", o.recipe);
  read_newer("augment", o.augment);
  read_newer("freeze", o.freeze);
  read_newer("freeze_bn", o.freeze_batch_norm);
  read_newer("head_lr", o.head_rate);
  read_newer("ema", o.average_decay);
  read_newer("bad_share_limit", o.bad_share_limit);
  read("data_parameters", o.data_parameters);
  read_newer("tune", o.tune);
  o.recompute = fields.get("recompute", false);
  return o;
}

MachineOptions machine_from(const JsonFields& fields) {
  MachineOptions machine;
  machine.threads = fields.get<int>("threads");
  machine.link.bandwidth = fields.get<double>("link_bandwidth");
  machine.link.latency = fields.get<double>("link_latency");
  if (fields.find("topology") != nullptr)
    machine.topology = topology_from(fields.object("topology"));
  return machine;
}

json fingerprints_json(const std::map<std::string, Fingerprint>& fingerprints) {
  json tree = json::object();
  for (const auto& [split, one] : fingerprints) {
    tree[split] = {{"names", one.names},
                   {"sizes", one.sizes},
                   {"bytes", one.bytes},
                   {"contents", one.contents}};
  }
  return tree;
}

std::map<std::string, Fingerprint> fingerprints_from(const JsonFields& fields, const json& tree) {
  std::map<std::string, Fingerprint> fingerprints;
  for (const auto& [split, ignored] : tree.items()) {
    const JsonFields one = fields.object(split);
    fingerprints[split] = {one.get<uint32_t>("names"), one.get<uint32_t>("sizes"),
                           one.get<int64_t>("bytes"), one.get<std::vector<uint64_t>>("contents")};
  }
  return fingerprints;
}

}  // namespace

std::map<std::string, std::string> preparation_of(const RunRecord& record) {
  std::map<std::string, std::string> preparation;
  for (const char* name : {"mean", "scale", "color", "resize", "interpolation", "resampling"}) {
    const auto found = record.data_parameters.find(name);
    if (found != record.data_parameters.end()) preparation.insert(*found);
  }
  return preparation;
}

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
      {"fingerprints", fingerprints_json(record.fingerprints)},
      {"given_options", record.given_options},
      {"choices", {{"strategy", record.strategy}, {"algorithms", record.algorithms}}}};
  return tree.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

RunRecord run_record_from_json(const std::string& text, const std::string& file) {
  try {
    const json tree = parse_json(text);
    const JsonFields fields(tree);
    const JsonFields options = fields.object("options"), choices = fields.object("choices");
    RunRecord record;
    record.options = options_from(options);
    record.machine = machine_from(options.object("machine"));
    record.net_name = fields.get<std::string>("net_name");
    record.folder = fields.get("folder", std::string());
    const auto shape = fields.get<std::vector<int64_t>>("data_shape");
    if (shape.size() != 3) fields.wrong("data_shape", "a list of three numbers");
    record.data = {1, shape[0], shape[1], shape[2]};
    record.class_names = fields.get<std::vector<std::string>>("class_names");
    record.training_samples = fields.get<int64_t>("training_samples");
    record.class_weights = fields.get("class_weights", std::vector<float>());
    record.data_parameters = fields.get<std::map<std::string, std::string>>("data_parameters");
    if (const json* fingerprints = fields.find("fingerprints")) {
      record.fingerprints = fingerprints_from(fields.object("fingerprints"), *fingerprints);
    }
    if (fields.find("given_options") != nullptr) {
      record.given_options = fields.get<std::set<std::string>>("given_options");
    } else {
      read_old_strategy_options(fields, record);
    }
    record.strategy = choices.get("strategy", std::string());
    record.algorithms = choices.get("algorithms", KernelChoices());
    return record;
  } catch (const JsonMistake& mistake) {
    throw error("file '{}' is not a run's record: {}", file, mistake.what());
  }
}

}  // namespace tandem
