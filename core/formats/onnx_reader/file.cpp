#include "core/formats/onnx_reader/file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include <onnx_format.pb.h>
#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/text/strings.h"
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

enum DataType {
  float32 = 1,
  uint8,
  int8,
  uint16,
  int16,
  int32,
  int64,
  boolean = 9,
  float16,
  float64,
  uint32,
  uint64,
  bfloat16 = 16
};
bool is_real(int type) {
  return type == float32 || type == float64 || type == float16 || type == bfloat16;
}

float from_float16(uint16_t bits) {
  const int exponent = (bits >> 10U) & 31U, fraction = bits & 1023U;
  const float sign = (bits & 0x8000U) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) {
    return fraction == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  }
  const int significand = exponent == 0 ? fraction : fraction + 1024;
  return sign * std::ldexp(static_cast<float>(significand), (exponent == 0 ? 1 : exponent) - 25);
}

float from_bfloat16(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16U;
  float value = 0;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

// Calls `take` for each element of type T.
template <class T, class Take>
void each(const std::string& bytes, const Take& take) {
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + i, sizeof(T));
    take(value);
  }
}

size_t size_of(int type) {
  switch (type) {
    case uint8:
    case int8:
    case boolean:
      return 1;
    case uint16:
    case int16:
    case float16:
    case bfloat16:
      return 2;
    case float32:
    case int32:
    case uint32:
      return 4;
    case int64:
    case uint64:
    case float64:
      return 8;
    default:
      return 0;
  }
}

void take_bytes(int type, const std::string& bytes, OnnxTensor& tensor) {
  const auto whole = [&](auto value) { tensor.integers.push_back(static_cast<int64_t>(value)); };
  const auto real = [&](auto value) { tensor.floats.push_back(static_cast<float>(value)); };
  if (type == float32) {
    tensor.floats.resize(bytes.size() / sizeof(float));
    std::memcpy(tensor.floats.data(), bytes.data(), tensor.floats.size() * sizeof(float));
  }
  if (type == float64) each<double>(bytes, real);
  if (type == float16) each<uint16_t>(bytes, [&](uint16_t v) { real(from_float16(v)); });
  if (type == bfloat16) each<uint16_t>(bytes, [&](uint16_t v) { real(from_bfloat16(v)); });
  if (type == int64) each<int64_t>(bytes, whole);
  if (type == uint64) each<uint64_t>(bytes, whole);
  if (type == uint32) each<uint32_t>(bytes, whole);
  if (type == int32) each<int32_t>(bytes, whole);
  if (type == int16) each<int16_t>(bytes, whole);
  if (type == uint16) each<uint16_t>(bytes, whole);
  if (type == int8) each<int8_t>(bytes, whole);
  if (type == uint8 || type == boolean) each<uint8_t>(bytes, whole);
}

void take_fields(int type, const format::Tensor& from, OnnxTensor& tensor) {
  const auto real = [&](const auto& values) {
    for (const auto value : values) tensor.floats.push_back(static_cast<float>(value));
  };
  const auto whole = [&](const auto& values) {
    for (const auto value : values) tensor.integers.push_back(value);
  };
  if (type == float32) {
    real(from.float_data());
  } else if (type == float64) {
    real(from.double_data());
  } else if (type == float16 || type == bfloat16) {
    for (const int32_t bits : from.int32_data()) {
      const auto half = static_cast<uint16_t>(bits);
      tensor.floats.push_back(type == float16 ? from_float16(half) : from_bfloat16(half));
    }
  } else if (type == int64) {
    whole(from.int64_data());
  } else if (type == uint32 || type == uint64) {
    whole(from.uint64_data());
  } else {
    whole(from.int32_data());
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
  const int type = from.data_type();
  const size_t size = size_of(type);
  if (size == 0) {
    throw refusal(path, fmt::format("'{}' has values of type {}: float32, float64, float16, "
                                    "bfloat16 and integers are read",
                                    from.name(), type));
  }
  OnnxTensor tensor;
  tensor.shape.assign(from.dims().begin(), from.dims().end());
  tensor.is_integer = !is_real(type);
  const int64_t count = count_of(tensor.shape, max_of_tensor);
  if (count < 0 || from.dims_size() > max_axes) {
    throw refusal(path,
                  fmt::format("'{}' is said to be {}", from.name(), fmt::join(tensor.shape, "x")));
  }
  if (from.data_location() == 1) {
    take_bytes(type, external_bytes(path, from, uint64_t(count) * size), tensor);
  } else if (from.has_raw_data()) {
    take_bytes(type, from.raw_data(), tensor);
  } else {
    take_fields(type, from, tensor);
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

OnnxConstant as_tensor(const OnnxValueOfAttribute& value) {
  auto tensor = std::make_shared<OnnxTensor>();
  if (const auto* number = std::get_if<float>(&value)) {
    tensor->floats = {*number};
  } else if (const auto* whole = std::get_if<std::vector<int64_t>>(&value)) {
    tensor->is_integer = true;
    tensor->integers = *whole;
    tensor->shape = {static_cast<int64_t>(whole->size())};
  } else if (const auto* numbers = std::get_if<std::vector<float>>(&value)) {
    tensor->floats = *numbers;
    tensor->shape = {static_cast<int64_t>(numbers->size())};
  } else {
    return nullptr;
  }
  return tensor;
}

void move_attributes(OnnxFile& file, OnnxNode& node, size_t index) {
  for (const MovedAttribute& moved : moved_attributes) {
    const auto found = node.attributes.find(moved.attribute);
    const bool is_it = moved.operation == std::string_view("Reduce")
                           ? node.operation.starts_with("Reduce")
                           : node.operation == moved.operation;
    if (!is_it || found == node.attributes.end()) continue;
    const OnnxConstant tensor = as_tensor(found->second);
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
    OnnxFile::Input input{
        checked_name(file.path, info.name()), {}, type == 0 || is_real(type), type == uint8};
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

int64_t OnnxNode::integer(const std::string& wanted, int64_t absent) const {
  const auto found = attributes.find(wanted);
  if (found == attributes.end()) return absent;
  const auto* value = std::get_if<int64_t>(&found->second);
  return value != nullptr ? *value : absent;
}

double OnnxNode::number(const std::string& wanted, double absent) const {
  const auto found = attributes.find(wanted);
  if (found == attributes.end()) return absent;
  const auto* value = std::get_if<float>(&found->second);
  return value != nullptr ? static_cast<double>(*value) : absent;
}

std::string OnnxNode::text(const std::string& wanted, const std::string& absent) const {
  const auto found = attributes.find(wanted);
  if (found == attributes.end()) return absent;
  const auto* value = std::get_if<std::string>(&found->second);
  return value != nullptr ? *value : absent;
}

std::vector<int64_t> OnnxNode::integers(const std::string& wanted) const {
  const auto found = attributes.find(wanted);
  if (found == attributes.end()) return {};
  const auto* values = std::get_if<std::vector<int64_t>>(&found->second);
  return values != nullptr ? *values : std::vector<int64_t>{};
}

std::string OnnxNode::title() const {
  return fmt::format("node '{}' ({})", name.empty() && !outputs.empty() ? outputs.front() : name,
                     domain.empty() ? operation : domain + "." + operation);
}

OnnxFile read_onnx_file(const fs::path& path) {
  const format::Model model = parse(path);
  OnnxFile file;
  file.path = path;
  file.name = checked_name(path, model.graph().name());
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
