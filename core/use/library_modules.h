// Modules that wrap one library each for a single purpose, in lib/tandem/KIND: they are loaded only
// when they are needed, and a library that is missing costs nothing else. As of plugins, none that
// every user of the machine may write to is loaded.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tandem {

struct LibraryModules {
  // What the modules' entries return, whose first member is its size as uint32_t. Valid until the
  // process ends.
  std::vector<const void*> tables;
  std::vector<std::string> failures;  // "PATH: why" of modules that do not load
};

// `entry`: the exported function, without parameters. `size`: of the table in this program.
[[nodiscard]] LibraryModules find_library_modules(const std::string& kind, const char* entry,
                                                  size_t size);

}  // namespace tandem
