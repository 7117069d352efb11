// One module as a file: opened and greeted, before anything of it is registered. Whatever goes
// wrong is an Error that says the reason and the fix, without the path (the report has it).
#pragma once

#include <filesystem>
#include <string>

#include "core/plugin/registry.h"
#include "plugins/abi.h"

namespace tandem {

// Calls a plugin's entry and fills the report's name, version and ABI. Returns its table, as
// open_module() does. `default_name`: of a plugin that names itself nothing.
[[nodiscard]] const tandem_plugin* open_plugin(tandem_plugin_entry_function entry,
                                               const std::string& default_name,
                                               ModuleReport& report);

// Opens the module, calls its entry and fills the report's name, version and ABI. Returns the
// plugin's own table, of which only struct_size bytes may be read; it lives as long as the process.
[[nodiscard]] const tandem_plugin* open_module(const std::filesystem::path& path,
                                               ModuleReport& report);

// What the loader's message means for the user, and what to do about it.
[[nodiscard]] std::string explain_loader_message(const std::filesystem::path& path,
                                                 const std::string& message);

}  // namespace tandem
