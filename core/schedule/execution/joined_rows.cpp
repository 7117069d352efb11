#include "core/schedule/execution/joined_rows.h"

namespace tandem {
namespace {

int64_t distance(const void* from, const void* to) {
  return static_cast<int64_t>(reinterpret_cast<intptr_t>(to) - reinterpret_cast<intptr_t>(from));
}

// Adds `copy`, of one row, to `rows` if it is their next row.
bool joins(const tandem_rows& copy, tandem_rows& rows) {
  if (copy.target_device != rows.target_device || copy.source_device != rows.source_device ||
      copy.row_bytes != rows.row_bytes) {
    return false;
  }
  const int64_t target = distance(rows.target, copy.target),
                source = distance(rows.source, copy.source);
  if (rows.row_count == 1) {
    // Copies that overlap must stay in their order.
    if (target < rows.row_bytes || source < rows.row_bytes) return false;
    rows.target_stride = target;
    rows.source_stride = source;
  } else if (target != rows.row_count * rows.target_stride ||
             source != rows.row_count * rows.source_stride) {
    return false;
  }
  ++rows.row_count;
  return true;
}

}  // namespace

tandem_rows one_row(int target_device, void* target, int source_device, const void* source,
                    int64_t bytes) {
  return {
      sizeof(tandem_rows), target_device, source_device, target, source, bytes, bytes, bytes, 1};
}

std::vector<tandem_rows> joined_rows(const std::vector<tandem_rows>& copies) {
  std::vector<tandem_rows> result;
  for (const tandem_rows& copy : copies) {
    if (result.empty() || !joins(copy, result.back())) result.push_back(copy);
  }
  for (tandem_rows& rows : result) {
    if (rows.target_stride != rows.row_bytes || rows.source_stride != rows.row_bytes) continue;
    rows = one_row(rows.target_device, rows.target, rows.source_device, rows.source,
                   rows.row_count * rows.row_bytes);
  }
  return result;
}

}  // namespace tandem
