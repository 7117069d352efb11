// What the loaded plugins offer, by name. A module that fails to load is a report with its path and
// reason, and an error only when what it holds is asked for; two modules that register one name are
// an error that names both. Modules are never unloaded.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "plugins/abi.h"

namespace tandem {

struct ModuleReport {
  std::filesystem::path path;
  std::string name, version;  // empty if it did not load
  bool loaded = false;
  std::string reason;  // why not, and the fix
  std::vector<std::string>
      offers;  // "layer Convolution", "kernel Convolution/cpu", "backend cpu", ...
};

class Registry {
 public:
  // Folders scanned by default: TANDEM_PLUGIN_PATH (colon-separated), then <program's or library's
  // folder>/../lib/tandem/plugins and <library's folder>/tandem/plugins.
  [[nodiscard]] static std::vector<std::filesystem::path> default_folders();

  // Reads the default folders. Data sets are loaded when first asked for (a file named
  // tandem_dataset_NAME.so holds data set NAME), everything else now.
  [[nodiscard]] static Registry with_defaults();

  // Loads every *.so of a folder, in order of file name; a missing folder is no error.
  // `load_data_sets` false puts off files named tandem_dataset_*.so.
  void scan(const std::filesystem::path& folder, bool load_data_sets = false);
  // Loads one module; a failure becomes a report (and is returned).
  const ModuleReport& load(const std::filesystem::path& path);
  // Loads what was put off (`tandem plugins` shows everything).
  void load_all();

  // Each throws Error for an unknown name, with near names and the modules that failed to load.
  [[nodiscard]] const tandem_layer_type& layer_type(const std::string& name) const;
  [[nodiscard]] const tandem_kernel& kernel(const std::string& layer_type,
                                            const std::string& device_kind) const;
  [[nodiscard]] const tandem_backend& backend(const std::string& kind) const;
  [[nodiscard]] const tandem_dataset_type& dataset(const std::string& name);

  [[nodiscard]] const tandem_layer_type* find_layer_type(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> layer_types() const;
  [[nodiscard]] std::vector<std::string> backends() const;
  [[nodiscard]] std::vector<std::string> datasets() const;  // loaded and put off
  [[nodiscard]] const std::vector<ModuleReport>& modules() const { return modules_; }

 private:
  friend class ModuleLoader;
  template <class T>
  struct Entry {
    const T* item;
    size_t module;
  };
  std::vector<ModuleReport> modules_;
  std::map<std::string, Entry<tandem_layer_type>> layer_types_;
  std::map<std::pair<std::string, std::string>, Entry<tandem_kernel>> kernels_;
  std::map<std::string, Entry<tandem_backend>> backends_;
  std::map<std::string, Entry<tandem_dataset_type>> datasets_;
  std::map<std::string, std::filesystem::path> put_off_;  // data set name -> module
};

// The table handed to every plugin, and the reason the last failing call on this thread gave ("" if
// none; taking it clears it).
[[nodiscard]] const tandem_host& host_table();
[[nodiscard]] std::string take_reason();

// Throws Error("<what>: <reason>") unless status is TANDEM_OK.
void check(tandem_status status, const std::string& what);

}  // namespace tandem
