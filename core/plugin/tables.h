// A plugin's tables as the structs of this Tandem, whichever minor version the plugin was built
// for. Fields beyond a table's struct_size are NULL or zero. Larger tables of a newer minor are
// used as they are; their extra fields are not read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
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

// With which field each table ended in version 2.0.
inline constexpr std::tuple last_fields_of_2_0{
    &tandem_plugin::transports,     &tandem_layers::kernels,
    &tandem_datasets::types,        &tandem_backends::backends,
    &tandem_transports::transports, &tandem_layer_type::activation,
    &tandem_kernel::fuses_sum,      &tandem_dataset_type::get_bytes,
    &tandem_transport::abort,       &tandem_device_transport::close,
    &tandem_backend::capture,       &tandem_buffers::free,
    &tandem_streams::copy_rows,     &tandem_arithmetic::convert_pixels,
    &tandem_links::find_topology,   &tandem_capture::destroy_graph,
    &tandem_parameter::help,        &tandem_input::name};

// The bytes of a T up to the end of a field; 0 if the field is of another table.
template <class T, class Owner, class Field>
size_t end_of([[maybe_unused]] Field Owner::*field) {
  if constexpr (std::is_same_v<T, Owner>) {
    static const T table{};
    return size_t(reinterpret_cast<const char*>(&(table.*field) + 1) -
                  reinterpret_cast<const char*>(&table));
  }
  return 0;
}

// The least struct_size of a table: that of version 2.0.
template <class T>
size_t min_size() {
  return std::apply([](auto... fields) { return std::max({end_of<T>(fields)...}); },
                    last_fields_of_2_0);
}

// Error if the table, "the table of its layers", is smaller than any version has made it: then
// struct_size was forgotten, or is of another struct.
template <class T>
void require_size(const T& table, const std::string& what) {
  if (table.struct_size >= min_size<T>()) return;
  throw error(
      "{} has a struct_size of {}, but it is at least {}: set it to the sizeof of the struct, and "
      "rebuild the plugin",
      what, table.struct_size, min_size<T>());
}

// Error if a list of the module is longer than any that makes sense, or NULL.
template <class T>
void require_list(const T* list, uint32_t count, const std::string& what) {
  constexpr uint32_t max_count = 4096;
  if (count > max_count) throw error("{}: {} of them, but the most are {}", what, count, max_count);
  if (count == 0 || list != nullptr) return;
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
