// Data of other programs that no data set reads: databases, archives and tables of samples.
#pragma once

#include <string>

namespace tandem {

// What the file or folder is and how to convert it, as the end of a message: "it is an HDF5 file:
// ..."; "" if it is none of them.
[[nodiscard]] std::string foreign_data(const std::string& path);

}  // namespace tandem
