// What a simulated device is taken to be where nobody measured: bytes, bytes per second, flops per
// second. Work takes its predicted time whatever these say.
#pragma once

#include <cstdint>

namespace tandem::sim {

constexpr double default_link_bandwidth = 4e9;
constexpr double host_bandwidth = 12e9;
constexpr double memory_bandwidth = 60e9;
constexpr double peak_flops = 500e9;
constexpr int64_t memory_bytes = int64_t{16} << 30;

}  // namespace tandem::sim
