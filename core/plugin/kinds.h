// The kinds of tables that a plugin offers: how messages, lists and file names name them. What two
// modules offer alike has one title, as "layer type 'ReLU'".
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "plugins/abi.h"

namespace tandem::kinds {

struct Kind {
  const char *title, *plural;  // "layer type", "layer types"
  const char* offer;           // "layer": of ModuleReport::offers
  // A module whose file name begins so is loaded when it is first asked for; "": none is.
  std::string_view prefix{};
  const char* asked = "";     // what a user gives to ask for one, as "device kind"
  bool lists_failed = false;  // a module of that prefix that did not load is known, too
};

template <class Table>
inline constexpr Kind kind_of{};
template <>
inline constexpr Kind kind_of<tandem_layer_type>{"layer type", "layer types", "layer"};
template <>
inline constexpr Kind kind_of<tandem_kernel>{"kernel", "kernels", "kernel", "tandem_kernels_"};
template <>
inline constexpr Kind kind_of<tandem_backend>{"backend",         "backends",    "backend",
                                              "tandem_backend_", "device kind", true};
template <>
inline constexpr Kind kind_of<tandem_dataset_type>{"data set", "data sets", "dataset",
                                                   "tandem_dataset_", "data set"};
template <>
inline constexpr Kind kind_of<tandem_transport>{"transport", "transports", "transport",
                                                "tandem_transport_", "transport"};
template <>
inline constexpr Kind kind_of<tandem_device_transport>{
    "transport between devices", "transports between devices", "messages",
    "tandem_messages_",          "transport between devices",  true};

using KernelName = std::pair<std::string, std::string>;  // layer type, device kind

inline std::string name_of(const tandem_layer_type& table) {
  return table.name;
}
inline KernelName name_of(const tandem_kernel& table) {
  return {table.layer_type, table.device_kind};
}
inline std::string name_of(const tandem_backend& table) {
  return table.kind;
}
inline std::string name_of(const tandem_dataset_type& table) {
  return table.name;
}
inline std::string name_of(const tandem_transport& table) {
  return table.name;
}
inline std::string name_of(const tandem_device_transport& table) {
  return table.device_kind;
}

inline std::string title_of(const Kind& kind, const std::string& name) {
  return fmt::format("{} '{}'", kind.title, name);
}
inline std::string title_of(const Kind& kind, const KernelName& name) {
  return fmt::format("{} of '{}' on {}", kind.title, name.first, name.second);
}
// "layer ReLU", "kernel ReLU/cpu"
inline std::string offer_of(const Kind& kind, const std::string& name) {
  return fmt::format("{} {}", kind.offer, name);
}
inline std::string offer_of(const Kind& kind, const KernelName& name) {
  return fmt::format("{} {}/{}", kind.offer, name.first, name.second);
}

}  // namespace tandem::kinds
