// The plugins that the running program adds to those that are found in folders. Not to be changed
// while another thread makes a Registry.
#pragma once

#include <filesystem>
#include <vector>

#include "plugins/abi.h"

namespace tandem {

struct ProgramPlugins {
  std::vector<std::filesystem::path> folders;  // searched before the others
  std::vector<tandem_plugin_entry_function> entries;
};

// Of this process; every Registry::with_defaults() has them.
[[nodiscard]] ProgramPlugins& program_plugins();

}  // namespace tandem
