#include "core/model/file/definition.h"

#include <algorithm>
#include <array>

#include "core/base/text/strings.h"
#include "core/model/file/fields.h"

namespace tandem {

namespace {

using Role = NetInput::Role;

struct DataType {
  const char *name, *block;
  const char* fields;  // of the block, separated by spaces
};
constexpr std::array data_types{
    DataType{"Data", "data_param", "batch_size"},
    DataType{"ImageData", "image_data_param",
             "source root_folder batch_size new_height new_width is_color short_side"},
    DataType{"HDF5Data", "hdf5_data_param", "batch_size"},
    DataType{"MemoryData", "memory_data_param", "batch_size channels height width"},
    DataType{"WindowData", "window_data_param",
             "source scale mean_file batch_size crop_size mirror fg_threshold bg_threshold "
             "fg_fraction context_pad crop_mode cache_images root_folder"},
    DataType{"DummyData", "dummy_data_param", "data_filler shape num channels height width"},
    DataType{"Input", "input_param", "shape"},
};

// The first data layer of the phase that a data set replaces, or null. `dummy`: the first DummyData
// layer, whose values are not from a data set.
const LayerDefinition* data_layer(const NetDefinition& net, int32_t phase, bool dummy = false) {
  for (const LayerDefinition& layer : net.layers) {
    if (!layer.is_data() || !layer.in_phase(phase)) continue;
    if (dummy == (layer.type == "DummyData")) return &layer;
  }
  return nullptr;
}

// The fields of the name in the layer's own block ("data_param", "input_param", ...).
std::vector<const Field*> find_in_blocks(const LayerDefinition& layer, const std::string& name) {
  for (const Field& field : layer.body.fields) {
    if (!field.message || field.name == "transform_param") continue;
    if (!field.name.ends_with("_param")) continue;
    std::vector<const Field*> found = field.message->all(name);
    if (!found.empty()) return found;
  }
  return {};
}

// Several blocks count as one.
Message merged(const std::vector<const Field*>& blocks, const std::string& owner) {
  Message all;
  for (const Field* block : blocks) {
    const std::vector<Field>& fields = block_of(*block, owner).fields;
    all.fields.insert(all.fields.end(), fields.begin(), fields.end());
  }
  return all;
}

// The value of a repeated field for one top; a single value is for all tops.
const Field* of_top(const std::vector<const Field*>& fields, size_t top) {
  if (fields.empty()) return nullptr;
  return fields.size() == 1 ? fields.front() : top < fields.size() ? fields[top] : nullptr;
}

int64_t positive_or_zero(const LayerDefinition& layer, const std::string& name, size_t top = 0) {
  const Field* field = of_top(find_in_blocks(layer, name), top);
  return field == nullptr ? 0 : positive_of(*field, layer.title());
}

// SSD's resize_param.
void read_resize(const Field& field, const std::string& owner, TransformDefinition& transform) {
  const Message& block = block_of(field, owner);
  const auto size = [&](const char* name) {
    const Field* given = block.find(name);
    if (given != nullptr) return positive_of(*given, owner);
    throw error("{}: resize_param has no {}{}", owner, name, in_file(field.location));
  };
  for (const Field& other : block.fields) {
    if (is_among({"height", "width", "resize_mode"}, other.name)) continue;
    if (other.name == "prob" && number_of(other, owner) == 1) continue;
    throw error(
        "{}: {} of resize_param is not supported: images are resized each time, with "
        "--data-option interpolation, and bars are the mean; leave it out{}",
        owner, other.name, in_file(other.location));
  }
  transform.resize_height = size("height");
  transform.resize_width = size("width");
  const Field* mode = block.find("resize_mode");
  const std::string word =
      mode == nullptr ? "WARP"
                      : word_of(*mode, owner, {"WARP", "FIT_SMALL_SIZE", "FIT_LARGE_SIZE_AND_PAD"});
  transform.fit = word == "WARP" ? "squash" : word == "FIT_SMALL_SIZE" ? "crop" : "pad";
}

// ImageData stretches pictures to new_height x new_width; a fork's resizes their short_side.
void read_image_data(const LayerDefinition& layer, TransformDefinition& transform) {
  const Message block = merged(layer.body.all("image_data_param"), layer.title());
  const Field *height = block.find("new_height"), *width = block.find("new_width");
  const Field* color = block.find("is_color");
  if (color != nullptr && !boolean_of(*color, layer.title())) transform.gray = true;
  const int64_t h = height == nullptr ? 0 : integer_of(*height, layer.title());
  const int64_t w = width == nullptr ? 0 : integer_of(*width, layer.title());
  if (const Field* side = block.find("short_side")) {
    transform.resize_height = transform.resize_width = integer_of(*side, layer.title());
    if (transform.resize_height < 0) throw wrong_value(*side, layer.title(), not_negative.right);
  }
  if (h == 0 && w == 0) return;
  if (h <= 0 || w <= 0) {
    throw error("{}: new_height is {} and new_width {}; give both, above 0{}", layer.title(), h, w,
                in_file((height != nullptr ? height : width)->location));
  }
  transform.resize_height = h;
  transform.resize_width = w;
  transform.fit = "squash";
}

void require_crop_within(const LayerDefinition& layer, const TransformDefinition& t) {
  const int64_t least = std::min(t.resize_height, t.resize_width);
  const bool is_shorter_side = t.fit == "crop";
  const int64_t h = is_shorter_side ? least : t.resize_height;
  const int64_t w = is_shorter_side ? least : t.resize_width;
  if (t.resize_height == 0 || (t.crop_height <= h && t.crop_width <= w)) return;
  throw error("{}: its images become {}x{}, less than the crop of {}x{}{}", layer.title(), h, w,
              t.crop_height, t.crop_width, in_file(layer.location));
}

TransformDefinition read_transform(const LayerDefinition& layer) {
  using T = TransformDefinition;
  static const MemberFields<T> fields{
      member("scale", &T::scale),
      member("mirror", &T::mirror),
      {"crop_size",
       [](const Field& field, const std::string& owner, T& t) {
         const int64_t size = integer_of(field, owner);
         if (size < 0) throw wrong_value(field, owner, not_negative.right);
         t.crop_height = t.crop_width = size;
       }},
      member("crop_h", &T::crop_height, not_negative),
      member("crop_w", &T::crop_width, not_negative),
      member("mean_file", &T::mean_file),
      member("mean_value", &T::mean_values),
      {"resize_param", read_resize},
      member("force_color", &T::color),
      member("force_gray", &T::gray),
  };
  TransformDefinition transform;
  read_fields(merged(layer.body.all("transform_param"), layer.title()), "field of transform_param",
              layer.title(), fields, transform);
  if (!transform.mean_file.empty() && !transform.mean_values.empty()) {
    throw error("{}: transform_param has mean_file and mean_value; give one of them{}",
                layer.title(), in_file(layer.location));
  }
  if (transform.gray && transform.color) {
    throw error("{}: transform_param has force_color and force_gray; give one of them{}",
                layer.title(), in_file(layer.location));
  }
  const size_t means = transform.mean_values.size();
  if (means == 2 || means > 4) {
    throw error(
        "{}: has {} mean_value: one for all channels, or one for each, of which there are "
        "1 or 3{}",
        layer.title(), means, in_file(layer.location));
  }
  read_image_data(layer, transform);
  require_crop_within(layer, transform);
  return transform;
}

// The data set does not read these blocks, but a misspelt one would silently lose a crop or a mean.
void check_fields(const LayerDefinition& layer) {
  std::vector<std::string> known = common_layer_fields();
  for (const DataType& data : data_types) known.emplace_back(data.block);
  require_known(layer.body, known, "field", layer.title());
  for (const DataType& data : data_types) {
    for (const Field* block : layer.body.all(data.block)) {
      require_known(block_of(*block, layer.title()), split(data.fields, ' '),
                    std::string("field of ") + data.block, layer.title());
    }
  }
}

// The i-th `shape { dim: ... }` of the layer's own block (a single one is for all tops), or its
// num/channels/height/width. Zeros where nothing is given.
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

// The shape of a data layer's first top after its transform; n = 1, zeros where nothing is given.
Shape expected_shape(const LayerDefinition& layer) {
  Shape shape = declared_shape(layer, 0);
  const TransformDefinition transform = read_transform(layer);
  if (transform.resize_height > 0 && transform.fit != "crop") {
    shape.h = transform.resize_height;
    shape.w = transform.resize_width;
  }
  if (transform.crop_height > 0) shape.h = transform.crop_height;
  if (transform.crop_width > 0) shape.w = transform.crop_width;
  if (transform.mean_values.size() > 1 && shape.c == 0) {
    shape.c = static_cast<int64_t>(transform.mean_values.size());
  }
  if (transform.color && shape.c == 0) shape.c = 3;
  if (transform.gray) shape.c = 1;
  shape.n = 1;
  return shape;
}

bool is_number(const Shape& shape) {
  return shape.c <= 1 && shape.h <= 1 && shape.w <= 1;
}

// The filler of a top of a DummyData layer: a single one is for all tops, none means zeros.
Filler filler_of(const LayerDefinition& layer, size_t top) {
  const Message block = merged(layer.body.all("dummy_data_param"), layer.title());
  const std::vector<const Field*> fillers = block.all("data_filler");
  if (fillers.size() > 1 && fillers.size() != layer.tops.size()) {
    throw error("{}: has {} data_filler for {} tops; write none, one for all or one for each{}",
                layer.title(), fillers.size(), layer.tops.size(), in_file(layer.location));
  }
  if (fillers.empty()) return {};
  const Field& field = *fillers[fillers.size() == 1 ? 0 : top];
  Filler filler = read_filler(block_of(field, layer.title()), layer.title() + ": data_filler");
  if (filler.type == "constant" || filler.type == "gaussian" || filler.type == "uniform") {
    return filler;
  }
  throw error("{}: data_filler is '{}', but data have no fan: use constant, gaussian or uniform{}",
              layer.title(), filler.type, in_file(field.location));
}

NetInput dummy_input(const LayerDefinition& layer, size_t top) {
  NetInput input{layer.tops[top],       Role::more,    declared_shape(layer, top),
                 filler_of(layer, top), layer.title(), layer.location};
  if (input.shape.n == 0) {
    throw error(
        "{}: its output '{}' has no shape: write dummy_data_param {{ shape {{ dim: 10 dim: "
        "3 }} }}, one for all outputs or one for each{}",
        layer.title(), input.name, in_file(layer.location));
  }
  for (int64_t* side : {&input.shape.c, &input.shape.h, &input.shape.w}) {
    *side = std::max<int64_t>(1, *side);
  }
  return input;
}

// The shape of a top, zeros where none is given. The second top of a Data layer is the label.
Shape shape_of_top(const LayerDefinition& layer, size_t top) {
  if (layer.type == "Input") return declared_shape(layer, top);
  return top == 0 ? expected_shape(layer) : Shape{1, 1, 1, 1};
}

void add_layer(std::vector<NetInput>& inputs, const LayerDefinition& layer) {
  if (layer.type == "WindowData") {
    throw error(
        "{}: windows cut from images for detection are not read here; cut them into images "
        "of their own, and replace this layer by a Data layer{}",
        layer.title(), in_file(layer.location));
  }
  for (size_t top = 0; top < layer.tops.size(); ++top) {
    if (layer.type == "DummyData") {
      inputs.push_back(dummy_input(layer, top));
      continue;
    }
    if (top > 1 && layer.type != "Input") {
      throw error(
          "{}: a data layer gives data and labels, but '{}' is a third output; an Input "
          "layer can have more, because it says the shape of each{}",
          layer.title(), layer.tops[top], in_file(layer.location));
    }
    inputs.push_back({layer.tops[top], Role::more, shape_of_top(layer, top), std::nullopt,
                      layer.title(), layer.location});
  }
}

void give_roles(std::vector<NetInput>& inputs) {
  int fed = 0;
  for (NetInput& input : inputs) {
    if (input.filler) continue;
    ++fed;
    if (fed == 1) input.role = Role::data;
    if (fed == 2 && is_number(input.shape)) input.role = Role::label;
    if (input.role == Role::label) input.shape = {1, 1, 1, 1};
  }
}

}  // namespace

bool is_data_type(const std::string& type) {
  return std::any_of(data_types.begin(), data_types.end(),
                     [&](const DataType& data) { return type == data.name; });
}

bool LayerDefinition::is_data() const {
  return is_data_type(type);
}

void check_data_layers(const NetDefinition& net) {
  for (const LayerDefinition& layer : net.layers) {
    if (!layer.is_data()) continue;
    check_fields(layer);
    std::vector<const Field*> blocks;
    for (const Field& field : layer.body.fields) {
      if (field.message) blocks.push_back(&field);
    }
    require_once(merged(blocks, layer.title()), {"batch_size", "new_height", "new_width"},
                 layer.title());
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
    // A net of DummyData layers only: no layer reads the samples, but they need a shape.
    if (inputs.empty() && data_layer(*this, phase, true) != nullptr) return {1, 1, 1, 1};
  }
  Shape shape = input_shapes.empty() ? Shape{} : input_shapes.front();
  shape.n = 1;
  return shape;
}

std::vector<NetInput> NetDefinition::net_inputs(int32_t phase) const {
  std::vector<NetInput> result;
  for (size_t i = 0; i < inputs.size(); ++i) {
    result.push_back({inputs[i],
                      Role::more,
                      i < input_shapes.size() ? input_shapes[i] : Shape{},
                      std::nullopt,
                      fmt::format("net '{}'", name),
                      {file, 0, 0}});
  }
  for (const LayerDefinition& layer : layers) {
    if (layer.is_data() && layer.in_phase(phase)) add_layer(result, layer);
  }
  for (NetInput& input : result) input.shape.n = 1;
  give_roles(result);
  return result;
}

}  // namespace tandem
