// Files of weights that no reader here takes, told by their first bytes or the end of their name.
#pragma once

#include <filesystem>
#include <string>

namespace tandem {

// What the file is and how to convert it, as the end of a message: "it is an HDF5 file, ...: ...";
// "" if it is none of the known ones, or cannot be read.
[[nodiscard]] std::string foreign_weights(const std::filesystem::path& path);

}  // namespace tandem
