// The layer types, kernels, backends, data sets and transports of the loaded plugins, by name. A
// module that fails to load becomes a report with its path and reason, and an Error only when its
// content is requested. Two modules that register one name are an Error that names both. Modules
// are never unloaded.
//
// Modules whose file name tells their content are deferred, that is loaded when it is first
// requested, so that a program needs no library that it does not use:
//   tandem_dataset_NAME.so       data set NAME
//   tandem_backend_KIND.so       the backend of devices KIND
//   tandem_kernels_KIND_*.so     kernels of layers on devices KIND
//   tandem_transport_NAME.so     the transport NAME
//   tandem_messages_KIND.so      the transport between devices KIND of two ranks
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/plugin/kinds.h"
#include "core/plugin/module.h"
#include "plugins/abi.h"

namespace tandem {

// The plugins that the running program adds to those that are found in folders. Every
// Registry::with_defaults() has them. Not to be changed while another thread makes a Registry.
struct ProgramPlugins {
  std::vector<std::filesystem::path> folders;  // searched before the others
  std::vector<tandem_plugin_entry_function> entries;
  // Gets a line where a module that Tandem ships is missing or does not load; null: nobody does.
  void (*warn)(const std::string&) = nullptr;
};
[[nodiscard]] ProgramPlugins& program_plugins();

class Registry {
 public:
  // Folders scanned by default: those that the program has added, TANDEM_PLUGIN_PATH
  // (colon-separated), then <program's or library's folder>/../lib/tandem/plugins and <library's
  // folder>/tandem/plugins.
  [[nodiscard]] static std::vector<std::filesystem::path> default_folders();
  // The last of them: those of Tandem's own plugins.
  [[nodiscard]] static std::vector<std::filesystem::path> own_folders();

  // Loads the program's own plugins (program_plugins()) and scans the default folders. A folder of
  // TANDEM_PLUGIN_PATH that does not exist is reported like a module that does not load, and so is
  // a module of Tandem's own that is missing.
  [[nodiscard]] static Registry with_defaults();

  // Loads every *.so of a folder that is not deferred, in order of file name; a missing folder is
  // no error. A file already known is ignored; one with the name of a file in an earlier folder is
  // reported as shadowed. No file is loaded that others may have put there (trust.h), or whose
  // tables are damaged (examine.h); one that is not Tandem's own loads in a child process first
  // (trial.h).
  void scan(const std::filesystem::path& folder);
  // Loads one module. The report, also of a failure, is valid until the next load.
  const ModuleReport& load(const std::filesystem::path& path);
  // Loads a plugin that is linked into the program; its report has no path.
  const ModuleReport& load(tandem_plugin_entry_function entry);
  // Loads all deferred modules (`tandem plugins` shows everything), or those of kernels.
  void load_all();
  void load_kernels();

  // Each throws Error for an unknown name, with near names and the modules that failed to load, and
  // for a name that two modules register, naming both. Each may load a deferred module, so two
  // threads must not call them at the same time.
  [[nodiscard]] const tandem_layer_type& layer_type(const std::string& name) const;
  [[nodiscard]] const tandem_kernel& kernel(const std::string& layer_type,
                                            const std::string& device_kind) const;
  [[nodiscard]] const tandem_backend& backend(const std::string& kind) const;
  [[nodiscard]] const tandem_dataset_type& dataset(const std::string& name);
  [[nodiscard]] const tandem_transport& transport(const std::string& name) const;
  [[nodiscard]] const tandem_device_transport& device_transport(const std::string& kind) const;

  // The module that offers the kernel, or the data set; null if none is loaded.
  [[nodiscard]] const ModuleReport* module_of_kernel(const std::string& layer_type,
                                                     const std::string& device_kind) const;
  [[nodiscard]] const ModuleReport* module_of_dataset(const std::string& name) const;
  // Null if it is unknown; throws Error only for a name that two modules register, or that needs a
  // newer Tandem.
  [[nodiscard]] const tandem_layer_type* find_layer_type(const std::string& name) const;
  [[nodiscard]] const tandem_kernel* find_kernel(const std::string& layer_type,
                                                 const std::string& device_kind) const;
  [[nodiscard]] std::vector<std::string> layer_types() const;
  // Loaded, deferred, and those whose module did not load.
  [[nodiscard]] std::vector<std::string> backends() const;
  // The backends that load and of which that is true (computes_tf32, ...).
  [[nodiscard]] std::vector<std::string> backends_with(
      const std::function<bool(const tandem_backend&)>& capability) const;
  [[nodiscard]] std::vector<std::string> datasets() const;           // loaded and deferred
  [[nodiscard]] std::vector<std::string> transports() const;         // loaded and deferred
  [[nodiscard]] std::vector<std::string> device_transports() const;  // as backends()
  [[nodiscard]] const std::vector<ModuleReport>& modules() const { return modules_; }

 private:
  template <class T>
  struct Entry {
    const T* item;
    size_t module;
  };
  template <class T, class Name = std::string>
  using Entries = std::map<Name, Entry<T>>;

  const ModuleReport& load_module(const std::filesystem::path& path, bool is_own) const;
  // Why a module must not be loaded into this process; "": it may.
  [[nodiscard]] static std::string why_not_safe(const std::filesystem::path& path, bool is_own);
  void report_missing();
  const ModuleReport& add(ModuleReport report,
                          const std::function<const tandem_plugin*(ModuleReport&)>& open) const;
  void register_tables(const tandem_plugin& plugin, ModuleReport& report) const;
  void report_unloaded(const std::filesystem::path& path, const std::string& reason,
                       bool shadowed = false, bool is_own = false);
  // Load deferred modules whose file name, without ".so", is `stem`, or begins with `prefix`.
  void load_deferred(const std::string& stem) const;
  void load_deferred_with(const std::string& prefix) const;
  // The table of that name, after loading its deferred module.
  template <class T>
  const T& find_deferred(const Entries<T>& entries, const std::string& name) const;
  // Of what is loaded, and of the modules that are loaded when one asks for them. Each once.
  template <class T>
  std::vector<std::string> names_of(const Entries<T>& entries) const;
  // Throws if two modules register `what` ("layer type 'ReLU'"), or if its module was loaded
  // without it.
  void refuse(const std::string& what) const;
  // "; not loaded: <path>: <reason>; ..." or "".
  [[nodiscard]] std::string failures() const;

  // Mutable: loading a deferred module does not change what the registry offers.
  mutable std::vector<ModuleReport> modules_;
  mutable Entries<tandem_layer_type> layer_types_;
  mutable Entries<tandem_kernel, kinds::KernelName> kernels_;
  mutable Entries<tandem_backend> backends_;
  mutable Entries<tandem_dataset_type> datasets_;
  mutable Entries<tandem_transport> transports_;
  mutable Entries<tandem_device_transport> device_transports_;
  mutable std::map<std::string, std::filesystem::path> deferred_;  // by file name without ".so"
  mutable std::map<std::string, std::string> refusals_;            // title -> why nobody gets it
  mutable std::vector<std::shared_ptr<const void>> widened_;  // our copies of older, smaller tables
};

// The kinds of devices for which modules that are loaded (Registry::load_kernels) have kernels of a
// layer type, in the order of the modules, each once.
[[nodiscard]] std::vector<std::string> kinds_with_kernel(const Registry& registry,
                                                         const std::string& layer_type);

}  // namespace tandem
