// Whether the code of a module may run in this program, by who may have put it there.
#pragma once

#include <filesystem>
#include <string>

namespace tandem {

// The path without links; as it is where it cannot be looked up.
[[nodiscard]] std::filesystem::path resolved(const std::filesystem::path& path);

// Whether others than root and the user may have put the code there, by the rule of ssh's
// StrictModes: the file, the file that it links to, their folders and all above belong to root or
// to the user, and no group (but a user's own) and not everybody may write to them. `is_own`: a
// module in Tandem's own folder, of which only the file and that folder are asked. "": no, or the
// user trusts them all (TANDEM_TRUST_PLUGINS=1). Else the reason and the fix. Every module of a
// folder is asked for before it is loaded.
[[nodiscard]] std::string why_not_trusted(const std::filesystem::path& module, bool is_own);

}  // namespace tandem
