#include "core/model/file/definition.h"

#include <algorithm>
#include <array>

#include "core/model/file/fields.h"
#include "core/model/file/net_inputs.h"
#include "core/model/file/old_forms.h"

namespace tandem {

namespace {

WeightRule read_weight_rule(const Field& field, const std::string& owner) {
  WeightRule rule;
  const auto read_mode = [&](const Field& f) {
    const std::string& mode = text_of(f, owner);
    rule.permissive = mode == "PERMISSIVE" || mode == "1";
    if (!rule.permissive && mode != "STRICT" && mode != "0") {
      throw wrong_value(f, owner, "STRICT or PERMISSIVE");
    }
  };
  read_fields(block_of(field, owner), "field of param", owner,
              {{"lr_mult", [&](const Field& f) { rule.rate_written = number_of(f, owner); }},
               {"decay_mult", [&](const Field& f) { rule.decay_written = number_of(f, owner); }},
               {"name", [&](const Field& f) { rule.name = text_of(f, owner); }},
               {"share_mode", read_mode}});
  return rule;
}

void read_layer_field(const Field& field, LayerDefinition& layer) {
  const std::string owner = layer.title();
  if (field.name == "bottom") {
    layer.bottoms.push_back(text_of(field, owner));
  } else if (field.name == "top") {
    layer.tops.push_back(text_of(field, owner));
  } else if (field.name == "loss_weight") {
    layer.loss_weights.push_back(number_of(field, owner));
  } else if (field.name == "param") {
    layer.weight_rules.push_back(read_weight_rule(field, owner));
  } else if (field.name == "include") {
    layer.include.push_back(read_rule(field, owner));
  } else if (field.name == "exclude") {
    layer.exclude.push_back(read_rule(field, owner));
  } else if (field.name == "propagate_down") {
    layer.propagate_down.push_back(boolean_of(field, owner));
  } else if (field.name == "phase") {
    throw error("{}: 'phase' on the layer itself is not supported; write include {{ phase: {} }}{}",
                owner, field.text, in_file(field.location));
  } else if (field.name == "blobs") {
    throw error("{}: weights inside a net's file are not read; give a file of weights instead{}",
                owner, in_file(field.location));
  } else if (field.name == "blobs_lr" || field.name == "weight_decay") {
    throw error("{}: '{}' belongs to the old form ('layers'); write param {{ {}: {} }}{}", owner,
                field.name, field.name == "blobs_lr" ? "lr_mult" : "decay_mult", field.text,
                in_file(field.location));
  }
}

LayerDefinition read_layer(Message body, const Location& location) {
  LayerDefinition layer;
  layer.location = {location.file, location.line, 0};
  require_once(body, {"name", "type"}, "layer");
  if (const Field* name = body.find("name")) layer.name = text_of(*name, "layer");
  if (layer.name.empty()) throw error("layer without a name{}", in_file(layer.location));
  if (const Field* type = body.find("type")) layer.type = text_of(*type, layer.title());
  if (layer.type.empty()) {
    throw error("layer '{}' has no type, as type: \"Convolution\"{}", layer.name,
                in_file(layer.location));
  }
  for (const Field& field : body.fields) read_layer_field(field, layer);
  if (!layer.include.empty() && !layer.exclude.empty()) {
    throw error("{}: has both include and exclude, but only one of them can decide{}",
                layer.title(), in_file(layer.location));
  }
  layer.body = std::move(body);
  return layer;
}

// `input_dim`: four for each input.
void read_input_dims(const Message& message, NetDefinition& net) {
  const std::vector<const Field*> dims = message.all("input_dim");
  if (dims.empty()) return;
  if (dims.size() != 4 * net.inputs.size()) {
    throw error("net '{}' has {} input_dim for {} inputs, but must have 4 for each (N, C, H, W){}",
                net.name, dims.size(), net.inputs.size(), in_file(dims.front()->location));
  }
  for (size_t i = 0; i < dims.size(); i += 4) {
    const auto dim = [&](size_t k) { return positive_of(*dims[i + k], "net"); };
    net.input_shapes.push_back({dim(0), dim(1), dim(2), dim(3)});
  }
}

// Far more than any net has. Each takes some kilobytes, and a plan some ten times as much.
constexpr size_t most_layers = 100000;

// Fields that read_layer() also reads into members, which may have been changed since. They are
// written from the members, all others from the message.
constexpr std::array kept_apart{"name",  "type",    "bottom",  "top",           "loss_weight",
                                "param", "include", "exclude", "propagate_down"};

void add_number(Message& message, const std::string& name, double value) {
  message.add(name, fmt::format("{}", value));
}

void add_rule(Message& message, const char* name, const StateRule& rule) {
  Message& block = message.add_block(name);
  if (rule.phase) block.add("phase", *rule.phase == TANDEM_TRAIN ? "TRAIN" : "TEST");
  const auto level = [&block](const char* field, const std::optional<int64_t>& value) {
    if (value) block.add(field, fmt::format("{}", *value));
  };
  level("min_level", rule.minimum_level);
  level("max_level", rule.maximum_level);
  for (const std::string& stage : rule.stages) block.add("stage", stage, true);
  for (const std::string& stage : rule.excluded_stages) block.add("not_stage", stage, true);
}

void add_weight_rule(Message& message, const WeightRule& rule) {
  Message& block = message.add_block("param");
  if (!rule.name.empty()) block.add("name", rule.name, true);
  if (rule.rate_written) add_number(block, "lr_mult", *rule.rate_written);
  if (rule.decay_written) add_number(block, "decay_mult", *rule.decay_written);
  if (rule.permissive) block.add("share_mode", "PERMISSIVE");
}

void add_layer(Message& net, const LayerDefinition& layer) {
  Message& message = net.add_block("layer");
  message.add("name", layer.name, true);
  message.add("type", layer.type, true);
  for (const std::string& bottom : layer.bottoms) message.add("bottom", bottom, true);
  for (const std::string& top : layer.tops) message.add("top", top, true);
  for (const double weight : layer.loss_weights) add_number(message, "loss_weight", weight);
  for (const bool down : layer.propagate_down) {
    message.add("propagate_down", down ? "true" : "false");
  }
  for (const StateRule& rule : layer.include) add_rule(message, "include", rule);
  for (const StateRule& rule : layer.exclude) add_rule(message, "exclude", rule);
  for (const WeightRule& rule : layer.weight_rules) add_weight_rule(message, rule);
  for (const Field& field : layer.body.fields) {
    if (std::find(kept_apart.begin(), kept_apart.end(), field.name) == kept_apart.end()) {
      message.fields.push_back(field);
    }
  }
}

}  // namespace

bool LayerDefinition::in_phase(int32_t phase, const NetState& state) const {
  const auto holds = [&](const StateRule& rule) { return rule.holds(phase, state); };
  if (!include.empty()) return std::any_of(include.begin(), include.end(), holds);
  return std::none_of(exclude.begin(), exclude.end(), holds);
}

std::string LayerDefinition::title() const {
  return type.empty() ? fmt::format("layer '{}'", name)
                      : fmt::format("layer '{}' ({})", name, type);
}

NetDefinition parse_net(const Message& message, const std::string& file) {
  static const std::vector<std::string> known{"name",           "layer",       "layers",
                                              "input",          "input_shape", "input_dim",
                                              "force_backward", "state",       "debug_info"};
  if (message.find("base_lr") != nullptr) {
    throw error("'{}' is a solver, not a net: give it to `tandem train --solver`", file);
  }
  require_known(message, known, "field", "net");
  require_once(message, {"name", "state"}, "net");
  NetDefinition net;
  net.file = file;
  if (const Field* name = message.find("name")) net.name = text_of(*name, "net");
  std::vector<Field> layers = current_layers(message);
  if (layers.size() > most_layers) {
    throw error("net '{}' has {} layers, but at most {} are read{}", net.name, layers.size(),
                most_layers, in_file(layers[most_layers].location));
  }
  for (Field& layer : layers) {
    net.layers.push_back(read_layer(std::move(*layer.message), layer.location));
  }
  for (const Field& field : message.fields) {
    if (field.name == "state") {
      net.state = read_state(field, "net");
    } else if (field.name == "input") {
      net.inputs.push_back(text_of(field, "net"));
    } else if (field.name == "input_shape") {
      net.input_shapes.push_back(shape_of(field, "net"));
    }
  }
  read_input_dims(message, net);
  check_data_layers(net);
  if (net.layers.empty()) {
    throw error("net '{}' has no layers: is '{}' a net's definition?", net.name, file);
  }
  return net;
}

NetDefinition read_net(const std::filesystem::path& path) {
  NetDefinition net = parse_net(read_text_format(path), path.string());
  if (net.name.empty()) net.name = path.stem().string();
  return net;
}

NetDefinition read_net_text(const std::string& text) {
  return parse_net(parse_text_format(text, "net built in C++"), "");
}

std::string write_net(const NetDefinition& net) {
  Message message;
  message.add("name", net.name, true);
  for (const std::string& input : net.inputs) message.add("input", input, true);
  for (const Shape& shape : net.input_shapes) {
    Message& block = message.add_block("input_shape");
    for (const int64_t dim : {shape.n, shape.c, shape.h, shape.w}) {
      block.add("dim", fmt::format("{}", dim));
    }
  }
  if (!(net.state == NetState{})) {
    Message& block = message.add_block("state");
    if (net.state.level != 0) block.add("level", fmt::format("{}", net.state.level));
    for (const std::string& stage : net.state.stages) block.add("stage", stage, true);
  }
  for (const LayerDefinition& layer : net.layers) add_layer(message, layer);
  return write_text_format(message);
}

}  // namespace tandem
