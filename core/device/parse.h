// Devices, links and sizes as users write them. Errors quote the text and say what would be right.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tandem {

class Registry;

// The kinds of devices where the user names none: of those that compute, and of simulated ones.
constexpr const char* default_kind = "cpu";
constexpr const char* simulator_kind = "sim";

constexpr int max_devices = 1024;  // of a machine
struct DeviceSpec {
  std::string kind = default_kind;
  std::vector<int32_t> ordinals{0};  // one for each device
  bool is_counted = true;            // written as a number of devices, not as a list of ordinals
  [[nodiscard]] int count() const { return static_cast<int>(ordinals.size()); }
};

// "KIND", "KIND:4", "KIND:0,1", "KIND:all": a kind, in any case, or "gpu" for the one whose devices
// have numbers, and how many devices or which, as its backend's counted_devices says. Errors: an
// unknown kind, with the known ones; what is no number of devices or no list; a backend that does
// not load.
[[nodiscard]] DeviceSpec parse_devices(const std::string& text, const Registry& registry);
// The same where these are the kinds; `is_counted` and `count_all` are asked for one of them.
[[nodiscard]] DeviceSpec parse_devices(const std::string& text,
                                       const std::vector<std::string>& kinds,
                                       const std::function<bool(const std::string&)>& is_counted,
                                       const std::function<int(const std::string&)>& count_all);
// "sim:4", for parse_devices().
[[nodiscard]] std::string simulated_devices(int count);
[[nodiscard]] std::string to_string(const DeviceSpec& spec);

struct LinkSpec {
  double bandwidth = 0;  // bytes per second; 0: as the backend has it
  double latency = 0;    // seconds
};
// "bandwidth=4GB/s,latency=10us" (units: B/s kB/s MB/s GB/s; s ms us ns).
[[nodiscard]] LinkSpec parse_link(const std::string& text);

// "4GB/s", "10us". `where` begins the message of an Error: "link 'bandwidth=4'". A bandwidth is
// from 1kB/s to a million GB/s, a latency at most a minute.
[[nodiscard]] double parse_bandwidth(const std::string& value, const std::string& where);
[[nodiscard]] double parse_latency(const std::string& value, const std::string& where);

// "4MiB" -> bytes (units: B kB MB GB, KiB MiB GiB), at least 1. An Error names `option`.
[[nodiscard]] int64_t parse_size(const std::string& text, const std::string& option);

}  // namespace tandem
