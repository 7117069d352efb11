// The steps of a layer's author: installs the SDK, builds examples/custom_layer against it out of
// tree, and loads the module.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/plugin/registry.h"
#include "tests/support/folders.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::TempFolder;
using testing::ElementsAre;

// Runs a command and returns its output if it failed, "" otherwise.
std::string failure_of(const std::string& command, const TempFolder& folder) {
  const std::string log = (folder / "log.txt").string();
  if (std::system((command + " >'" + log + "' 2>&1").c_str()) == 0) return "";
  return command + "\n" + test::read_text(log);
}

std::string quoted(const std::filesystem::path& path) {
  return fmt::format("'{}'", path.string());
}

TEST(Package, AStrangersLayerBuildsOutOfTreeAndLoads) {
  const TempFolder folder;
  const std::string cmake = quoted(TANDEM_CMAKE);
  ASSERT_EQ(failure_of(cmake + " --install " + quoted(test::build_folder()) +
                           " --component sdk --prefix " + quoted(folder / "package"),
                       folder),
            "");
  // A copy elsewhere, from which no file of the source tree can be reached.
  std::filesystem::copy(test::source_folder() / "examples/custom_layer", folder / "acme",
                        std::filesystem::copy_options::recursive);
  ASSERT_EQ(
      failure_of(cmake + " -S " + quoted(folder / "acme") + " -B " + quoted(folder / "build") +
                     " -DCMAKE_PREFIX_PATH=" + quoted(folder / "package") +
                     " -DCMAKE_CXX_COMPILER=" + quoted(TANDEM_CXX_COMPILER),
                 folder),
      "");
  ASSERT_EQ(failure_of(cmake + " --build " + quoted(folder / "build"), folder), "");

  Registry registry;
  const ModuleReport report = registry.load(folder / "build/acme_swish.so");
  ASSERT_TRUE(report.loaded) << report.reason;
  EXPECT_EQ(report.name, "acme-swish");
  EXPECT_THAT(report.offers, ElementsAre("layer acme.Swish", "kernel acme.Swish/cpu"));
  EXPECT_STREQ(registry.layer_type("acme.Swish").parameters[0]->block, "acme_swish_param");
}

}  // namespace
}  // namespace tandem
