// Joins consecutive copies to fewer copies of rows at even distances. The same bytes go to the same
// addresses.
#pragma once

#include <vector>

#include "plugins/abi.h"

namespace tandem {

// A copy of that many bytes, as a single row.
[[nodiscard]] tandem_rows one_row(int target_device, void* target, int source_device,
                                  const void* source, int64_t bytes);

// A copy joins the one before it if both have the same devices and bytes per row, and its addresses
// continue at the same distances. Rows that touch at both source and target become one row.
[[nodiscard]] std::vector<tandem_rows> joined_rows(const std::vector<tandem_rows>& copies);

}  // namespace tandem
