#include "core/model/definition.h"

#include <algorithm>

#include "core/model/data_layer.h"
#include "core/model/fields.h"
#include "core/model/old_form.h"

namespace tandem {

namespace {

WeightRule read_weight_rule(const Field& field, const std::string& owner) {
  WeightRule rule;
  for (const Field& part : block_of(field, owner).fields) {
    if (part.name == "name") {
      rule.name = text_of(part, owner);
    } else if (part.name == "lr_mult") {
      rule.rate_written = number_of(part, owner);
    } else if (part.name == "decay_mult") {
      rule.decay_written = number_of(part, owner);
    } else if (part.name == "share_mode") {
      const std::string& mode = text_of(part, owner);
      rule.permissive = mode == "PERMISSIVE" || mode == "1";
      if (!rule.permissive && mode != "STRICT" && mode != "0") {
        throw wrong_value(part, owner, "STRICT or PERMISSIVE");
      }
    } else {
      throw unknown_field(part, {"lr_mult", "decay_mult", "name", "share_mode"}, "field of param",
                          owner);
    }
  }
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
                owner, field.text, in_place(field.location));
  } else if (field.name == "blobs") {
    throw error("{}: weights inside a net's file are not read; give a file of weights instead{}",
                owner, in_place(field.location));
  } else if (field.name == "blobs_lr" || field.name == "weight_decay") {
    throw error("{}: '{}' belongs to the old form ('layers'); write param {{ {}: {} }}{}", owner,
                field.name, field.name == "blobs_lr" ? "lr_mult" : "decay_mult", field.text,
                in_place(field.location));
  }
}

LayerDefinition read_layer(Message body, const Location& location) {
  LayerDefinition layer;
  layer.location = {location.file, location.line, 0};
  if (const Field* name = body.find("name")) layer.name = text_of(*name, "layer");
  if (layer.name.empty()) throw error("layer without a name{}", in_place(layer.location));
  if (const Field* type = body.find("type")) layer.type = text_of(*type, layer.title());
  if (layer.type.empty()) {
    throw error("layer '{}' has no type, as type: \"Convolution\"{}", layer.name,
                in_place(layer.location));
  }
  for (const Field& field : body.fields) read_layer_field(field, layer);
  if (!layer.include.empty() && !layer.exclude.empty()) {
    throw error("{}: has both include and exclude, but only one of them can decide{}",
                layer.title(), in_place(layer.location));
  }
  layer.body = std::move(body);
  return layer;
}

// `input_dim`: four of them for every input.
void read_input_dims(const Message& message, NetDefinition& net) {
  const std::vector<const Field*> dims = message.all("input_dim");
  if (dims.empty()) return;
  if (dims.size() != 4 * net.inputs.size()) {
    throw error("net '{}' has {} input_dim for {} inputs, but must have 4 for each (N, C, H, W){}",
                net.name, dims.size(), net.inputs.size(), in_place(dims.front()->location));
  }
  for (size_t i = 0; i < dims.size(); i += 4) {
    const auto dim = [&](size_t k) { return positive_of(*dims[i + k], "net"); };
    net.input_shapes.push_back({dim(0), dim(1), dim(2), dim(3)});
  }
}

}  // namespace

bool LayerDefinition::in_phase(int32_t phase) const {
  const auto holds = [phase](const StateRule& rule) { return rule.holds(phase); };
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
    throw error(
        "'{}' is a solver, not a net: `tandem train --solver` takes it; its net stands in it",
        file);
  }
  require_known(message, known, "field", "net");
  NetDefinition net;
  net.file = file;
  if (const Field* name = message.find("name")) net.name = text_of(*name, "net");
  for (Field& layer : current_layers(message)) {
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

}  // namespace tandem
