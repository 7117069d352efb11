// The small plugins that the tests of this folder load.
#pragma once

#include <filesystem>
#include <string>

#include "tests/support/folders.h"
#include "tests/support/message_of.h"

namespace tandem::test {

// A test plugin's file; see tests/bad_plugins.
[[nodiscard]] inline std::filesystem::path plugin(const std::string& name) {
  return test::test_plugin_folder() / name / (name + ".so");
}

}  // namespace tandem::test
