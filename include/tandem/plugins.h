// Plugins: layers, backends and data sets, which plugins/sdk.h writes. They are found in the
// folders of TANDEM_PLUGIN_PATH and of the installation; a program may add folders, and plugins
// that are part of itself.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

struct tandem_plugin;
struct tandem_host;

namespace tandem {

// What became of a plugin that was found.
struct PluginReport {
  std::filesystem::path path;  // "": part of the program
  std::string name, version;   // "" if it did not load
  bool loaded = false;
  std::string reason;               // why it did not load, and the fix
  std::vector<std::string> offers;  // "layer Convolution", "kernel Convolution/cpu", ...
};

// All that follows in this process searches the folder, before the others.
void add_plugin_folder(const std::filesystem::path& folder);
// All that follows in this process knows what the plugin offers. `entry` is its
// tandem_plugin_entry, linked into the program. Throws Error if the plugin cannot be used.
void register_plugin(const tandem_plugin* (*entry)(const tandem_host*));
// Loads every plugin that is found.
[[nodiscard]] std::vector<PluginReport> plugins();

}  // namespace tandem
