// The column of splits of a list in CSV: by its heading, or because it holds names of splits alone.
#pragma once

#include <string>

#include "datasets/image_folder/csv_columns.h"

namespace tandem::image_folder {

// Whether a column holds names of splits alone, from row `first` on.
[[nodiscard]] bool are_splits(const Rows& rows, size_t first, size_t column);
// The column of splits below a heading.
void find_splits(const Rows& rows, CsvColumns& columns);
// Notes what stands in that column and names no split; sets whether the list has splits.
void read_odd_splits(const Rows& rows, CsvColumns& columns, ListFile& list);
// train, val or test. Refusal for another text.
[[nodiscard]] std::string split_of(const std::string& text, const CsvColumns& columns,
                                   const Line& place);

}  // namespace tandem::image_folder
