// A plugin that is part of the program: known to everything that follows, and refused if it cannot
// be used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

#include "core/plugin/registry.h"
#include "include/tandem/plugins.h"
#include "plugins/sdk.h"

namespace tandem {
namespace {

using testing::Contains;
using testing::HasSubstr;

struct Twice : sdk::LayerType {
  [[nodiscard]] const char* name() const override { return "test.Twice"; }
  [[nodiscard]] const char* help() const override { return "2 x"; }
};

const tandem_plugin* entry(const tandem_host* host) {
  return sdk::Plugin(host, "program-test", "1.0").layer<Twice>().table();
}

const tandem_plugin* failing_entry(const tandem_host*) {
  return nullptr;
}

// Other tests of this process have plugins, too.
class ProgramPlugin : public testing::Test {
 protected:
  ~ProgramPlugin() override { program_plugins() = before_; }

 private:
  std::decay_t<decltype(program_plugins())> before_ = std::exchange(program_plugins(), {});
};

TEST_F(ProgramPlugin, IsKnownToEveryRegistry) {
  EXPECT_EQ(Registry::with_defaults().find_layer_type("test.Twice"), nullptr);
  register_plugin(entry);
  EXPECT_NE(Registry::with_defaults().find_layer_type("test.Twice"), nullptr);
  EXPECT_THAT(plugins(), Contains(testing::Field(&PluginReport::name, "program-test")));
}

TEST_F(ProgramPlugin, IsRefusedIfItCannotBeUsed) {
  try {
    register_plugin(failing_entry);
    FAIL() << "it was registered";
  } catch (const Error& refused) {
    EXPECT_THAT(refused.what(), HasSubstr("the program's plugin cannot be used: "));
  }
  EXPECT_TRUE(program_plugins().entries.empty());
}

TEST_F(ProgramPlugin, MayLieInAFolderOfTheProgram) {
  add_plugin_folder("/somewhere/of/its/own");
  EXPECT_EQ(Registry::default_folders().front(), "/somewhere/of/its/own");
}

}  // namespace
}  // namespace tandem
