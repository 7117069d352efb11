#include "core/formats/onnx_reader/file.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <limits>
#include <string_view>

#include <onnx_format.pb.h>
#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/text/strings.h"
#include "core/formats/arrays.h"
#include "core/formats/onnx_reader/nodes.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
namespace format = onnx_format;

constexpr int64_t first_opset = 7;
constexpr int64_t max_of_tensor = int64_t{1} << 31;  // of a tensor

Error refusal(const fs::path& path, const std::string& why) {
  return error("ONNX file '{}' cannot be used: {}", path.string(), why);
}

// Names reach layers, messages and files.
std::string checked_name(const fs::path& path, const std::string& name) {
  constexpr size_t max_name = 1000;
  const bool is_plain = is_utf8(name) && std::none_of(name.begin(), name.end(), [](char c) {
                          return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
                        });
  if (is_plain && name.size() <= max_name) return name;
  throw refusal(path, fmt::format("the name '{}' is too long or no plain UTF-8",
                                  is_utf8(name) ? first_bytes(name, 40) : "..."));
}

// ---- values of tensors

// A data type of ONNX: its number, how many bytes a value has, and what takes values from bytes.
struct DataType {
  int number;
  size_t bytes;
  void (*take)(const std::string& bytes, OnnxTensor& tensor);
  bool is_real = false;
};

template <ElementType type>
void take_real(const std::string& bytes, OnnxTensor& tensor) {
  tensor.floats = floats_of(bytes, type);
}

template <class T>
void take_whole(const std::string& bytes, OnnxTensor& tensor) {
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + i, sizeof(T));
    tensor.integers.push_back(static_cast<int64_t>(value));
  }
}

constexpr int float32 = 1, uint8 = 2, int64 = 7, float16 = 10, float64 = 11, uint32 = 12,
              uint64 = 13, bfloat16 = 16;
constexpr DataType data_types[] = {
    {float32, 4, take_real<ElementType::f32>, true},
    {uint8, 1, take_whole<uint8_t>},
    {3, 1, take_whole<int8_t>},
    {4, 2, take_whole<uint16_t>},
    {5, 2, take_whole<int16_t>},
    {6, 4, take_whole<int32_t>},
    {int64, 8, take_whole<int64_t>},
    {9, 1, take_whole<uint8_t>},  // boolean
    {float16, 2, take_real<ElementType::f16>, true},
    {float64, 8, take_real<ElementType::f64>, true},
    {uint32, 4, take_whole<uint32_t>},
    {uint64, 8, take_whole<uint64_t>},
    {bfloat16, 2, take_real<ElementType::bf16>, true},
};

const DataType* find_type(int number) {
  const auto* found = std::find_if(std::begin(data_types), std::end(data_types),
                                   [&](const DataType& known) { return known.number == number; });
  return found == std::end(data_types) ? nullptr : found;
}

void take_fields(const DataType& type, const format::Tensor& from, OnnxTensor& tensor) {
  if (type.number == float32) {
    tensor.floats.assign(from.float_data().begin(), from.float_data().end());
  } else if (type.number == float64) {
    tensor.floats.assign(from.double_data().begin(), from.double_data().end());
  } else if (type.is_real) {
    std::string bytes;  // an integer for each value has its bits
    for (const int32_t bits : from.int32_data()) {
      bytes += {static_cast<char>(bits), static_cast<char>(bits >> 8)};
    }
    type.take(bytes, tensor);
  } else if (type.number == int64) {
    tensor.integers.assign(from.int64_data().begin(), from.int64_data().end());
  } else if (type.number == uint32 || type.number == uint64) {
    tensor.integers.assign(from.uint64_data().begin(), from.uint64_data().end());
  } else {
    tensor.integers.assign(from.int32_data().begin(), from.int32_data().end());
  }
}

// A tensor's bytes in another file, which must be in the folder of the ONNX file or below it, also
// after links are followed.
std::string external_bytes(const fs::path& path, const format::Tensor& tensor, uint64_t wanted) {
  std::map<std::string, std::string> entries;
  for (const format::Entry& entry : tensor.external_data()) entries[entry.key()] = entry.value();
  const fs::path written = checked_name(path, entries["location"]);
  const std::string what =
      fmt::format("the values of '{}' are in '{}'", tensor.name(), written.string());
  bool is_inside = !written.empty() && written.is_relative();
  for (const fs::path& part : written) is_inside = is_inside && part != "..";
  if (!is_inside) {
    throw refusal(path, what + ", which is outside the folder of the ONNX file: it is not read");
  }
  const fs::path folder = absolute_path(path).parent_path();
  std::error_code failure;
  const fs::path root = fs::canonical(folder, failure);
  const fs::path file = failure ? fs::path() : fs::canonical(folder / written, failure);
  if (failure) throw refusal(path, what + ", which does not exist");
  const auto [end, unused] = std::mismatch(root.begin(), root.end(), file.begin(), file.end());
  if (end != root.end()) {
    throw refusal(path, what + ", which leads outside the folder of the ONNX file: it is not read");
  }
  uint64_t offset = 0, length = wanted;
  if (!entries["offset"].empty() && !parse_integer(entries["offset"], &offset)) {
    throw refusal(path, what + fmt::format(", but their offset is '{}'", entries["offset"]));
  }
  if (!entries["length"].empty() && !parse_integer(entries["length"], &length)) {
    throw refusal(path, what + fmt::format(", but their length is '{}'", entries["length"]));
  }
  const InputFile input(file, "file of an ONNX net's values");
  if (length != wanted || offset > input.size() || wanted > input.size() - offset) {
    throw refusal(path, what + fmt::format(", which has {} bytes: the shape needs {} from byte {} "
                                           "on",
                                           input.size(), wanted, offset));
  }
  std::string bytes(size_t(wanted), '\0');
  if (input.read(offset, bytes.data(), bytes.size()) != wanted) {
    throw refusal(path, what + ", which became shorter while it was read");
  }
  return bytes;
}

OnnxConstant take_tensor(const fs::path& path, const format::Tensor& from) {
  constexpr int max_axes = 16;
  const DataType* type = find_type(from.data_type());
  if (type == nullptr) {
    throw refusal(path, fmt::format("'{}' has values of type {}: float32, float64, float16, "
                                    "bfloat16 and integers are read",
                                    from.name(), from.data_type()));
  }
  OnnxTensor tensor;
  tensor.shape.assign(from.dims().begin(), from.dims().end());
  tensor.is_integer = !type->is_real;
  const int64_t count = count_of(tensor.shape, max_of_tensor);
  if (count < 0 || from.dims_size() > max_axes) {
    throw refusal(path,
                  fmt::format("'{}' is said to be {}", from.name(), fmt::join(tensor.shape, "x")));
  }
  if (from.data_location() == 1) {
    type->take(external_bytes(path, from, uint64_t(count) * type->bytes), tensor);
  } else if (from.has_raw_data()) {
    type->take(from.raw_data(), tensor);
  } else {
    take_fields(*type, from, tensor);
  }
  if (static_cast<int64_t>(tensor.count()) != count) {
    throw refusal(path, fmt::format("'{}' is {}, but has {} values", from.name(),
                                    fmt::join(tensor.shape, "x"), tensor.count()));
  }
  return std::make_shared<OnnxTensor>(std::move(tensor));
}

// ---- nodes

// Some writers leave out zeros and empty texts: then the type alone says that there is a value.
OnnxValueOfAttribute take_attribute(const fs::path& path, const format::Attribute& from) {
  enum { of_float = 1, of_int = 2, of_text = 3, of_floats = 6 };
  if (from.has_t()) return take_tensor(path, from.t());
  if (from.ints_size() > 0) return std::vector<int64_t>(from.ints().begin(), from.ints().end());
  if (from.floats_size() > 0 || from.type() == of_floats) {
    return std::vector<float>(from.floats().begin(), from.floats().end());
  }
  if (from.has_s() || from.type() == of_text) return from.s();
  if (from.has_f() || from.type() == of_float) return from.f();
  if (from.has_i() || from.type() == of_int) return from.i();
  return std::vector<int64_t>();
}

OnnxNode take_node(const fs::path& path, const format::Node& from) {
  OnnxNode node;
  node.name = checked_name(path, from.name());
  node.operation = checked_name(path, from.op_type());
  node.domain = from.domain() == "ai.onnx" ? "" : checked_name(path, from.domain());
  for (const std::string& name : from.input()) node.inputs.push_back(checked_name(path, name));
  for (const std::string& name : from.output()) node.outputs.push_back(checked_name(path, name));
  for (const format::Attribute& attribute : from.attribute()) {
    node.attributes.emplace(attribute.name(), take_attribute(path, attribute));
  }
  return node;
}

// An attribute of older opsets that is an input in newer ones.
struct MovedAttribute {
  const char *operation, *attribute;
  size_t input;
};
constexpr MovedAttribute moved_attributes[] = {
    {"Clip", "min", 1},     {"Clip", "max", 2},       {"Dropout", "ratio", 1},
    {"Pad", "pads", 1},     {"Pad", "value", 2},      {"Slice", "starts", 1},
    {"Slice", "ends", 2},   {"Slice", "axes", 3},     {"Split", "split", 1},
    {"Squeeze", "axes", 1}, {"Unsqueeze", "axes", 1}, {"Upsample", "scales", 1},
    {"Reduce", "axes", 1},  // of all whose names begin so
};

void move_attributes(OnnxFile& file, OnnxNode& node, size_t index) {
  for (const MovedAttribute& moved : moved_attributes) {
    const auto found = node.attributes.find(moved.attribute);
    const bool is_it = moved.operation == std::string_view("Reduce")
                           ? node.operation.starts_with("Reduce")
                           : node.operation == moved.operation;
    if (!is_it || found == node.attributes.end()) continue;
    const OnnxConstant tensor = tensor_of(found->second);
    if (tensor == nullptr || node.has_input(moved.input)) continue;
    const std::string name =
        fmt::format("{}.{} of node {}", node.operation, moved.attribute, index);
    if (node.inputs.size() <= moved.input) node.inputs.resize(moved.input + 1);
    node.inputs[moved.input] = name;
    file.constants[name] = tensor;
  }
}

// Operators of older opsets that compute otherwise than those of the newest one.
void mark_older(int64_t opset, OnnxNode& node) {
  constexpr int64_t axis_alone = 13;
  const bool is_softmax = node.operation == "Softmax" || node.operation == "LogSoftmax";
  if (is_softmax && opset < axis_alone) {
    node.attributes.emplace("axis", int64_t{1});
    node.attributes["flattens"] = int64_t{1};  // over all axes from there on
  }
}

void take_graph(const format::Graph& graph, OnnxFile& file) {
  for (const format::Tensor& tensor : graph.initializer()) {
    const std::string name = checked_name(file.path, tensor.name());
    auto constant = std::make_shared<OnnxTensor>(*take_tensor(file.path, tensor));
    constant->parameter = name;
    file.constants[name] = std::move(constant);
  }
  for (const format::ValueInfo& info : graph.input()) {
    if (file.constants.contains(info.name())) continue;
    const int type = info.type().tensor_type().elem_type();
    const DataType* known = find_type(type);
    OnnxFile::Input input{checked_name(file.path, info.name()),
                          {},
                          type == 0 || (known != nullptr && known->is_real),
                          type == uint8};
    for (const format::Dimension& dimension : info.type().tensor_type().shape().dim()) {
      input.shape.push_back(dimension.has_dim_value() ? dimension.dim_value() : -1);
    }
    file.inputs.push_back(std::move(input));
  }
  for (const format::ValueInfo& info : graph.output()) file.outputs.push_back(info.name());
  for (const format::Node& node : graph.node()) file.nodes.push_back(take_node(file.path, node));
  divide_fused_nodes(file);
  for (size_t i = 0; i < file.nodes.size(); ++i) {
    move_attributes(file, file.nodes[i], i + 1);
    if (file.nodes[i].domain.empty()) mark_older(file.opset, file.nodes[i]);
  }
}

format::Model parse(const fs::path& path) {
  const InputFile input(path, "ONNX file");
  constexpr uint64_t max_bytes = std::numeric_limits<int32_t>::max();
  if (input.size() > max_bytes) {
    throw refusal(path, fmt::format("it has {} bytes, and protobuf holds at most {}; save it with "
                                    "external data",
                                    input.size(), max_bytes));
  }
  input.require_stored();
  std::string bytes(size_t(input.size()), '\0');
  bytes.resize(input.read(0, bytes.data(), bytes.size()));
  format::Model model;
  if (!model.ParseFromString(bytes) || !model.has_graph()) {
    throw refusal(path, "it is no ONNX model, or damaged");
  }
  return model;
}

}  // namespace

int64_t count_of(const std::vector<int64_t>& extents, int64_t most) {
  int64_t count = 1;
  bool is_empty = false;
  for (const int64_t extent : extents) {
    if (extent < 0) return -1;
    is_empty = is_empty || extent == 0;
  }
  if (is_empty) return 0;
  for (const int64_t extent : extents) {
    if (count > most / extent) return -1;
    count *= extent;
  }
  return count;
}

std::string OnnxTensor::owner() const {
  const size_t dot = parameter.rfind('.');
  if (dot == std::string::npos || dot == 0) return "";
  const bool is_word =
      std::all_of(parameter.begin() + int64_t(dot) + 1, parameter.end(),
                  [](unsigned char c) { return std::isalpha(c) != 0 || c == '_'; });
  return is_word ? parameter.substr(0, dot) : "";
}

OnnxConstant tensor_of(const OnnxValueOfAttribute& value) {
  if (const auto* tensor = std::get_if<OnnxConstant>(&value)) return *tensor;
  auto result = std::make_shared<OnnxTensor>();
  if (const auto* number = std::get_if<float>(&value)) {
    result->floats = {*number};
  } else if (const auto* numbers = std::get_if<std::vector<float>>(&value)) {
    result->floats = *numbers;
    result->shape = {static_cast<int64_t>(numbers->size())};
  } else if (const auto* one = std::get_if<int64_t>(&value)) {
    result->integers = {*one};
    result->is_integer = true;
  } else if (const auto* several = std::get_if<std::vector<int64_t>>(&value)) {
    result->integers = *several;
    result->is_integer = true;
    result->shape = {static_cast<int64_t>(several->size())};
  } else {
    return nullptr;
  }
  return result;
}

namespace {

template <class T>
const T* find(const OnnxNode& node, const std::string& attribute) {
  const auto found = node.attributes.find(attribute);
  return found == node.attributes.end() ? nullptr : std::get_if<T>(&found->second);
}

}  // namespace

int64_t OnnxNode::integer(const std::string& wanted, int64_t absent) const {
  const auto* value = find<int64_t>(*this, wanted);
  return value == nullptr ? absent : *value;
}

double OnnxNode::number(const std::string& wanted, double absent) const {
  const auto* value = find<float>(*this, wanted);
  return value == nullptr ? absent : *value;
}

std::string OnnxNode::text(const std::string& wanted, const std::string& absent) const {
  const auto* value = find<std::string>(*this, wanted);
  return value == nullptr ? absent : *value;
}

std::vector<int64_t> OnnxNode::integers(const std::string& wanted) const {
  const auto* values = find<std::vector<int64_t>>(*this, wanted);
  return values == nullptr ? std::vector<int64_t>{} : *values;
}

std::string OnnxNode::title() const {
  return fmt::format("node '{}' ({})", name.empty() && !outputs.empty() ? outputs.front() : name,
                     domain.empty() ? operation : domain + "." + operation);
}

OnnxFile read_onnx_file(const fs::path& path) {
  const format::Model model = parse(path);
  OnnxFile file;
  file.path = path;
  (void)checked_name(path, model.graph().name());
  file.producer = checked_name(path, model.producer_name());
  for (const format::OperatorSet& set : model.opset_import()) {
    if (set.domain().empty() || set.domain() == "ai.onnx") file.opset = set.version();
  }
  if (file.opset < first_opset) {
    throw refusal(path,
                  fmt::format("it is of opset {}; {} and newer are read", file.opset, first_opset));
  }
  for (const format::Entry& entry : model.metadata_props()) {
    file.metadata[entry.key()] = entry.value();
  }
  take_graph(model.graph(), file);
  sort_nodes(file);
  return file;
}

bool is_onnx_file(const fs::path& path) {
  return path.extension() == ".onnx";
}

}  // namespace tandem
