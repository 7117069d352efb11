// A plugin's tables as the structs of this Tandem, whichever minor version the plugin was built
// for. Fields beyond a table's struct_size are NULL or zero. Larger tables of a newer minor are
// used as they are; their extra fields are not read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "plugins/abi.h"

namespace tandem {

// A table that a newer module may have, but that needs a newer Tandem: the rest of the module is
// used without it.
class NeedsNewer : public Error {
 public:
  using Error::Error;
};

// The least struct_size of a table: that of version 2.0.
[[nodiscard]] constexpr size_t least_size(const tandem_plugin*) {
  return offsetof(tandem_plugin, transports) + sizeof(tandem_plugin::transports);
}
[[nodiscard]] constexpr size_t least_size(const tandem_layers*) {
  return offsetof(tandem_layers, kernels) + sizeof(tandem_layers::kernels);
}
[[nodiscard]] constexpr size_t least_size(const tandem_datasets*) {
  return offsetof(tandem_datasets, types) + sizeof(tandem_datasets::types);
}
[[nodiscard]] constexpr size_t least_size(const tandem_backends*) {
  return offsetof(tandem_backends, backends) + sizeof(tandem_backends::backends);
}
[[nodiscard]] constexpr size_t least_size(const tandem_transports*) {
  return offsetof(tandem_transports, transports) + sizeof(tandem_transports::transports);
}

[[nodiscard]] constexpr size_t least_size(const tandem_layer_type*) {
  return offsetof(tandem_layer_type, activation) + sizeof(tandem_layer_type::activation);
}
[[nodiscard]] constexpr size_t least_size(const tandem_kernel*) {
  return offsetof(tandem_kernel, fuses_sum) + sizeof(tandem_kernel::fuses_sum);
}
[[nodiscard]] constexpr size_t least_size(const tandem_dataset_type*) {
  return offsetof(tandem_dataset_type, get_bytes) + sizeof(tandem_dataset_type::get_bytes);
}
[[nodiscard]] constexpr size_t least_size(const tandem_transport*) {
  return offsetof(tandem_transport, abort) + sizeof(tandem_transport::abort);
}
[[nodiscard]] constexpr size_t least_size(const tandem_device_transport*) {
  return offsetof(tandem_device_transport, close) + sizeof(tandem_device_transport::close);
}
[[nodiscard]] constexpr size_t least_size(const tandem_backend*) {
  return offsetof(tandem_backend, capture) + sizeof(tandem_backend::capture);
}
[[nodiscard]] constexpr size_t least_size(const tandem_buffers*) {
  return offsetof(tandem_buffers, free) + sizeof(tandem_buffers::free);
}
[[nodiscard]] constexpr size_t least_size(const tandem_streams*) {
  return offsetof(tandem_streams, copy_rows) + sizeof(tandem_streams::copy_rows);
}
[[nodiscard]] constexpr size_t least_size(const tandem_arithmetic*) {
  return offsetof(tandem_arithmetic, convert_pixels) + sizeof(tandem_arithmetic::convert_pixels);
}
[[nodiscard]] constexpr size_t least_size(const tandem_links*) {
  return offsetof(tandem_links, find_topology) + sizeof(tandem_links::find_topology);
}
[[nodiscard]] constexpr size_t least_size(const tandem_capture*) {
  return offsetof(tandem_capture, destroy_graph) + sizeof(tandem_capture::destroy_graph);
}
[[nodiscard]] constexpr size_t least_size(const tandem_parameter*) {
  return offsetof(tandem_parameter, help) + sizeof(tandem_parameter::help);
}
[[nodiscard]] constexpr size_t least_size(const tandem_input*) {
  return offsetof(tandem_input, name) + sizeof(tandem_input::name);
}

// Error if the table, "the table of its layers", is smaller than any version has made it: then
// struct_size was forgotten, or is of another struct.
template <class T>
void require_size(const T& table, const std::string& what) {
  if (table.struct_size >= least_size(&table)) return;
  throw error(
      "{} has a struct_size of {}, but it is at least {}: set it to the sizeof of the struct, and "
      "rebuild the plugin",
      what, table.struct_size, least_size(&table));
}

// Error if a list of the module is longer than any that makes sense, or NULL.
template <class T>
void require_list(const T* list, uint32_t count, const std::string& what) {
  constexpr uint32_t most = 4096;
  if (count > most) throw error("{}: {} of them, but the most are {}", what, count, most);
  if (count > 0 && list == nullptr)
    throw error("{}: {} of them, but the list is NULL", what, count);
}

// A copy of the fields that `table` covers, the rest zero. A size that no struct can have, since it
// ends within a field, covers the fields before.
template <class T>
[[nodiscard]] T covered_part(const T& table) {
  T result{};
  const size_t bytes = std::min<size_t>(table.struct_size, sizeof(T));
  std::memcpy(static_cast<void*>(&result), &table, bytes - bytes % alignof(T));
  return result;
}

// Owns the copies of smaller tables.
using Keeper = std::vector<std::shared_ptr<const void>>;

// Each returns the plugin's own table, or a copy that `keeper` owns. Error with the table and the
// field if a field that the ABI requires is missing or makes no sense. NeedsNewer if it has what
// this Tandem does not know and must not ignore.
[[nodiscard]] const tandem_layer_type* accept(const tandem_layer_type* table, Keeper& keeper);
[[nodiscard]] const tandem_kernel* accept(const tandem_kernel* table, Keeper& keeper);
[[nodiscard]] const tandem_backend* accept(const tandem_backend* table, Keeper& keeper);
[[nodiscard]] const tandem_dataset_type* accept(const tandem_dataset_type* table, Keeper& keeper);
[[nodiscard]] const tandem_transport* accept(const tandem_transport* table, Keeper& keeper);
[[nodiscard]] const tandem_device_transport* accept(const tandem_device_transport* table,
                                                    Keeper& keeper);

}  // namespace tandem
