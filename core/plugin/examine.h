// Whether a file is a shared library for this machine whose tables lie where they say, so that the
// dynamic loader, which checks little, can map it. Only its tables are read.
#pragma once

#include <filesystem>
#include <string>

namespace tandem {

// What is wrong with the file, and the fix; "": nothing. Throws Error where it cannot be read.
[[nodiscard]] std::string why_not_mappable(const std::filesystem::path& module);

}  // namespace tandem
