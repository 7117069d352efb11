// The checksum of PNG, gzip and zip (CRC-32, as zlib.crc32), which other programs can recompute.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tandem {

// `before`: of the bytes that precede these, to sum in parts.
[[nodiscard]] uint32_t crc32(const void* data, size_t bytes, uint32_t before = 0);

// The checksum of iSCSI and of TensorFlow's records (CRC-32C, Castagnoli's polynomial).
[[nodiscard]] uint32_t crc32c(const void* data, size_t bytes);

}  // namespace tandem
