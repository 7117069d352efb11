// What the loaded plugins offer, by name. A module that fails to load is a report with its path and
// reason, and an error only when what it holds is asked for; two modules that register one name are
// an error that names both. Modules are never unloaded. What a module's file name tells is loaded
// when it is first asked for, so that a program needs no library that it does not use:
//   tandem_dataset_NAME.so       data set NAME
//   tandem_backend_KIND.so       the backend of devices KIND
//   tandem_kernels_KIND_*.so     kernels of layers on devices KIND
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "plugins/abi.h"

namespace tandem {

struct ModuleReport {
  std::filesystem::path path;
  std::string name, version;             // empty if it did not load
  int32_t abi_major = 0, abi_minor = 0;  // what it was built for; 0.0: it did not come to say
  bool loaded = false;
  bool shadowed = false;  // left out: a module of the same file name lies in an earlier folder
  std::string reason;     // why it is not loaded, and the fix
  std::vector<std::string>
      offers;  // "layer Convolution", "kernel Convolution/cpu", "backend cpu", ...
};

class Registry {
 public:
  // Folders scanned by default: those that the program has added, TANDEM_PLUGIN_PATH
  // (colon-separated), then <program's or library's folder>/../lib/tandem/plugins and <library's
  // folder>/tandem/plugins.
  [[nodiscard]] static std::vector<std::filesystem::path> default_folders();

  // Loads the program's own plugins (program_plugins.h) and scans the default folders.
  [[nodiscard]] static Registry with_defaults();

  // Loads every *.so of a folder, in order of file name, but what is put off; a missing folder is
  // no error. A file met before is passed over; one with the name of a file in an earlier folder is
  // reported as shadowed.
  void scan(const std::filesystem::path& folder);
  // Loads one module; a failure becomes a report (and is returned; valid until the next load).
  const ModuleReport& load(const std::filesystem::path& path);
  // The same of a plugin that is linked into the program; its report has no path.
  const ModuleReport& load(tandem_plugin_entry_function entry);
  // Loads what was put off (`tandem plugins` shows everything), or the kernels among it.
  void load_all();
  void load_kernels();

  // Each throws Error for an unknown name, with near names and the modules that failed to load, and
  // for a name that two modules register, naming both. Not to be called by several threads at once:
  // they may load what was put off.
  [[nodiscard]] const tandem_layer_type& layer_type(const std::string& name) const;
  [[nodiscard]] const tandem_kernel& kernel(const std::string& layer_type,
                                            const std::string& device_kind) const;
  [[nodiscard]] const tandem_backend& backend(const std::string& kind) const;
  [[nodiscard]] const tandem_dataset_type& dataset(const std::string& name);

  // Null if it is unknown; throws Error only for a name that two modules register.
  [[nodiscard]] const tandem_layer_type* find_layer_type(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> layer_types() const;
  // Loaded, put off, and those whose module did not load.
  [[nodiscard]] std::vector<std::string> backends() const;
  // The backends that load and have this capability (TANDEM_COMPUTES_TF32, ...).
  [[nodiscard]] std::vector<std::string> backends_with(uint64_t capability) const;
  [[nodiscard]] std::vector<std::string> datasets() const;  // loaded and put off
  [[nodiscard]] const std::vector<ModuleReport>& modules() const { return modules_; }

 private:
  template <class T>
  struct Entry {
    const T* item;
    size_t module;
  };
  using KernelName = std::pair<std::string, std::string>;  // layer type, device kind

  const ModuleReport& load_module(const std::filesystem::path& path) const;
  const ModuleReport& add(ModuleReport report,
                          const std::function<const tandem_plugin*(ModuleReport&)>& open) const;
  void register_tables(const tandem_plugin& plugin, ModuleReport& report) const;
  // Those whose file name, without ".so", is `name`, or begins with it.
  void load_put_off(const std::string& name) const;
  void load_put_off_beginning(const std::string& prefix) const;
  // Throws if the module of that file name did not load: "<title> is not loaded: <path>: <reason>".
  void refuse_failed(const std::string& file_stem, const std::string& title) const;
  // Throws if two modules register `what` ("layer type 'ReLU'").
  void refuse_conflict(const std::string& what) const;
  // "; not loaded: <path>: <reason>; ..." or "".
  [[nodiscard]] std::string failures() const;

  // Mutable: who asks for what was put off sees no difference to its having been loaded before.
  mutable std::vector<ModuleReport> modules_;
  mutable std::map<std::string, Entry<tandem_layer_type>> layer_types_;
  mutable std::map<KernelName, Entry<tandem_kernel>> kernels_;
  mutable std::map<std::string, Entry<tandem_backend>> backends_;
  mutable std::map<std::string, Entry<tandem_dataset_type>> datasets_;
  mutable std::map<std::string, std::filesystem::path> put_off_;  // by file name without ".so"
  mutable std::map<std::string, std::string> conflicts_;      // what -> the error that names both
  mutable std::vector<std::shared_ptr<const void>> widened_;  // our copies of older, smaller tables
};

// The table handed to every plugin, and the reason the last failing call on this thread gave ("" if
// none; taking it clears it).
[[nodiscard]] const tandem_host& host_table();
[[nodiscard]] std::string take_reason();

// Throws Error("<what>: <reason>") unless status is TANDEM_OK.
void check(tandem_status status, const std::string& what);

}  // namespace tandem
