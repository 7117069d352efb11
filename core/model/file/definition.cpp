#include "core/model/file/definition.h"

#include <algorithm>

#include "core/model/file/fields.h"
#include "core/model/file/forks.h"
#include "core/model/file/old_forms.h"

namespace tandem {

namespace {

void read_share_mode(const Field& field, const std::string& owner, WeightRule& rule) {
  const std::string& mode = text_of(field, owner);
  rule.permissive = mode == "PERMISSIVE" || mode == "1";
  if (!rule.permissive && mode != "STRICT" && mode != "0") {
    throw wrong_value(field, owner, "STRICT or PERMISSIVE");
  }
}

const MemberFields<WeightRule>& weight_rule_fields() {
  using R = WeightRule;
  static const MemberFields<R> fields{
      member("lr_mult", &R::rate_written),
      member("decay_mult", &R::decay_written),
      {"name", [](const Field& f, const std::string& owner, R& r) { r.name = text_of(f, owner); }},
      {"share_mode", read_share_mode,
       [](const R& rule, Message& to) {
         if (rule.permissive) to.add("share_mode", "PERMISSIVE");
       }},
  };
  return fields;
}

// A field that a layer cannot have. `reason` is a format of its value.
MemberField<LayerDefinition> refused(const char* name, const char* reason) {
  return {name, [reason](const Field& f, const std::string& owner, LayerDefinition& /*layer*/) {
            throw error("{}: {}{}", owner, fmt::format(fmt::runtime(reason), f.text),
                        in_file(f.location));
          }};
}

// The fields that are read into members. These may have been changed since, so they are written
// from the members, all others from the message.
const MemberFields<LayerDefinition>& layer_fields() {
  using L = LayerDefinition;
  static const MemberFields<L> fields{
      member("name", &L::name),
      member("type", &L::type),
      member("bottom", &L::bottoms),
      member("top", &L::tops),
      member("loss_weight", &L::loss_weights),
      member("propagate_down", &L::propagate_down),
      member("include", &L::include),
      member("exclude", &L::exclude),
      member("param", &L::weight_rules),
      refused("phase",
              "'phase' on the layer itself is not supported; write include {{ phase: {} }}"),
      refused("blobs", "weights inside a net's file are not read; give a file of weights instead"),
      refused("blobs_lr",
              "'blobs_lr' belongs to the old form ('layers'); write param {{ lr_mult: {} }}"),
      refused(
          "weight_decay",
          "'weight_decay' belongs to the old form ('layers'); write param {{ decay_mult: {} }}"),
  };
  return fields;
}

// Null for a field of the layer's type.
const MemberField<LayerDefinition>* find_layer_field(const std::string& name) {
  const MemberFields<LayerDefinition>& fields = layer_fields();
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&name](const auto& field) { return name == field.name; });
  return found == fields.end() ? nullptr : &*found;
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
  const std::string owner = layer.title();
  for (const Field& field : body.fields) {
    if (const auto* known = find_layer_field(field.name)) known->read(field, owner, layer);
  }
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

void add_layer(Message& net, const LayerDefinition& layer) {
  Message& message = net.add_block("layer");
  write_fields(layer, layer_fields(), message);
  for (const Field& field : layer.body.fields) {
    if (find_layer_field(field.name) == nullptr) message.fields.push_back(field);
  }
}

}  // namespace

void read_value(const Field& field, const std::string& owner, WeightRule& rule) {
  read_block(field, owner, weight_rule_fields(), rule);
}
void write_value(Message& to, const char* name, const WeightRule& rule) {
  Message& block = to.add_block(name);
  if (!rule.name.empty()) write_value(block, "name", rule.name);
  write_fields(rule, weight_rule_fields(), block);
}

bool LayerDefinition::in_phase(int32_t phase, const NetState& state) const {
  const auto holds = [&](const StateRule& rule) { return rule.holds(phase, state); };
  if (!include.empty()) return std::any_of(include.begin(), include.end(), holds);
  return std::none_of(exclude.begin(), exclude.end(), holds);
}

std::string LayerDefinition::title() const {
  return type.empty() ? fmt::format("layer '{}'", name)
                      : fmt::format("layer '{}' ({})", name, type);
}

NetDefinition parse_net(const Message& written, const std::string& file) {
  static const std::vector<std::string> known{"name",        "layer",     "layers", "input",
                                              "input_shape", "input_dim", "state"};
  if (written.find("base_lr") != nullptr) {
    throw error("'{}' is a solver, not a net: give it to `tandem train --solver`", file);
  }
  Message message = written;
  ReadOtherwise read;
  leave_out_unused(message, "net", read);
  for (Field& field : message.fields) {
    if (field.name == "state" && field.message) leave_out_unused(own_block(field), "state", read);
  }
  require_known(message, known, "field", "net");
  require_once(message, {"name", "state"}, "net");
  NetDefinition net;
  net.file = file;
  if (const Field* name = message.find("name")) net.name = text_of(*name, "net");
  std::vector<Field> layers = current_layers(message);
  for (Field& layer : layers) translate_forks(*layer.message, read);
  net.notes = read.notes();
  for (Field& layer : layers) {
    net.layers.push_back(read_layer(std::move(*layer.message), layer.location));
  }
  for (const Field& field : message.fields) {
    if (field.name == "state") {
      read_value(field, "net", net.state);
    } else if (field.name == "input") {
      read_value(field, "net", net.inputs);
    } else if (field.name == "input_shape") {
      net.input_shapes.push_back(shape_of(field, "net"));
    }
  }
  read_input_dims(message, net);
  check_data_layers(net);
  if (net.layers.empty()) {
    throw error("net{} has no layers: is '{}' a net's definition, and no solver (--solver)?",
                net.name.empty() ? "" : fmt::format(" '{}'", net.name), file);
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
  write_value(message, "input", net.inputs);
  write_value(message, "input_shape", net.input_shapes);
  write_value(message, "state", net.state);
  for (const LayerDefinition& layer : net.layers) add_layer(message, layer);
  return write_text_format(message);
}

}  // namespace tandem
