// Plugins: layers, backends and data sets, written with plugins/sdk.h. They are found in the
// folders of TANDEM_PLUGIN_PATH and of the installation. A program may add folders, and plugins
// that are linked into it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

struct tandem_plugin;
struct tandem_host;

namespace tandem {

// A plugin that was found, and whether it could be loaded.
struct PluginReport {
  std::filesystem::path path;  // "": part of the program
  std::string name, version;   // "" if it did not load
  bool loaded = false;
  std::string reason;               // why it did not load, and the fix
  std::vector<std::string> offers;  // "layer Convolution", "kernel Convolution/cpu", ...
};

// From now on this process searches the folder, before the others.
void add_plugin_folder(const std::filesystem::path& folder);
// From now on this process can use what the plugin offers. `entry` is its tandem_plugin_entry,
// linked into the program. Throws Error if the plugin cannot be used.
void register_plugin(const tandem_plugin* (*entry)(const tandem_host*));
// From now on, where a module that Tandem ships is missing or does not load, `warn` gets a line
// that says so each time that plugins are looked for: results may then differ from those with it.
void report_missing_modules(void (*warn)(const std::string&));
// Loads every plugin that is found.
[[nodiscard]] std::vector<PluginReport> plugins();

// OpenMP's library comes with the cpu plugin. When it is loaded it reads OMP_NUM_THREADS, and
// prints a line of its own about a value that is no number; the cpu devices share
// DeviceOptions::threads cores, whatever it says. Removes such a value. Returns a note for the
// user, else "". To be called once, before a plugin is loaded and before there are other threads.
[[nodiscard]] std::string drop_bad_thread_count();

}  // namespace tandem
