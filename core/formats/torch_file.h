// Files of torch.save() with a state dict: a zip archive of a pickle and a record for each storage,
// or the old form, pickles followed by the storages. Nothing of Python is executed (pickle.h). The
// weights may lie in a checkpoint, under "state_dict", "model", "ema" and the like.
#pragma once

#include <filesystem>
#include <memory>

#include "core/formats/arrays.h"

namespace tandem {

// Null for a file of another format. Error for TorchScript, whole modules and damage.
[[nodiscard]] std::unique_ptr<ArrayReader> open_torch_file(const std::filesystem::path& path);

}  // namespace tandem
