// The folders in which programs look for plugins and models.
#pragma once

#include <filesystem>
#include <vector>

namespace tandem {

// The folder of this program, and of the file that holds core: libtandem, or the program
// itself. Empty if the system does not tell.
[[nodiscard]] std::filesystem::path program_folder();
[[nodiscard]] std::filesystem::path library_folder();
// The folders that an environment variable lists, separated by colons.
[[nodiscard]] std::vector<std::filesystem::path> listed_folders(const char* variable);

}  // namespace tandem
