// Protocol-buffer bytes written by hand, so that the reader is not tested with its own library.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace tandem::test {

[[nodiscard]] inline std::string wire_varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>(value % 128 + 128);
  return bytes + static_cast<char>(value);
}
[[nodiscard]] inline std::string wire_number(uint64_t field, uint64_t value) {
  return wire_varint(field << 3) + wire_varint(value);
}
// A text, a message, or packed values.
[[nodiscard]] inline std::string wire_bytes(uint64_t field, const std::string& content) {
  return wire_varint(field << 3 | 2) + wire_varint(content.size()) + content;
}
template <class Number>
[[nodiscard]] std::string wire_packed(uint64_t field, const std::vector<Number>& values) {
  std::string content(values.size() * sizeof(Number), '\0');
  std::memcpy(content.data(), values.data(), content.size());
  return wire_bytes(field, content);
}
// A current blob: shape (7), data (5).
[[nodiscard]] inline std::string wire_blob(const std::vector<uint64_t>& shape,
                                           const std::vector<float>& values) {
  std::string sizes;
  for (const uint64_t size : shape) sizes += wire_varint(size);
  return wire_bytes(7, wire_bytes(1, sizes)) + wire_packed(5, values);
}
// A current layer: name (1), type (2), blobs (7), within the net's field 100. `more`: other fields.
[[nodiscard]] inline std::string wire_layer(const std::string& name,
                                            const std::vector<std::string>& blobs,
                                            const std::string& type = "InnerProduct",
                                            const std::string& more = "") {
  std::string layer = wire_bytes(1, name) + wire_bytes(2, type) + more;
  for (const std::string& blob : blobs) layer += wire_bytes(7, blob);
  return wire_bytes(100, layer);
}

}  // namespace tandem::test
