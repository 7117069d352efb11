// A net's weights as one file.
#pragma once

#include <filesystem>
#include <vector>

#include "core/model/net/net.h"

namespace tandem {

// Writes the format of the file's ending, .caffemodel or .safetensors. Throws Error for another
// ending, for a file that exists, and if it cannot be written.
void write_weights(const std::filesystem::path& path, const Net& net,
                   const std::vector<float>& values);

}  // namespace tandem
