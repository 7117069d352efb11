// A definition as a file again: what was read into fields is written from them, so that a changed
// or a hand-made definition says what it is; everything else comes from the layer's own message.
#include <algorithm>
#include <array>

#include "core/model/definition.h"

namespace tandem {

namespace {

// Fields that read_layer() keeps apart from the body.
constexpr std::array kept_apart{"name",  "type",    "bottom",  "top",           "loss_weight",
                                "param", "include", "exclude", "propagate_down"};

void add(Message& message, const std::string& name, const std::string& text, bool quoted) {
  Field field;
  field.name = name;
  field.text = text;
  field.quoted = quoted;
  message.fields.push_back(std::move(field));
}

Message& add_block(Message& message, const std::string& name) {
  Field field;
  field.name = name;
  field.message = std::make_shared<Message>();
  message.fields.push_back(std::move(field));
  return *message.fields.back().message;
}

void add_number(Message& message, const std::string& name, double value) {
  add(message, name, fmt::format("{}", value), false);
}

void add_rule(Message& message, const char* name, const StateRule& rule) {
  Message& block = add_block(message, name);
  if (rule.phase) add(block, "phase", *rule.phase == TANDEM_TRAIN ? "TRAIN" : "TEST", false);
  const auto level = [&block](const char* field, const std::optional<int64_t>& value) {
    if (value) add(block, field, fmt::format("{}", *value), false);
  };
  level("min_level", rule.minimum_level);
  level("max_level", rule.maximum_level);
  for (const std::string& stage : rule.stages) add(block, "stage", stage, true);
  for (const std::string& stage : rule.excluded_stages) add(block, "not_stage", stage, true);
}

void add_weight_rule(Message& message, const WeightRule& rule) {
  Message& block = add_block(message, "param");
  if (!rule.name.empty()) add(block, "name", rule.name, true);
  if (rule.rate_written) add_number(block, "lr_mult", *rule.rate_written);
  if (rule.decay_written) add_number(block, "decay_mult", *rule.decay_written);
  if (rule.permissive) add(block, "share_mode", "PERMISSIVE", false);
}

void add_layer(Message& net, const LayerDefinition& layer) {
  Message& message = add_block(net, "layer");
  add(message, "name", layer.name, true);
  add(message, "type", layer.type, true);
  for (const std::string& bottom : layer.bottoms) add(message, "bottom", bottom, true);
  for (const std::string& top : layer.tops) add(message, "top", top, true);
  for (const double weight : layer.loss_weights) add_number(message, "loss_weight", weight);
  for (const bool down : layer.propagate_down) {
    add(message, "propagate_down", down ? "true" : "false", false);
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

std::string write_net(const NetDefinition& net) {
  Message message;
  add(message, "name", net.name, true);
  for (const std::string& input : net.inputs) add(message, "input", input, true);
  for (const Shape& shape : net.input_shapes) {
    Message& block = add_block(message, "input_shape");
    for (const int64_t dim : {shape.n, shape.c, shape.h, shape.w}) {
      add(block, "dim", fmt::format("{}", dim), false);
    }
  }
  if (!(net.state == NetState{})) {
    Message& block = add_block(message, "state");
    if (net.state.level != 0) add(block, "level", fmt::format("{}", net.state.level), false);
    for (const std::string& stage : net.state.stages) add(block, "stage", stage, true);
  }
  for (const LayerDefinition& layer : net.layers) add_layer(message, layer);
  return write_text_format(message);
}

}  // namespace tandem
