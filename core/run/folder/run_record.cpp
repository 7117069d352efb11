#include "core/run/folder/run_record.h"

#include <algorithm>
#include <cmath>

#include "core/device/topology.h"
#include "core/formats/json_text.h"
#include "core/schedule/cost/topology_file.h"

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

OptionValue option_value_from(const JsonFields& fields, const std::string& key) {
  const json& value = fields.at(key);
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return fields.get<int64_t>(key);
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) fields.wrong(key, "a text, a number, true or false");
  return value.get<std::string>();
}

// Calls take(key, value) for each option that the record has as it is.
template <class Options, class Take>
void for_each_option(Options& o, const Take& take) {
  take("data", o.data);
  take("net", o.net);
  take("solver", o.solver);
  take("devices", o.devices);
  take("ranks", o.ranks);
  take("precision", o.precision);
  take("loss_scale", o.loss_scale);
  take("pixels", o.pixels);
  take("strategy", o.strategy);
  take("strategy_options", o.strategy_options);
  take("image_size", o.image_size);
  take("batch", o.batch);
  take("epochs", o.epochs);
  take("steps", o.steps);
  take("rate", o.rate);
  take("seed", o.seed);
  take("test_interval", o.test_interval);
  take("display", o.display);
  take("snapshot", o.snapshot);
  take("decode_threads", o.decode_threads);
  take("prefetch", o.prefetch);
  take("balance", o.balance);
  take("mixup", o.mixup);
  take("cutmix", o.cutmix);
  take("class_weights", o.class_weights);
  take("label_smoothing", o.label_smoothing);
  take("patience", o.patience);
  take("recipe", o.recipe);
  take("augment", o.augment);
  take("freeze", o.freeze);
  take("freeze_bn", o.freeze_batch_norm);
  take("head_lr", o.head_rate);
  take("layer_decay", o.layer_decay);
  take("ema", o.average_decay);
  take("bad_share_limit", o.bad_share_limit);
  take("data_parameters", o.data_parameters);
  take("tune", o.tune);
}

// Those that records of older versions lack.
template <class Options, class Take>
void for_each_later_option(Options& o, const Take& take) {
  take("unfreeze_after", o.unfreeze_after);
  take("solver_type", o.solver_type);
  take("solver_fields", o.solver_fields);
  take("loss", o.loss);
  take("train_state", o.train_state);
  take("test_state", o.test_state);
}

template <class Machine, class Take>
void for_each_machine_option(Machine& machine, const Take& take) {
  take("threads", machine.threads);
  take("link_bandwidth", machine.link.bandwidth);
  take("link_latency", machine.link.latency);
}

template <class Values, class Take>
void for_each_part(Values& fingerprint, const Take& take) {
  take("names", fingerprint.names);
  take("sizes", fingerprint.sizes);
  take("bytes", fingerprint.bytes);
  take("contents", fingerprint.contents);
}

template <class Record, class Take>
void for_each_field(Record& record, const Take& take) {
  take("net_name", record.net_name);
  take("class_names", record.class_names);
  take("training_samples", record.training_samples);
  take("class_weights", record.class_weights);
  take("data_parameters", record.data_parameters);
  take("given_options", record.given_options);
}

template <class T>
json value_json(const T& value) {
  return value;
}
template <class T>
json value_json(const std::optional<T>& value) {
  return value ? json(*value) : json();
}
json value_json(const StrategyOptions& options) {
  json tree = json::object();
  for (const auto& [key, value] : options) {
    std::visit([&, name = key](const auto& v) { tree[name] = v; }, value);
  }
  return tree;
}

json value_json(const std::optional<NetState>& state) {
  return state ? json{{"level", state->level}, {"stages", state->stages}} : json();
}

// Writes the values that it is called for into `tree`.
auto written_to(json& tree) {
  return [&tree](const char* key, const auto& value) { tree[key] = value_json(value); };
}

json fingerprints_json(const std::map<std::string, Fingerprint>& fingerprints) {
  json tree = json::object();
  for (const auto& [split, one] : fingerprints) for_each_part(one, written_to(tree[split]));
  return tree;
}

template <class T>
void read_value(const JsonFields& fields, const char* key, T& value) {
  value = fields.get<T>(key);
}
template <class T>
void read_value(const JsonFields& fields, const char* key, std::optional<T>& value) {
  value = fields.at(key).is_null() ? std::nullopt : std::optional(fields.get<T>(key));
}
void read_value(const JsonFields& fields, const char* key, StrategyOptions& options) {
  const JsonFields values = fields.object(key);
  for (const auto& [name, ignored] : fields.at(key).items()) {
    options[name] = option_value_from(values, name);
  }
}
void read_value(const JsonFields& fields, const char* key, std::optional<NetState>& state) {
  if (fields.at(key).is_null()) return;
  const JsonFields parts = fields.object(key);
  state = {parts.get<int64_t>("level"), parts.get<std::vector<std::string>>("stages")};
}

// Reads the values that it is called for. Each of them must be there.
auto read_from(const JsonFields& fields) {
  return [&fields](const char* key, auto& value) { read_value(fields, key, value); };
}

std::map<std::string, Fingerprint> fingerprints_from(const JsonFields& splits, const json& tree) {
  std::map<std::string, Fingerprint> fingerprints;
  for (const auto& [split, ignored] : tree.items()) {
    const JsonFields fields = splits.object(split);
    for_each_part(fingerprints[split], read_from(fields));
  }
  return fingerprints;
}

}  // namespace

int64_t unfreezing_step(const RunRecord& record, int64_t micro_batches) {
  if (record.head.empty()) return 0;
  const auto images = static_cast<double>(record.options.batch * micro_batches);
  const double samples =
      record.options.unfreeze_after.value_or(0) * static_cast<double>(record.training_samples);
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(samples / images)));
}

std::string parameter(const RunRecord& record, const std::string& name) {
  const auto found = record.data_parameters.find(name);
  return found == record.data_parameters.end() ? "" : found->second;
}

std::map<std::string, std::string> preparation_of(const RunRecord& record) {
  std::map<std::string, std::string> preparation;
  for (const char* name : {"mean", "mean_image", "scale", "color", "fit", "resize", "resize_width",
                           "interpolation", "resampling"}) {
    const auto found = record.data_parameters.find(name);
    if (found != record.data_parameters.end()) preparation.insert(*found);
  }
  return preparation;
}

std::string to_json(const RunRecord& record) {
  const MachineOptions& machine = record.machine;
  json machine_tree, options, tree;
  for_each_machine_option(machine, written_to(machine_tree));
  if (machine.topology != nullptr) machine_tree["topology"] = topology_json(*machine.topology);
  for_each_option(record.options, written_to(options));
  options["recompute"] = record.options.recompute.value_or(false);
  for_each_later_option(record.options, written_to(options));
  options["machine"] = machine_tree;
  for_each_field(record, written_to(tree));
  tree["task"] = record.task;
  tree["target_scale"] = {{"means", record.target_scale.means},
                          {"deviations", record.target_scale.deviations}};
  tree["format"] = "tandem run 1";
  tree["options"] = options;
  tree["folder"] = record.folder.string();
  tree["fingerprints"] = fingerprints_json(record.fingerprints);
  tree["data_shape"] = {record.data.c, record.data.h, record.data.w};
  tree["choices"] = {{"strategy", record.strategy}, {"algorithms", record.algorithms}};
  tree["layer_types"] = record.layer_types;
  tree["architecture"] = record.architecture;
  if (!record.dataset.empty()) tree["dataset"] = record.dataset;
  if (!record.first_weights.empty()) tree["first_weights"] = record.first_weights;
  if (!record.head.empty()) tree["head"] = record.head;
  return tree.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

RunRecord run_record_from_json(const std::string& text, const std::string& file) {
  try {
    const json tree = parse_json(text);
    const JsonFields fields(tree);
    const JsonFields options = fields.object("options"), choices = fields.object("choices"),
                     machine = options.object("machine");
    RunRecord record;
    for_each_option(record.options, read_from(options));
    record.options.recompute = options.get<bool>("recompute");
    for_each_later_option(record.options, [&](const char* key, auto& value) {
      if (options.find(key) != nullptr) read_value(options, key, value);
    });
    for_each_machine_option(record.machine, read_from(machine));
    if (machine.find("topology") != nullptr) {
      record.machine.topology = topology_from(machine.object("topology"));
    }
    for_each_field(record, read_from(fields));
    if (fields.find("task") != nullptr) {  // runs of older versions have classes
      record.task = fields.get<int64_t>("task");
      const JsonFields scale = fields.object("target_scale");
      record.target_scale = {scale.get<std::vector<double>>("means"),
                             scale.get<std::vector<double>>("deviations")};
    }
    record.folder = fields.get<std::string>("folder");
    record.fingerprints =
        fingerprints_from(fields.object("fingerprints"), fields.at("fingerprints"));
    const auto shape = fields.get<std::vector<int64_t>>("data_shape");
    if (shape.size() != 3) fields.wrong("data_shape", "a list of three numbers");
    record.data = {1, shape[0], shape[1], shape[2]};
    record.strategy = choices.get<std::string>("strategy");
    record.algorithms = choices.get<KernelChoices>("algorithms");
    if (fields.find("layer_types") != nullptr) {
      record.layer_types = fields.get<std::set<std::string>>("layer_types");
    }
    if (fields.find("dataset") != nullptr) record.dataset = fields.get<std::string>("dataset");
    if (fields.find("first_weights") != nullptr) {
      record.first_weights = fields.get<std::string>("first_weights");
    }
    record.architecture = "x86-64";  // of versions that recorded none
    if (fields.find("architecture") != nullptr) {
      record.architecture = fields.get<std::string>("architecture");
    }
    if (fields.find("head") != nullptr) record.head = fields.get<std::vector<std::string>>("head");
    return record;
  } catch (const JsonMistake& mistake) {
    throw error("file '{}' is not a run's record: {}", file, mistake.what());
  }
}

}  // namespace tandem
