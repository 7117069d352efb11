#include "core/model/old_form.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/strings.h"
#include "core/model/fields.h"

namespace tandem {

namespace {

using Names = std::pair<const char*, const char*>;
constexpr std::array type_names{
    Names{"ABSVAL", "AbsVal"},
    Names{"ACCURACY", "Accuracy"},
    Names{"ARGMAX", "ArgMax"},
    Names{"BNLL", "BNLL"},
    Names{"CONCAT", "Concat"},
    Names{"CONTRASTIVE_LOSS", "ContrastiveLoss"},
    Names{"CONVOLUTION", "Convolution"},
    Names{"DATA", "Data"},
    Names{"DECONVOLUTION", "Deconvolution"},
    Names{"DROPOUT", "Dropout"},
    Names{"DUMMY_DATA", "DummyData"},
    Names{"ELTWISE", "Eltwise"},
    Names{"EUCLIDEAN_LOSS", "EuclideanLoss"},
    Names{"EXP", "Exp"},
    Names{"FLATTEN", "Flatten"},
    Names{"HDF5_DATA", "HDF5Data"},
    Names{"HDF5_OUTPUT", "HDF5Output"},
    Names{"HINGE_LOSS", "HingeLoss"},
    Names{"IM2COL", "Im2col"},
    Names{"IMAGE_DATA", "ImageData"},
    Names{"INFOGAIN_LOSS", "InfogainLoss"},
    Names{"INNER_PRODUCT", "InnerProduct"},
    Names{"LRN", "LRN"},
    Names{"MEMORY_DATA", "MemoryData"},
    Names{"MULTINOMIAL_LOGISTIC_LOSS", "MultinomialLogisticLoss"},
    Names{"MVN", "MVN"},
    Names{"POOLING", "Pooling"},
    Names{"POWER", "Power"},
    Names{"RELU", "ReLU"},
    Names{"SIGMOID", "Sigmoid"},
    Names{"SIGMOID_CROSS_ENTROPY_LOSS", "SigmoidCrossEntropyLoss"},
    Names{"SILENCE", "Silence"},
    Names{"SLICE", "Slice"},
    Names{"SOFTMAX", "Softmax"},
    Names{"SOFTMAX_LOSS", "SoftmaxWithLoss"},
    Names{"SPLIT", "Split"},
    Names{"TANH", "TanH"},
    Names{"THRESHOLD", "Threshold"},
    Names{"WINDOW_DATA", "WindowData"},
};

Field scalar(const Field& from, const char* name, std::string text, bool quoted) {
  Field field = from;
  field.name = name;
  field.text = std::move(text);
  field.quoted = quoted;
  field.message = nullptr;
  return field;
}

Field block(const Field& from, const char* name) {
  Field field = scalar(from, name, "", false);
  field.message = std::make_shared<Message>();
  field.message->location = from.location;
  return field;
}

Field current_type(const Field& type) {
  const std::string owner = "layer of the old form ('layers')";
  const std::string& old_name = text_of(type, owner);
  std::vector<std::string> known;
  for (const auto& [name, current] : type_names) {
    if (old_name == name) return scalar(type, "type", current, true);
    known.emplace_back(name);
  }
  throw error("{}: unknown type '{}'{}{}", owner, old_name, did_you_mean(old_name, known),
              in_place(type.location));
}

// The i-th `param`, `blobs_lr` and `weight_decay` all speak of the i-th weight.
void add_weight_rules(const Message& old, Message& layer) {
  std::vector<Field> rules;
  const auto put = [&](const char* old_name, const char* name, bool quoted) {
    size_t i = 0;
    for (const Field* field : old.all(old_name)) {
      if (i == rules.size()) rules.push_back(block(*field, "param"));
      rules[i++].message->fields.push_back(scalar(*field, name, field->text, quoted));
    }
  };
  put("blobs_lr", "lr_mult", false);
  put("weight_decay", "decay_mult", false);
  put("param", "name", true);
  put("blob_share_mode", "share_mode", false);
  for (Field& rule : rules) layer.fields.push_back(std::move(rule));
}

// Data blocks once held what transform_param holds now.
Field without_transform(const Field& data, Message& transform) {
  static constexpr std::array moved{"scale", "mean_file", "crop_size", "mirror"};
  Field rest = data;
  rest.message = std::make_shared<Message>();
  rest.message->location = data.message->location;
  for (const Field& field : data.message->fields) {
    const bool moves = std::find(moved.begin(), moved.end(), field.name) != moved.end();
    (moves ? transform : *rest.message).fields.push_back(field);
  }
  return rest;
}

bool is_data_block(const Field& field) {
  static constexpr std::array names{"data_param", "image_data_param", "window_data_param"};
  return field.message && std::find(names.begin(), names.end(), field.name) != names.end();
}

}  // namespace

std::vector<Field> current_layers(const Message& net) {
  std::vector<Field> current, old;
  for (const Field& field : net.fields) {
    if (field.name != "layer" && field.name != "layers") continue;
    (void)block_of(field, "net");
    (field.name == "layer" ? current : old).push_back(field);
  }
  if (!current.empty() && !old.empty()) {
    throw error(
        "net: has both 'layer' and 'layers', the current and the old form: write all as "
        "'layer', or all as 'layers'{}",
        in_place(old.front().location));
  }
  const bool oldest = std::any_of(old.begin(), old.end(), [](const Field& layer) {
    return layer.message->find("layer") != nullptr;
  });
  if (oldest) old = first_upgrade(old);
  for (Field& layer : current) layer.message = std::make_shared<Message>(*layer.message);
  for (Field& layer : old) {
    layer.message = std::make_shared<Message>(current_form(layer));
    current.push_back(std::move(layer));
  }
  return current;
}

Message current_form(const Field& layers) {
  const Message& old = block_of(layers, "net");
  Message layer;
  layer.location = old.location;
  Field transform = block(layers, "transform_param");
  for (const Field& field : old.fields) {
    if (field.name == "type") {
      layer.fields.push_back(current_type(field));
    } else if (is_data_block(field)) {
      layer.fields.push_back(without_transform(field, *transform.message));
    } else if (field.name != "blobs_lr" && field.name != "weight_decay" && field.name != "param" &&
               field.name != "blob_share_mode") {
      layer.fields.push_back(field);
    }
  }
  if (!transform.message->fields.empty()) layer.fields.push_back(std::move(transform));
  add_weight_rules(old, layer);
  return layer;
}

}  // namespace tandem
