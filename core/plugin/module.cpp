#include "core/plugin/module.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <regex>

#include "core/base/files/files.h"
#include "core/base/running_note.h"
#include "core/plugin/host.h"
#include "core/plugin/tables.h"
#include "plugins/path_status.h"

namespace tandem {

namespace {

std::string readable_symbol(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : symbol;
}

void* open_library(const std::filesystem::path& path) {
  const PathStatus status(path.string());
  if (status.failure() == 0 && !status.is_file()) throw Error("there is no such file");
  if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  const char* message = dlerror();
  throw Error(explain_loader_message(path, message == nullptr ? "" : message));
}

tandem_plugin_entry_function entry_of(void* library) {
  void* symbol = dlsym(library, TANDEM_ENTRY_SYMBOL);
  if (symbol == nullptr) {
    throw error(
        "it has no symbol '{}', so it is not a Tandem plugin, or its entry is hidden; define it as "
        "extern \"C\" TANDEM_EXPORT, or take the file out of the plugin folder",
        TANDEM_ENTRY_SYMBOL);
  }
  return reinterpret_cast<tandem_plugin_entry_function>(symbol);
}

const tandem_plugin* call_entry(tandem_plugin_entry_function entry) {
  (void)take_reason();
  const tandem_plugin* plugin = nullptr;
  try {
    plugin = entry(&host_table());
  } catch (...) {  // only a broken plugin throws; it must not end the program
    throw error("its {} threw an exception; nothing may be thrown across the ABI",
                TANDEM_ENTRY_SYMBOL);
  }
  if (plugin != nullptr) return plugin;
  const std::string reason = take_reason();
  throw error("it cannot work on this machine: {}", reason.empty() ? "it gave no reason" : reason);
}

}  // namespace

const tandem_plugin* open_plugin(tandem_plugin_entry_function entry,
                                 const std::string& default_name, ModuleReport& report) {
  const tandem_plugin* plugin = call_entry(entry);
  // These two fields never move. Of another major version no other field may be read.
  report.abi_major = plugin->abi_major;
  report.abi_minor = plugin->abi_minor;
  if (plugin->abi_major != TANDEM_ABI_MAJOR) {
    throw error(
        "it was built for plugin ABI {}.{}, and this Tandem has {}.{}: rebuild it with the "
        "plugins/abi.h of this Tandem, or use a Tandem with ABI {}",
        plugin->abi_major, plugin->abi_minor, TANDEM_ABI_MAJOR, TANDEM_ABI_MINOR,
        plugin->abi_major);
  }
  if (plugin->abi_minor < 0) {
    throw error("it says that it was built for plugin ABI {}.{}: the least minor version is 0",
                plugin->abi_major, plugin->abi_minor);
  }
  require_size(*plugin, "its tandem_plugin");
  const tandem_plugin known = covered_part(*plugin);
  report.name = known.name == nullptr ? default_name : known.name;
  report.version = known.version == nullptr ? "" : known.version;
  return plugin;
}

const tandem_plugin* open_module(const std::filesystem::path& path, ModuleReport& report) {
  const std::string file = path.string();
  const RunningNote note("loading", file.c_str());
  const auto threads = [] {
    std::error_code ignored;
    return entries_of("/proc/self/task", ignored).size();
  };
  const size_t before = threads();
  const tandem_plugin* plugin =
      open_plugin(entry_of(open_library(path)), path.stem().string(), report);
  report.has_threads = threads() > before;
  return plugin;
}

std::string explain_loader_message(const std::filesystem::path& path, const std::string& message) {
  std::string text = message;
  const std::string prefix = path.string() + ": ";
  if (text.starts_with(prefix)) text.erase(0, prefix.size());
  std::smatch match;
  if (std::regex_search(text, match, std::regex(R"(undefined symbol: ([^\s,]+))"))) {
    return fmt::format(
        "it needs the symbol '{}', which no library it links defines: name that library under "
        "LIBRARIES in tandem_add_plugin (which finds this when building) and rebuild it",
        readable_symbol(match[1]));
  }
  if (std::regex_search(text, match,
                        std::regex(R"(^(\S+): cannot open shared object file: No such file)"))) {
    return fmt::format(
        "it needs the library '{}', which is not found: install it, or add its folder to "
        "LD_LIBRARY_PATH",
        match[1].str());
  }
  if (std::regex_search(text, std::regex(R"(version `[^']+' not found)"))) {
    return fmt::format("it was built on a newer system ({}): rebuild it on this one", text);
  }
  if (std::regex_search(text, std::regex("invalid ELF header|file too short|ET_DYN|ELF file"))) {
    return fmt::format(
        "it is not a shared library ({}): build it with tandem_add_plugin, or take the file out "
        "of the plugin folder",
        text);
  }
  return fmt::format("it cannot be loaded: {}", text.empty() ? "no reason was given" : text);
}

}  // namespace tandem
