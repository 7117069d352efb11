// A mean image as Caffe's compute_image_mean writes it.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace tandem::test {

inline std::string wire_number(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7U) bytes += static_cast<char>(value | 128U);
  return bytes + static_cast<char>(value);
}

// A BlobProto of 1 x channels x height x width floats.
inline std::string mean_image_file(int64_t channels, int64_t height, int64_t width,
                                   const std::vector<float>& values) {
  std::string file;
  const int64_t sizes[] = {1, channels, height, width};
  for (int i = 0; i < 4; ++i) {
    file += wire_number(static_cast<uint64_t>(i + 1) << 3U) +
            wire_number(static_cast<uint64_t>(sizes[i]));
  }
  std::string packed(4 * values.size(), '\0');
  std::memcpy(packed.data(), values.data(), packed.size());
  return file + wire_number(5U << 3U | 2U) + wire_number(packed.size()) + packed;
}

}  // namespace tandem::test
