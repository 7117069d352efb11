// A stranger's layer from its source to a trained net: built out of tree against the installed
// package, found by TANDEM_PLUGIN_PATH, used with a parameter block of its own.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/cli/program.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;

std::string in_quotes(const std::filesystem::path& path) {
  return fmt::format("'{}'", path.string());
}

void run_to_log(const Desk& desk, const std::string& command) {
  const std::filesystem::path log = desk / "log.txt";
  ASSERT_EQ(std::system((command + " > " + in_quotes(log) + " 2>&1").c_str()), 0)
      << command << "\n"
      << desk.read("log.txt");
}

TEST(CustomLayer, IsBuiltOutOfTheTreeAndTrains) {
  const Desk desk;
  const std::string cmake = in_quotes(TANDEM_CMAKE);
  std::filesystem::copy(test::source_folder() / "examples/custom_layer", desk / "acme",
                        std::filesystem::copy_options::recursive);
  run_to_log(desk, cmake + " --install " + in_quotes(test::build_folder().string()) +
                       " --component sdk --prefix " + in_quotes(desk / "package"));
  run_to_log(desk, cmake + " -S " + in_quotes(desk / "acme") + " -B " + in_quotes(desk / "build") +
                       " -DCMAKE_PREFIX_PATH=" + in_quotes(desk / "package") +
                       " -DCMAKE_CXX_COMPILER=" + in_quotes(TANDEM_CXX_COMPILER));
  run_to_log(desk, cmake + " --build " + in_quotes(desk / "build"));

  const std::string train =
      "train --net acme/swish_net.prototxt --data synthetic --devices cpu:2 --steps 20 --lr 0.01 "
      "--out run";
  EXPECT_THAT(desk.refusal(train), HasSubstr("unknown layer type 'acme.Swish'"));
  const std::string with_plugin = "TANDEM_PLUGIN_PATH=build";
  const Outcome trained = desk.tandem(train, with_plugin);
  EXPECT_EQ(trained.code, 0) << trained.errors;
  EXPECT_THAT(trained.output, HasSubstr("step 20/20"));
  EXPECT_THAT(desk.tandem("layers acme.Swish", with_plugin).output,
              AllOf(HasSubstr("acme_swish_param.beta"), HasSubstr("steepness")));

  desk.write("steep.prototxt",
             test::replaced(desk.read("acme/swish_net.prototxt"), "beta: 1.0", "beta: -1"));
  EXPECT_THAT(desk.refusal("train --net steep.prototxt --data synthetic --out other", with_plugin),
              AllOf(HasSubstr("layer 'swish1' (acme.Swish)"), HasSubstr("beta"),
                    HasSubstr("from 0 to 100"), HasSubstr("steep.prototxt:")));
}

}  // namespace
}  // namespace tandem
