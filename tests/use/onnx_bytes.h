// ONNX files written byte by byte, so that tests can have graphs that no exporter writes. The
// graph's input is an image "x" of 1x3x4x4.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace tandem::test {

constexpr std::array<double, 3> no_std{1, 1, 1};

namespace onnx_bytes {

// Protobuf, as bytes: a number, and a field with a length.
inline std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7U) bytes += static_cast<char>((value & 127U) | 128U);
  return bytes + static_cast<char>(value);
}
inline std::string field(int number, const std::string& bytes) {
  return varint(uint64_t(number) << 3U | 2U) + varint(bytes.size()) + bytes;
}
inline std::string number(int field_number, uint64_t value) {
  return varint(uint64_t(field_number) << 3U) + varint(value);
}

inline std::string node(const std::string& operation, const std::vector<std::string>& inputs,
                        const std::string& output, const std::string& more = "") {
  std::string bytes;
  for (const std::string& input : inputs) bytes += field(1, input);
  return field(1, bytes + field(2, output) + field(3, output) + field(4, operation) + more);
}
inline std::string image(const std::string& name, uint64_t type = 1) {
  std::string shape;
  for (const uint64_t extent : {1, 3, 4, 4}) shape += field(1, number(1, extent));
  return field(11, field(1, name) + field(2, field(1, number(1, type) + field(2, shape))));
}
inline std::string output(const std::string& name) {
  return field(12, field(1, name));
}
inline std::string tensor(const std::string& name, const std::vector<uint64_t>& extents,
                          const std::string& more) {
  std::string bytes;
  for (const uint64_t extent : extents) bytes += number(1, extent);
  return field(5, bytes + number(2, 1) + field(8, name) + more);
}
inline std::string model(const std::string& graph, uint64_t opset = 17) {
  return number(1, 8) + field(7, field(2, "g") + graph) + field(8, field(1, "") + number(2, opset));
}
inline std::string in_another_file(const std::string& location) {
  return field(13, field(1, "location") + field(2, location)) + number(14, 1);
}

// An attribute: its name, its type, and the field with its value.
inline std::string attribute(const std::string& name, uint64_t type, const std::string& value) {
  return field(5, field(1, name) + value + number(20, type));
}
inline std::string word(const std::string& name, const std::string& value) {
  return attribute(name, 3, field(4, value));
}
inline std::string integer(const std::string& name, uint64_t value) {
  return attribute(name, 2, number(3, value));
}
inline std::string values(const std::string& name, const std::vector<uint64_t>& extents,
                          const std::vector<float>& all) {
  std::string bytes(all.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), all.data(), bytes.size());
  return tensor(name, extents, field(9, bytes));
}
inline std::string floats(const std::string& name, const std::vector<float>& all) {
  return values(name, {all.size()}, all);
}
// A Constant node of such values.
inline std::string constant_node(const std::string& name, const std::vector<uint64_t>& extents,
                                 const std::vector<float>& all) {
  return node("Constant", {}, name, attribute("value", 4, values("", extents, all)));
}

}  // namespace onnx_bytes
}  // namespace tandem::test
