// The weight files of other programs, told by their content: safetensors, alone or in shards, and
// state dicts of PyTorch.
#pragma once

#include <filesystem>
#include <memory>

#include "core/formats/arrays.h"

namespace tandem {

// A reader for the file, by its content; null for a file of another format. Names of arrays that
// all begin with "module." (DataParallel) or "_orig_mod." (torch.compile) are without it. Error for
// a file that is missing, truncated or damaged.
[[nodiscard]] std::unique_ptr<ArrayReader> open_arrays(const std::filesystem::path& path);

}  // namespace tandem
