// Devices, links and sizes as users write them. Errors name the text and say what would be right.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

// "cpu", "cpu:4", "sim:16", "cuda:0,1": kind and how many or which. For cpu and sim ":N" is a
// count, for cuda a list of ids. parse_devices() throws Error on anything else ("cpu:0", "gpu",
// "cpu:x"), naming the kinds.
constexpr int most_devices = 1024;  // of a machine
struct DeviceSpec {
  std::string kind = "cpu";
  std::vector<int32_t> ordinals{0};
  [[nodiscard]] int count() const { return static_cast<int>(ordinals.size()); }
};
[[nodiscard]] DeviceSpec parse_devices(const std::string& text,
                                       const std::vector<std::string>& kinds);
[[nodiscard]] std::string to_string(const DeviceSpec& spec);

// "bandwidth=4GB/s,latency=10us" (units: B/s kB/s MB/s GB/s; s ms us ns) -> bytes per second,
// seconds.
struct LinkSpec {
  double bandwidth = 0;
  double latency = 0;
};
[[nodiscard]] LinkSpec parse_link(const std::string& text);

// "4GB/s", "10us"; `where` begins the message of an Error: "link 'bandwidth=4'". At least 1kB/s, at
// most a million GB/s, and at most a minute.
[[nodiscard]] double parse_bandwidth(const std::string& value, const std::string& where);
[[nodiscard]] double parse_latency(const std::string& value, const std::string& where);

// "4MiB" -> bytes (units: B kB MB GB, KiB MiB GiB). Error, naming `option`, on anything else and on
// less than one byte.
[[nodiscard]] int64_t parse_size(const std::string& text, const std::string& option);

}  // namespace tandem
