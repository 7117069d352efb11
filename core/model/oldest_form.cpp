// The V0 form: every parameter of a layer stood in one message, whatever its type, and padding was
// a layer of its own in front of a convolution or pooling.
#include <algorithm>
#include <array>
#include <map>

#include "core/base/strings.h"
#include "core/model/fields.h"
#include "core/model/old_form.h"

namespace tandem {

namespace {

struct TypeName {
  const char *v0, *v1;
  const char* block;  // of its parameters; "": none
};
constexpr std::array types{
    TypeName{"accuracy", "ACCURACY", ""},
    TypeName{"bnll", "BNLL", ""},
    TypeName{"concat", "CONCAT", "concat_param"},
    TypeName{"conv", "CONVOLUTION", "convolution_param"},
    TypeName{"data", "DATA", "data_param"},
    TypeName{"dropout", "DROPOUT", "dropout_param"},
    TypeName{"euclidean_loss", "EUCLIDEAN_LOSS", ""},
    TypeName{"flatten", "FLATTEN", ""},
    TypeName{"hdf5_data", "HDF5_DATA", "hdf5_data_param"},
    TypeName{"hdf5_output", "HDF5_OUTPUT", ""},
    TypeName{"im2col", "IM2COL", ""},
    TypeName{"images", "IMAGE_DATA", "image_data_param"},
    TypeName{"infogain_loss", "INFOGAIN_LOSS", "infogain_loss_param"},
    TypeName{"innerproduct", "INNER_PRODUCT", "inner_product_param"},
    TypeName{"lrn", "LRN", "lrn_param"},
    TypeName{"multinomial_logistic_loss", "MULTINOMIAL_LOGISTIC_LOSS", ""},
    TypeName{"pool", "POOLING", "pooling_param"},
    TypeName{"relu", "RELU", ""},
    TypeName{"sigmoid", "SIGMOID", ""},
    TypeName{"softmax", "SOFTMAX", ""},
    TypeName{"softmax_loss", "SOFTMAX_LOSS", ""},
    TypeName{"split", "SPLIT", ""},
    TypeName{"tanh", "TANH", ""},
    TypeName{"window_data", "WINDOW_DATA", "window_data_param"},
};

struct FieldName {
  const char *v0, *v1;
  const char* types;  // the V0 types that have it, with spaces around
};
constexpr std::array fields{
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
// To the layer itself, and to its transform_param.
constexpr std::array kept{"name", "blobs", "blobs_lr", "weight_decay", "hdf5_output_param"};
constexpr std::array transforms{
    FieldName{"scale", "scale", ""}, FieldName{"meanfile", "mean_file", ""},
    FieldName{"cropsize", "crop_size", ""}, FieldName{"mirror", "mirror", ""}};

const std::string owner = "layer of the oldest form ('layers { layer { ... } }')";

const TypeName& type_of(const Field& type) {
  std::vector<std::string> known;
  const std::string& name = text_of(type, owner);
  for (const TypeName& entry : types) {
    if (name == entry.v0) return entry;
    known.emplace_back(entry.v0);
  }
  throw error("{}: unknown type '{}'{}{}", owner, name, did_you_mean(name, known),
              in_place(type.location));
}

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

bool has_type(const FieldName& field, const TypeName& type) {
  return std::string(field.types).find(fmt::format(" {} ", type.v0)) != std::string::npos;
}

Error no_such_field(const Field& field, const TypeName& type) {
  std::vector<std::string> known(kept.begin(), kept.end());
  for (const FieldName& entry : fields) {
    if (has_type(entry, type)) known.emplace_back(entry.v0);
  }
  for (const FieldName& entry : transforms) known.emplace_back(entry.v0);
  return error("{}: type '{}' has no field '{}'{}{}", owner, type.v0, field.name,
               did_you_mean(field.name, known), in_place(field.location));
}

// Everything of the inner message, spread over the blocks of the V1 form.
void spread(const Message& inner, const TypeName& type, Message& layer) {
  Field block, transform;
  for (Field* made : {&block, &transform}) {
    made->message = std::make_shared<Message>();
    made->location = made->message->location = inner.location;
  }
  block.name = type.block;
  transform.name = "transform_param";
  for (const Field& field : inner.fields) {
    const FieldName* own = find(fields, field.name);
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
  if (inner != nullptr) return block_of(*inner, owner);
  throw error("{}: has no layer {{ ... }} inside, as the others of this net have{}", owner,
              in_place(layer.location));
}

const Field& type_field(const Field& layer) {
  const Field* type = inner_of(layer).find("type");
  if (type != nullptr) return *type;
  throw error("{}: has no type{}", owner, in_place(layer.location));
}

struct Padding {
  Field amount;
  std::string input;
};

// What a padding layer says, for the layer that reads its output.
Padding read_padding(const Field& layer) {
  const Field* bottom = layer.message->find("bottom");
  const Field* amount = inner_of(layer).find("pad");
  if (bottom == nullptr || amount == nullptr || layer.message->all("bottom").size() != 1 ||
      layer.message->all("top").size() != 1) {
    throw error("{}: a padding layer has one bottom, one top and a pad{}", owner,
                in_place(layer.location));
  }
  return {*amount, text_of(*bottom, owner)};
}

// A layer behind a padding layer reads what that one read, and pads by itself.
Message without_padding(const Field& layer, const std::map<std::string, Padding>& paddings,
                        Message& inner) {
  Message outer = *layer.message;
  const std::string& type = text_of(type_field(layer), owner);
  for (Field& field : outer.fields) {
    if (field.name != "bottom") continue;
    const auto found = paddings.find(text_of(field, owner));
    if (found == paddings.end()) continue;
    if ((type != "conv" && type != "pool") || layer.message->all("bottom").size() != 1) {
      throw error("{}: a padding layer can stand before one conv or pool layer only, not '{}'{}",
                  owner, type, in_place(layer.location));
    }
    field.text = found->second.input;
    std::erase_if(inner.fields, [](const Field& other) { return other.name == "pad"; });
    inner.fields.push_back(found->second.amount);
  }
  return outer;
}

Field upgrade(const Field& layer, const std::map<std::string, Padding>& paddings) {
  const TypeName& type = type_of(type_field(layer));
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

}  // namespace

std::vector<Field> first_upgrade(const std::vector<Field>& layers) {
  std::map<std::string, Padding> paddings;  // by the tensor's name
  std::vector<Field> result;
  for (const Field& layer : layers) {
    if (text_of(type_field(layer), owner) == "padding") {
      const Padding padding = read_padding(layer);
      paddings[text_of(*layer.message->find("top"), owner)] = padding;
      continue;
    }
    result.push_back(upgrade(layer, paddings));
    for (const Field* top : layer.message->all("top")) paddings.erase(text_of(*top, owner));
  }
  return result;
}

}  // namespace tandem
