// A net's weights as one file, and what a file may be that is written in place of another.
#pragma once

#include <filesystem>
#include <vector>

#include "core/model/net/net.h"

namespace tandem {

// Error for a file that is there, unless it is one that may be overwritten: a regular file, and in
// the folder of a run a model (.onnx, .caffemodel).
void require_target(const std::filesystem::path& file, bool overwrites);

// Writes the format of the file's ending, .caffemodel or .safetensors. Throws Error for another
// ending, for a file that exists, and if it cannot be written.
void write_weights(const std::filesystem::path& path, const Net& net,
                   const std::vector<float>& values);

}  // namespace tandem
