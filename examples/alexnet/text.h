// Numbers as this program prints them.
#pragma once

#include <cstdint>
#include <string>

namespace alexnet {

// "9.1 GiB", "512 KiB", "17 B"
[[nodiscard]] std::string bytes_text(int64_t bytes);
// "1.2 s", "35.1 ms", "12 us"
[[nodiscard]] std::string seconds_text(double seconds);
// "      12.34 ms"
[[nodiscard]] std::string milliseconds_text(double seconds);
// "plan.json" and "layerwise" -> "plan.layerwise.json"
[[nodiscard]] std::string file_of_strategy(const std::string& file, const std::string& strategy);

}  // namespace alexnet
