// How messages name what a plugin offers, as "layer type 'ReLU'": what two modules offer alike has
// one title.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace tandem {

inline std::string layer_title(const std::string& name) {
  return fmt::format("layer type '{}'", name);
}
inline std::string kernel_title(const std::pair<std::string, std::string>& name) {
  return fmt::format("kernel of '{}' on {}", name.first, name.second);
}
inline std::string backend_title(const std::string& kind) {
  return fmt::format("backend '{}'", kind);
}
inline std::string dataset_title(const std::string& name) {
  return fmt::format("data set '{}'", name);
}
inline std::string transport_title(const std::string& name) {
  return fmt::format("transport '{}'", name);
}
inline std::string device_transport_title(const std::string& kind) {
  return fmt::format("transport between devices '{}'", kind);
}

}  // namespace tandem
