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
  // The V1 block of its V0 parameters, and these, separated by spaces.
  const char *v0_block = "", *v0_fields = "";
};
constexpr std::array types{
    LayerType{"ABSVAL", "AbsVal"},
    LayerType{"ACCURACY", "Accuracy", "accuracy"},
    LayerType{"ARGMAX", "ArgMax"},
    LayerType{"BNLL", "BNLL", "bnll"},
    LayerType{"CONCAT", "Concat", "concat", "concat_param", "concat_dim"},
    LayerType{"CONTRASTIVE_LOSS", "ContrastiveLoss"},
    LayerType{"CONVOLUTION", "Convolution", "conv", "convolution_param",
              "num_output biasterm weight_filler bias_filler pad kernelsize group stride"},
    LayerType{"DATA", "Data", "data", "data_param", "source batchsize rand_skip"},
    LayerType{"DECONVOLUTION", "Deconvolution"},
    LayerType{"DROPOUT", "Dropout", "dropout", "dropout_param", "dropout_ratio"},
    LayerType{"DUMMY_DATA", "DummyData"},
    LayerType{"ELTWISE", "Eltwise"},
    LayerType{"EUCLIDEAN_LOSS", "EuclideanLoss", "euclidean_loss"},
    LayerType{"EXP", "Exp"},
    LayerType{"FLATTEN", "Flatten", "flatten"},
    LayerType{"HDF5_DATA", "HDF5Data", "hdf5_data", "hdf5_data_param", "source batchsize"},
    LayerType{"HDF5_OUTPUT", "HDF5Output", "hdf5_output"},
    LayerType{"HINGE_LOSS", "HingeLoss"},
    LayerType{"IM2COL", "Im2col", "im2col"},
    LayerType{"IMAGE_DATA", "ImageData", "images", "image_data_param",
              "source batchsize rand_skip shuffle_images new_height new_width"},
    LayerType{"INFOGAIN_LOSS", "InfogainLoss", "infogain_loss", "infogain_loss_param", "source"},
    LayerType{"INNER_PRODUCT", "InnerProduct", "innerproduct", "inner_product_param",
              "num_output biasterm weight_filler bias_filler"},
    LayerType{"LRN", "LRN", "lrn", "lrn_param", "local_size alpha beta k"},
    LayerType{"MEMORY_DATA", "MemoryData"},
    LayerType{"MULTINOMIAL_LOGISTIC_LOSS", "MultinomialLogisticLoss", "multinomial_logistic_loss"},
    LayerType{"MVN", "MVN"},
    LayerType{"POOLING", "Pooling", "pool", "pooling_param", "pad kernelsize stride pool"},
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
    LayerType{"WINDOW_DATA", "WindowData", "window_data", "window_data_param",
              "source batchsize det_fg_threshold det_bg_threshold det_fg_fraction det_context_pad "
              "det_crop_mode"},
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

// The i-th of each of these fields is in the `param` of the i-th weight.
struct WeightField {
  const char *v1, *current;
  bool is_text = false;
};
constexpr std::array weight_fields{
    WeightField{"blobs_lr", "lr_mult"},
    WeightField{"weight_decay", "decay_mult"},
    WeightField{"param", "name", true},
    WeightField{"blob_share_mode", "share_mode"},
};

void add_weight_rules(const Message& old, Message& layer) {
  std::vector<Field> rules;
  for (const WeightField& names : weight_fields) {
    size_t i = 0;
    for (const Field* field : old.all(names.v1)) {
      if (i == rules.size()) rules.push_back(block(*field, "param"));
      rules[i++].message->fields.push_back(
          scalar(*field, names.current, field->text, names.is_text));
    }
  }
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
    } else if (std::none_of(weight_fields.begin(), weight_fields.end(),
                            [&](const WeightField& names) { return field.name == names.v1; })) {
      layer.fields.push_back(field);
    }
  }
  if (!transform.message->fields.empty()) layer.fields.push_back(std::move(transform));
  add_weight_rules(old, layer);
  return layer;
}

// ---- V0: one message holds all parameters of a layer, whatever its type, and padding is a layer
// of its own before a convolution or pooling.

// The current name of a V0 parameter, where it is another one.
const std::map<std::string, const char*>& renamed_fields() {
  static const std::map<std::string, const char*> names{
      {"biasterm", "bias_term"},
      {"kernelsize", "kernel_size"},
      {"batchsize", "batch_size"},
      {"shuffle_images", "shuffle"},
      {"det_fg_threshold", "fg_threshold"},
      {"det_bg_threshold", "bg_threshold"},
      {"det_fg_fraction", "fg_fraction"},
      {"det_context_pad", "context_pad"},
      {"det_crop_mode", "crop_mode"},
      {"meanfile", "mean_file"},
      {"cropsize", "crop_size"},
  };
  return names;
}

// The fields that go to the layer itself, and to its transform_param.
const std::vector<std::string> kept{"name", "blobs", "blobs_lr", "weight_decay",
                                    "hdf5_output_param"};
const std::vector<std::string> transforms{"scale", "meanfile", "cropsize", "mirror"};

const std::string v0_owner = "layer of the oldest form ('layers { layer { ... } }')";

std::vector<std::string> own_fields_of(const LayerType& type) {
  return *type.v0_fields == '\0' ? std::vector<std::string>{} : split(type.v0_fields, ' ');
}

Error no_such_field(const Field& field, const LayerType& type) {
  std::vector<std::string> known = kept;
  for (const std::string& name : own_fields_of(type)) known.push_back(name);
  known.insert(known.end(), transforms.begin(), transforms.end());
  return error("{}: type '{}' has no field '{}'{}{}", v0_owner, type.v0, field.name,
               did_you_mean(field.name, known), in_file(field.location));
}

// Moves the fields of the inner message to the blocks of the V1 form.
void spread(const Message& inner, const LayerType& type, Message& layer) {
  Field at_inner;
  at_inner.location = inner.location;
  Field own = block(at_inner, type.v0_block), transform = block(at_inner, "transform_param");
  const std::vector<std::string> own_fields = own_fields_of(type);
  for (const Field& field : inner.fields) {
    if (field.name == "type") continue;
    if (is_among(kept, field.name)) {
      layer.fields.push_back(field);
      continue;
    }
    const bool is_transform = is_among(transforms, field.name);
    if (!is_transform && !is_among(own_fields, field.name)) throw no_such_field(field, type);
    Field& moved = (is_transform ? transform : own).message->fields.emplace_back(field);
    const auto other = renamed_fields().find(field.name);
    if (other != renamed_fields().end()) moved.name = other->second;
  }
  for (Field* made : {&own, &transform}) {
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
