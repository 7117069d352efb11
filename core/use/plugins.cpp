#include "include/tandem/plugins.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <limits>

#include "core/base/text/strings.h"
#include "core/plugin/registry.h"

namespace tandem {

void add_plugin_folder(const std::filesystem::path& folder) {
  program_plugins().folders.push_back(folder);
}

void register_plugin(const tandem_plugin* (*entry)(const tandem_host*)) {
  Registry registry;
  const ModuleReport& report = registry.load(entry);
  if (!report.loaded) throw error("the program's plugin cannot be used: {}", report.reason);
  program_plugins().entries.push_back(entry);
}

void report_missing_modules(void (*warn)(const std::string&)) {
  program_plugins().warn = warn;
}

std::vector<PluginReport> plugins() {
  Registry registry = Registry::with_defaults();
  registry.load_all();
  std::vector<PluginReport> reports;
  for (const ModuleReport& module : registry.modules()) {
    reports.push_back(
        {module.path, module.name, module.version, module.loaded, module.reason, module.offers});
  }
  return reports;
}

std::string drop_bad_thread_count() {
  constexpr const char* name = "OMP_NUM_THREADS";
  const char* value = std::getenv(name);
  if (value == nullptr) return "";
  if (*value == '\0') {  // as if it were not set
    ::unsetenv(name);
    return "";
  }
  bool is_good = true;
  for (const std::string& item : split(value, ',')) {  // one for each level of nested teams
    int64_t threads = 0;
    const size_t begin = item.find_first_not_of(" \t"), end = item.find_last_not_of(" \t");
    is_good = is_good && begin != std::string::npos &&
              parse_integer(item.substr(begin, end + 1 - begin), &threads) && threads > 0 &&
              threads <= std::numeric_limits<int32_t>::max();
  }
  if (is_good) return "";
  const std::string note = fmt::format(
      "note: {} is '{}', which is no number of threads: it is left out (--threads says how many "
      "cores the cpu devices share)",
      name, value);
  ::unsetenv(name);
  return note;
}

}  // namespace tandem
