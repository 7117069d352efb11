// The folders of the sources, programs and plugins that a test was built with. The paths are in one
// generated source, so that no other object file depends on the location of the tree.
#pragma once

#include <filesystem>

namespace tandem::test {

[[nodiscard]] std::filesystem::path source_folder();  // the root of the source tree
[[nodiscard]] std::filesystem::path build_folder();   // CMAKE_BINARY_DIR
[[nodiscard]] std::filesystem::path plugin_folder();  // the built-in plugins
[[nodiscard]] std::filesystem::path test_plugin_folder();
[[nodiscard]] std::filesystem::path sample_plugin_folder();

}  // namespace tandem::test
