// The first load of a module, in a child process: one that crashes or hangs when it is loaded ends
// the child, and not the program. A module that was loaded once is remembered by the hash of its
// bytes, in the user's cache folder (XDG_CACHE_HOME or ~/.cache), and is not tried again.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace tandem {

// What is known of the bytes of a module, with this version of Tandem: that it was loaded (""), or
// another fact. Throws Error if the module cannot be read.
class ModuleMark {
 public:
  ModuleMark(const std::filesystem::path& module, const std::string& what);
  [[nodiscard]] bool is_set() const;
  void set() const;  // without a cache folder it has no effect

 private:
  std::filesystem::path folder_;
  std::string name_;
};

// Calls load() in a child process, unless the module is remembered. Returns how the child ended, if
// a signal ended it or it called exit(); else "", also where no child can be made.
[[nodiscard]] std::string why_it_ends_a_process(const std::filesystem::path& module,
                                                const std::function<void()>& load);

}  // namespace tandem
