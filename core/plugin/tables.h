// A plugin's tables as the structs of this Tandem, whichever minor version the plugin was built
// for. Fields beyond a table's struct_size are NULL or zero. Larger tables of a newer minor are
// used as they are; their extra fields are not read.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "plugins/abi.h"

namespace tandem {

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
// field if a field that the ABI requires is missing or makes no sense.
[[nodiscard]] const tandem_layer_type* accept(const tandem_layer_type* table, Keeper& keeper);
[[nodiscard]] const tandem_kernel* accept(const tandem_kernel* table, Keeper& keeper);
[[nodiscard]] const tandem_backend* accept(const tandem_backend* table, Keeper& keeper);
[[nodiscard]] const tandem_dataset_type* accept(const tandem_dataset_type* table, Keeper& keeper);
[[nodiscard]] const tandem_transport* accept(const tandem_transport* table, Keeper& keeper);

}  // namespace tandem
