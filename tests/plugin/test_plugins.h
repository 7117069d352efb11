// The small plugins that the tests of this folder load, and what a failing call says.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "core/base/error.h"
#include "tests/support/folders.h"

namespace tandem::test {

// A test plugin's file; see tests/bad_plugins.
[[nodiscard]] inline std::filesystem::path plugin(const std::string& name) {
  return test::test_plugin_folder() / name / (name + ".so");
}

[[nodiscard]] inline std::string failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& failure) {
    return failure.what();
  }
  return "no error";
}

}  // namespace tandem::test
