// Whether the code of a module may run in this program, by who may have put it there.
#pragma once

#include <filesystem>
#include <string>

namespace tandem {

// The path without links; as it is where it cannot be looked up.
[[nodiscard]] std::filesystem::path resolved(const std::filesystem::path& path);

// Whether any user may have put the code there: in the module's folder, in that of the file that it
// links to, or in the file. "": no, or the user trusts them all (TANDEM_TRUST_PLUGINS=1). Else the
// reason and the fix. Every module of a folder is asked for before it is loaded.
[[nodiscard]] std::string why_not_trusted(const std::filesystem::path& module);

}  // namespace tandem
