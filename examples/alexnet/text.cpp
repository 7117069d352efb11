#include "text.h"

#include <fmt/format.h>

#include <filesystem>

namespace alexnet {

std::string bytes_text(int64_t bytes) {
  auto value = static_cast<double>(bytes);
  for (const char* unit : {"B", "KiB", "MiB"}) {
    if (value < 1024) return fmt::format("{:.{}f} {}", value, *unit == 'B' ? 0 : 1, unit);
    value /= 1024;
  }
  return fmt::format("{:.1f} GiB", value);
}

std::string seconds_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.1f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.0f} us", seconds * 1e6);
}

std::string milliseconds_text(double seconds) {
  return fmt::format("{:9.2f} ms", seconds * 1e3);
}

std::string file_of_strategy(const std::string& file, const std::string& strategy) {
  const std::filesystem::path path(file);
  return (path.parent_path() / (path.stem().string() + "." + strategy + path.extension().string()))
      .string();
}

}  // namespace alexnet
