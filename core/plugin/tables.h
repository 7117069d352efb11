// A plugin's tables as this Tandem's structs, whichever minor ABI the plugin was built for: fields
// beyond a table's struct_size read as NULL or zero, and what the ABI demands is there. Larger
// tables of a newer minor are used as they are; their extra fields are never looked at.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "plugins/abi.h"

namespace tandem {

// A copy of the fields that `table` covers, the rest zero.
template <class T>
[[nodiscard]] T covered_part(const T& table) {
  T result{};
  std::memcpy(static_cast<void*>(&result), &table, std::min<size_t>(table.struct_size, sizeof(T)));
  return result;
}

// Where the copies of smaller tables are kept alive.
using Keeper = std::vector<std::shared_ptr<const void>>;

// Each returns the plugin's own table, or a copy held by `keeper`. Each throws Error naming the
// table and the field if something the ABI demands is missing or senseless.
[[nodiscard]] const tandem_layer_type* accept(const tandem_layer_type* table, Keeper& keeper);
[[nodiscard]] const tandem_kernel* accept(const tandem_kernel* table, Keeper& keeper);
[[nodiscard]] const tandem_backend* accept(const tandem_backend* table, Keeper& keeper);
[[nodiscard]] const tandem_dataset_type* accept(const tandem_dataset_type* table, Keeper& keeper);

}  // namespace tandem
