// What this program prints: lines, and numbers in them.
#pragma once

#include <fmt/format.h>
#include <tandem/process.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace alexnet {

// Prints to standard output. fmt::print would throw where it is lost; main() finds that out.
template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  tandem::write_or_lose(stdout, fmt::format(format, std::forward<Args>(args)...));
}

// "9.1 GiB", "512 KiB", "17 B"
[[nodiscard]] std::string bytes_text(int64_t bytes);
// "1.2 s", "35.1 ms", "12 us"
[[nodiscard]] std::string seconds_text(double seconds);
// "      12.34 ms"
[[nodiscard]] std::string milliseconds_text(double seconds);
// "plan.json" and "layerwise" -> "plan.layerwise.json"
[[nodiscard]] std::string file_of_strategy(const std::string& file, const std::string& strategy);

}  // namespace alexnet
