#include "core/model/file/old_forms.h"

#include <algorithm>
#include <array>
#include <map>

#include "core/base/text/strings.h"
#include "core/model/file/batch_norm.h"
#include "core/model/file/fields.h"

namespace tandem {

namespace {

struct LayerType {
  const char *v1, *current;
  const char* v0 = "";
  const char* v0_block = "";  // the V1 block of its V0 parameters
};
constexpr std::array types{
    LayerType{"ABSVAL", "AbsVal"},
    LayerType{"ACCURACY", "Accuracy", "accuracy"},
    LayerType{"ARGMAX", "ArgMax"},
    LayerType{"BNLL", "BNLL", "bnll"},
    LayerType{"CONCAT", "Concat", "concat", "concat_param"},
    LayerType{"CONTRASTIVE_LOSS", "ContrastiveLoss"},
    LayerType{"CONVOLUTION", "Convolution", "conv", "convolution_param"},
    LayerType{"DATA", "Data", "data", "data_param"},
    LayerType{"DECONVOLUTION", "Deconvolution"},
    LayerType{"DROPOUT", "Dropout", "dropout", "dropout_param"},
    LayerType{"DUMMY_DATA", "DummyData"},
    LayerType{"ELTWISE", "Eltwise"},
    LayerType{"EUCLIDEAN_LOSS", "EuclideanLoss", "euclidean_loss"},
    LayerType{"EXP", "Exp"},
    LayerType{"FLATTEN", "Flatten", "flatten"},
    LayerType{"HDF5_DATA", "HDF5Data", "hdf5_data", "hdf5_data_param"},
    LayerType{"HDF5_OUTPUT", "HDF5Output", "hdf5_output"},
    LayerType{"HINGE_LOSS", "HingeLoss"},
    LayerType{"IM2COL", "Im2col", "im2col"},
    LayerType{"IMAGE_DATA", "ImageData", "images", "image_data_param"},
    LayerType{"INFOGAIN_LOSS", "InfogainLoss", "infogain_loss", "infogain_loss_param"},
    LayerType{"INNER_PRODUCT", "InnerProduct", "innerproduct", "inner_product_param"},
    LayerType{"LRN", "LRN", "lrn", "lrn_param"},
    LayerType{"MEMORY_DATA", "MemoryData"},
    LayerType{"MULTINOMIAL_LOGISTIC_LOSS", "MultinomialLogisticLoss", "multinomial_logistic_loss"},
    LayerType{"MVN", "MVN"},
    LayerType{"POOLING", "Pooling", "pool", "pooling_param"},
    LayerType{"POWER", "Power"},
    LayerType{"RELU", "ReLU", "relu"},
    LayerType{"SIGMOID", "Sigmoid", "sigmoid"},
    LayerType{"SIGMOID_CROSS_ENTROPY_LOSS", "SigmoidCrossEntropyLoss"},
    LayerType{"SILENCE", "Silence"},
    LayerType{"SLICE", "Slice"},
    LayerType{"SOFTMAX", "Softmax", "softmax"},
    LayerType{"SOFTMAX_LOSS", "SoftmaxWithLoss", "softmax_loss"},
    LayerType{"SPLIT", "Split", "split"},
    LayerType{"TANH", "TanH", "tanh"},
    LayerType{"THRESHOLD", "Threshold"},
    LayerType{"WINDOW_DATA", "WindowData", "window_data", "window_data_param"},
};

// ---- V1

const std::string v1_owner = "layer of the old form ('layers')";

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

// The layer type with that name in one of the forms.
const LayerType& type_of(const Field& type, const char* LayerType::*form,
                         const std::string& owner) {
  const std::string& name = text_of(type, owner);
  std::vector<std::string> known;
  for (const LayerType& entry : types) {
    if (*(entry.*form) == '\0') continue;
    if (name == entry.*form) return entry;
    known.emplace_back(entry.*form);
  }
  throw error("{}: unknown type '{}'{}{}", owner, name, did_you_mean(name, known),
              in_file(type.location));
}

// The i-th `param`, `blobs_lr` and `weight_decay` are all of the i-th weight.
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

// Moves fields from a data block to transform_param, where they are now.
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

// From one field `layers`.
Message current_form(const Field& layers) {
  const Message& old = block_of(layers, "net");
  Message layer;
  layer.location = old.location;
  Field transform = block(layers, "transform_param");
  for (const Field& field : old.fields) {
    if (field.name == "type") {
      layer.fields.push_back(
          scalar(field, "type", type_of(field, &LayerType::v1, v1_owner).current, true));
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

// ---- V0: one message holds all parameters of a layer, whatever its type, and padding is a layer
// of its own before a convolution or pooling.

struct FieldName {
  const char *v0, *v1;
  const char* types;  // the V0 types that have it, with spaces around
};
constexpr std::array v0_fields{
    FieldName{"num_output", "num_output", " conv innerproduct "},
    FieldName{"biasterm", "bias_term", " conv innerproduct "},
    FieldName{"weight_filler", "weight_filler", " conv innerproduct "},
    FieldName{"bias_filler", "bias_filler", " conv innerproduct "},
    FieldName{"pad", "pad", " conv pool "},
    FieldName{"kernelsize", "kernel_size", " conv pool "},
    FieldName{"group", "group", " conv "},
    FieldName{"stride", "stride", " conv pool "},
    FieldName{"pool", "pool", " pool "},
    FieldName{"dropout_ratio", "dropout_ratio", " dropout "},
    FieldName{"local_size", "local_size", " lrn "},
    FieldName{"alpha", "alpha", " lrn "},
    FieldName{"beta", "beta", " lrn "},
    FieldName{"k", "k", " lrn "},
    FieldName{"source", "source", " data hdf5_data images window_data infogain_loss "},
    FieldName{"batchsize", "batch_size", " data hdf5_data images window_data "},
    FieldName{"rand_skip", "rand_skip", " data images "},
    FieldName{"shuffle_images", "shuffle", " images "},
    FieldName{"new_height", "new_height", " images "},
    FieldName{"new_width", "new_width", " images "},
    FieldName{"concat_dim", "concat_dim", " concat "},
    FieldName{"det_fg_threshold", "fg_threshold", " window_data "},
    FieldName{"det_bg_threshold", "bg_threshold", " window_data "},
    FieldName{"det_fg_fraction", "fg_fraction", " window_data "},
    FieldName{"det_context_pad", "context_pad", " window_data "},
    FieldName{"det_crop_mode", "crop_mode", " window_data "},
};
// The fields that go to the layer itself, and to its transform_param.
constexpr std::array kept{"name", "blobs", "blobs_lr", "weight_decay", "hdf5_output_param"};
constexpr std::array transforms{
    FieldName{"scale", "scale", ""}, FieldName{"meanfile", "mean_file", ""},
    FieldName{"cropsize", "crop_size", ""}, FieldName{"mirror", "mirror", ""}};

const std::string v0_owner = "layer of the oldest form ('layers { layer { ... } }')";

template <class Names>
const FieldName* find(const Names& names, const std::string& name) {
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&name](const FieldName& entry) { return name == entry.v0; });
  return found == names.end() ? nullptr : &*found;
}

Field renamed(Field field, const char* name) {
  field.name = name;
  return field;
}

bool has_type(const FieldName& field, const LayerType& type) {
  return std::string(field.types).find(fmt::format(" {} ", type.v0)) != std::string::npos;
}

Error no_such_field(const Field& field, const LayerType& type) {
  std::vector<std::string> known(kept.begin(), kept.end());
  for (const FieldName& entry : v0_fields) {
    if (has_type(entry, type)) known.emplace_back(entry.v0);
  }
  for (const FieldName& entry : transforms) known.emplace_back(entry.v0);
  return error("{}: type '{}' has no field '{}'{}{}", v0_owner, type.v0, field.name,
               did_you_mean(field.name, known), in_file(field.location));
}

// Moves the fields of the inner message to the blocks of the V1 form.
void spread(const Message& inner, const LayerType& type, Message& layer) {
  Field block, transform;
  for (Field* made : {&block, &transform}) {
    made->message = std::make_shared<Message>();
    made->location = made->message->location = inner.location;
  }
  block.name = type.v0_block;
  transform.name = "transform_param";
  for (const Field& field : inner.fields) {
    const FieldName* own = find(v0_fields, field.name);
    if (field.name == "type") continue;
    if (std::find(kept.begin(), kept.end(), field.name) != kept.end()) {
      layer.fields.push_back(field);
    } else if (const FieldName* entry = find(transforms, field.name)) {
      transform.message->fields.push_back(renamed(field, entry->v1));
    } else if (own != nullptr && has_type(*own, type)) {
      block.message->fields.push_back(renamed(field, own->v1));
    } else {
      throw no_such_field(field, type);
    }
  }
  for (Field* made : {&block, &transform}) {
    if (!made->message->fields.empty()) layer.fields.push_back(std::move(*made));
  }
}

const Message& inner_of(const Field& layer) {
  const Field* inner = layer.message->find("layer");
  if (inner != nullptr) return block_of(*inner, v0_owner);
  throw error("{}: has no layer {{ ... }} inside, as the others of this net have{}", v0_owner,
              in_file(layer.location));
}

const Field& type_field(const Field& layer) {
  const Field* type = inner_of(layer).find("type");
  if (type != nullptr) return *type;
  throw error("{}: has no type{}", v0_owner, in_file(layer.location));
}

struct Padding {
  Field amount;
  std::string input;
};

// The padding for the layer that reads the output of a padding layer.
Padding read_padding(const Field& layer) {
  const Field* bottom = layer.message->find("bottom");
  const Field* amount = inner_of(layer).find("pad");
  if (bottom == nullptr || amount == nullptr || layer.message->all("bottom").size() != 1 ||
      layer.message->all("top").size() != 1) {
    throw error("{}: a padding layer has one bottom, one top and a pad{}", v0_owner,
                in_file(layer.location));
  }
  return {*amount, text_of(*bottom, v0_owner)};
}

// A layer after a padding layer gets the input of the padding layer, and pads by itself.
Message without_padding(const Field& layer, const std::map<std::string, Padding>& paddings,
                        Message& inner) {
  Message outer = *layer.message;
  const std::string& type = text_of(type_field(layer), v0_owner);
  for (Field& field : outer.fields) {
    if (field.name != "bottom") continue;
    const auto found = paddings.find(text_of(field, v0_owner));
    if (found == paddings.end()) continue;
    if ((type != "conv" && type != "pool") || layer.message->all("bottom").size() != 1) {
      throw error("{}: a padding layer can only be before one conv or pool layer, not '{}'{}",
                  v0_owner, type, in_file(layer.location));
    }
    field.text = found->second.input;
    std::erase_if(inner.fields, [](const Field& other) { return other.name == "pad"; });
    inner.fields.push_back(found->second.amount);
  }
  return outer;
}

Field upgrade(const Field& layer, const std::map<std::string, Padding>& paddings) {
  const LayerType& type = type_of(type_field(layer), &LayerType::v0, v0_owner);
  Message inner = inner_of(layer);
  const Message outer = without_padding(layer, paddings, inner);
  Field result = layer;
  result.message = std::make_shared<Message>();
  result.message->location = outer.location;
  Field written = type_field(layer);
  written.text = type.v1;
  written.quoted = false;
  result.message->fields.push_back(std::move(written));
  spread(inner, type, *result.message);
  for (const Field& field : outer.fields) {
    if (field.name != "layer") result.message->fields.push_back(field);
  }
  return result;
}

// From all fields `layers` of a net: V1 layers, without the padding layers.
std::vector<Field> v1_layers(const std::vector<Field>& layers) {
  std::map<std::string, Padding> paddings;  // by the tensor's name
  std::vector<Field> result;
  for (const Field& layer : layers) {
    if (text_of(type_field(layer), v0_owner) == "padding") {
      const Padding padding = read_padding(layer);
      paddings[text_of(*layer.message->find("top"), v0_owner)] = padding;
      continue;
    }
    result.push_back(upgrade(layer, paddings));
    for (const Field* top : layer.message->all("top")) paddings.erase(text_of(*top, v0_owner));
  }
  return result;
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
        in_file(old.front().location));
  }
  const bool oldest = std::any_of(old.begin(), old.end(), [](const Field& layer) {
    return layer.message->find("layer") != nullptr;
  });
  if (oldest) old = v1_layers(old);
  for (Field& layer : current) layer.message = std::make_shared<Message>(*layer.message);
  for (Field& layer : old) {
    layer.message = std::make_shared<Message>(current_form(layer));
    current.push_back(std::move(layer));
  }
  for (Field& layer : current) read_scale_bias(*layer.message);
  return current;
}

}  // namespace tandem
