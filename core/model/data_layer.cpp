#include "core/model/data_layer.h"

#include <algorithm>
#include <array>

#include "core/model/fields.h"

namespace tandem {

namespace {

constexpr std::array data_types{"Data",       "ImageData", "HDF5Data", "MemoryData",
                                "WindowData", "DummyData", "Input"};

// The first one that a data set stands in for; null: none. A DummyData layer is fed by no data set.
const LayerDefinition* data_layer(const NetDefinition& net, int32_t phase, bool dummy = false) {
  for (const LayerDefinition& layer : net.layers) {
    if (!layer.is_data() || !layer.in_phase(phase)) continue;
    if (dummy == (layer.type == "DummyData")) return &layer;
  }
  return nullptr;
}

// The fields of that name in the layer's own block ("data_param", "input_param", ...).
std::vector<const Field*> find_in_blocks(const LayerDefinition& layer, const std::string& name) {
  for (const Field& field : layer.body.fields) {
    if (!field.message || field.name == "transform_param") continue;
    if (!field.name.ends_with("_param")) continue;
    std::vector<const Field*> found = field.message->all(name);
    if (!found.empty()) return found;
  }
  return {};
}

// A repeated field: one value is for all tops.
const Field* of_top(const std::vector<const Field*>& fields, size_t top) {
  if (fields.empty()) return nullptr;
  return fields.size() == 1 ? fields.front() : top < fields.size() ? fields[top] : nullptr;
}

int64_t positive_or_zero(const LayerDefinition& layer, const std::string& name, size_t top = 0) {
  const Field* field = of_top(find_in_blocks(layer, name), top);
  return field == nullptr ? 0 : positive_of(*field, layer.title());
}

TransformDefinition read_transform(const LayerDefinition& layer) {
  static const std::vector<std::string> known{"scale",      "mirror",      "crop_size", "mean_file",
                                              "mean_value", "force_color", "force_gray"};
  TransformDefinition transform;
  const std::string owner = layer.title();
  for (const Field* block : layer.body.all("transform_param")) {
    for (const Field& field : block_of(*block, owner).fields) {
      if (field.name == "scale") {
        transform.scale = number_of(field, owner);
      } else if (field.name == "mirror") {
        transform.mirror = boolean_of(field, owner);
      } else if (field.name == "crop_size") {
        transform.crop_size = integer_of(field, owner);
        if (transform.crop_size < 0) throw wrong_value(field, owner, "at least 0");
      } else if (field.name == "mean_value") {
        transform.mean_values.push_back(number_of(field, owner));
      } else if (field.name == "mean_file") {
        transform.has_mean_file = true;
      } else if (field.name != "force_color" && field.name != "force_gray") {
        throw unknown_field(field, known, "field of transform_param", owner);
      }
    }
  }
  return transform;
}

bool forces_gray(const LayerDefinition& layer) {
  for (const Field* block : layer.body.all("transform_param")) {
    const Field* gray = block_of(*block, layer.title()).find("force_gray");
    if (gray != nullptr && boolean_of(*gray, layer.title())) return true;
  }
  return false;
}

// The data set has no use for what stands in these blocks, but a misspelt one would lose a crop or
// a mean without a word.
void check_fields(const LayerDefinition& layer) {
  std::vector<std::string> known = common_layer_fields();
  for (const char* block :
       {"data_param", "image_data_param", "hdf5_data_param", "memory_data_param",
        "window_data_param", "dummy_data_param", "input_param"}) {
    known.emplace_back(block);
  }
  require_known(layer.body, known, "field", layer.title());
}

}  // namespace

Shape declared_shape(const LayerDefinition& layer, size_t top) {
  if (const Field* shape = of_top(find_in_blocks(layer, "shape"), top)) {
    return shape_of(*shape, layer.title());
  }
  const auto either = [&](const char* name, const char* other) {
    const int64_t value = positive_or_zero(layer, name, top);
    return value > 0 ? value : positive_or_zero(layer, other, top);
  };
  return {positive_or_zero(layer, "num", top), positive_or_zero(layer, "channels", top),
          either("height", "new_height"), either("width", "new_width")};
}

Shape expected_shape(const LayerDefinition& layer) {
  Shape shape = declared_shape(layer, 0);
  const TransformDefinition transform = read_transform(layer);
  if (transform.crop_size > 0) shape.h = shape.w = transform.crop_size;
  if (transform.mean_values.size() > 1 && shape.c == 0) {
    shape.c = static_cast<int64_t>(transform.mean_values.size());
  }
  if (forces_gray(layer)) shape.c = 1;
  shape.n = 1;
  return shape;
}

bool LayerDefinition::is_data() const {
  return std::find(data_types.begin(), data_types.end(), type) != data_types.end();
}

void check_data_layers(const NetDefinition& net) {
  for (const LayerDefinition& layer : net.layers) {
    if (!layer.is_data()) continue;
    check_fields(layer);
    (void)expected_shape(layer);
    (void)positive_or_zero(layer, "batch_size");
  }
}

std::optional<TransformDefinition> NetDefinition::transform(int32_t phase) const {
  const LayerDefinition* layer = data_layer(*this, phase);
  if (layer == nullptr) return std::nullopt;
  return read_transform(*layer);
}

std::optional<int64_t> NetDefinition::batch_size(int32_t phase) const {
  const LayerDefinition* layer = data_layer(*this, phase);
  if (layer == nullptr && inputs.empty()) layer = data_layer(*this, phase, true);
  if (layer != nullptr) {
    const int64_t written = positive_or_zero(*layer, "batch_size");
    const int64_t batch = written > 0 ? written : declared_shape(*layer, 0).n;
    if (batch > 0) return batch;
  } else if (!input_shapes.empty()) {
    return input_shapes.front().n;
  }
  return std::nullopt;
}

Shape NetDefinition::input_shape() const {
  for (const int32_t phase : {TANDEM_TRAIN, TANDEM_TEST}) {
    const LayerDefinition* layer = data_layer(*this, phase);
    if (layer != nullptr) return expected_shape(*layer);
    // A net of DummyData only: something must stand for the samples, though nobody reads it.
    if (inputs.empty() && data_layer(*this, phase, true) != nullptr) return {1, 1, 1, 1};
  }
  Shape shape = input_shapes.empty() ? Shape{} : input_shapes.front();
  shape.n = 1;
  return shape;
}

}  // namespace tandem
