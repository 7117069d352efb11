// One module file: opening it and calling its entry, before anything in it is registered. Every
// failure is an Error with the reason and the fix, without the path, which is in the report.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "plugins/abi.h"

namespace tandem {

struct ModuleReport {
  std::filesystem::path path;
  std::string name, version;             // empty if it did not load
  int32_t abi_major = 0, abi_minor = 0;  // the ABI it was built for; 0.0: not known
  bool loaded = false;
  bool built_in = false;     // in a folder of Tandem's own plugins
  bool shadowed = false;     // ignored: an earlier folder has a module of the same file name
  bool has_threads = false;  // began threads as it was loaded
  std::string reason;        // why it is not loaded, and the fix
  // The versions of the parts that it offers: "layers 2.0", "data sets 2.1".
  std::vector<std::string> parts;
  // Of a module that is loaded: what is not, since it needs another version of Tandem, and why.
  std::vector<std::string> left_out;
  // "layer Convolution", "kernel Convolution/cpu", "backend cpu", ...
  std::vector<std::string> offers;
};

// Calls a plugin's entry and fills the report's name, version and ABI. Returns its table, as
// open_module() does. `default_name`: the name of a plugin that has none in its table.
[[nodiscard]] const tandem_plugin* open_plugin(tandem_plugin_entry_function entry,
                                               const std::string& default_name,
                                               ModuleReport& report);

// Opens the module, calls its entry and fills the report's name, version and ABI. Returns the
// plugin's own table, of which only struct_size bytes may be read. It is valid until the process
// ends.
[[nodiscard]] const tandem_plugin* open_module(const std::filesystem::path& path,
                                               ModuleReport& report);

// The dynamic loader's message in words for the user, with the fix.
[[nodiscard]] std::string explain_loader_message(const std::filesystem::path& path,
                                                 const std::string& message);

}  // namespace tandem
