// Copies one after the other as fewer copies of rows at even distances. Pure: the same bytes go to
// the same places.
#pragma once

#include <vector>

#include "plugins/abi.h"

namespace tandem {

// A copy of so many bytes, as the only row of its kind.
[[nodiscard]] tandem_rows one_row(int target_device, void* target, int source_device,
                                  const void* source, int64_t bytes);

// Each copy joins the one before it where both have the same devices, as many bytes a row, and
// addresses that go on as they have begun; rows that touch on both sides become one.
[[nodiscard]] std::vector<tandem_rows> joined_rows(const std::vector<tandem_rows>& copies);

}  // namespace tandem
