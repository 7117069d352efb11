// Modules that load, and the reasons why others do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/plugin/registry.h"
#include "tests/plugin/test_plugins.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::plugin;
using test::TempFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

ModuleReport report_of(const std::filesystem::path& path) {
  Registry registry;
  return registry.load(path);
}

std::string reason_of(const std::string& name) {
  const ModuleReport report = report_of(plugin(name));
  EXPECT_FALSE(report.loaded);
  EXPECT_EQ(report.path, plugin(name));
  return report.reason;
}

TEST(Module, InPlainCLoadsAndIsListed) {
  Registry registry;
  const ModuleReport report = registry.load(plugin("good"));
  EXPECT_TRUE(report.loaded) << report.reason;
  EXPECT_EQ(report.name, "good");
  EXPECT_EQ(report.version, "1.2.3");
  EXPECT_EQ(report.abi_major, TANDEM_ABI_MAJOR);
  EXPECT_THAT(report.offers, ElementsAre("layer test.Good", "kernel test.Good/cpu"));
  EXPECT_STREQ(registry.layer_type("test.Good").name, "test.Good");
  EXPECT_STREQ(registry.kernel("test.Good", "cpu").layer_type, "test.Good");
}

TEST(Module, OfANewerMinorWithLargerTablesLoads) {
  Registry registry;
  const ModuleReport report = registry.load(plugin("newer_minor"));
  EXPECT_TRUE(report.loaded) << report.reason;
  EXPECT_EQ(report.abi_minor, TANDEM_ABI_MINOR + 7);
  const tandem_layer_type& type = registry.layer_type("test.Newer");
  ASSERT_EQ(type.parameter_count, 1u);
  EXPECT_STREQ(type.parameters[0]->name, "slope");
  EXPECT_STREQ(type.parameters[0]->help, "how steep");
  ASSERT_EQ(type.input_count, 1u);
  EXPECT_EQ(type.inputs[0]->role, TANDEM_INPUT_NON_DIFFERENTIABLE);
  EXPECT_NE(registry.kernel("test.Newer", "cpu").forward, nullptr);
}

TEST(Module, OfAnotherMajorIsRefusedWithBothVersionsAndTheFix) {
  EXPECT_THAT(reason_of("wrong_major"),
              AllOf(HasSubstr(fmt::format("built for plugin ABI 100.4, and this Tandem has 2.{}",
                                          TANDEM_ABI_MINOR)),
                    HasSubstr("rebuild it"), HasSubstr("use a Tandem with ABI 100")));
}

TEST(Module, OfMajor1IsToldToRebuildInOneLine) {
  EXPECT_EQ(
      reason_of("major_1"),
      fmt::format("it was built for plugin ABI 1.7, and this Tandem has 2.{}: rebuild it with "
                  "the plugins/abi.h of this Tandem, or use a Tandem with ABI 1",
                  TANDEM_ABI_MINOR));
}

TEST(Module, WithLayersOfAnotherMajorVersionIsRefused) {
  EXPECT_EQ(reason_of("other_layers"),
            "its layers were built for version 3.1 of plugins/abi.h, and this Tandem has 2.0 of "
            "them: rebuild it with the plugins/abi.h of this Tandem");
}

TEST(Module, WithAnInputOfAnUnknownRoleIsRefused) {
  EXPECT_EQ(reason_of("unknown_role"),
            "layer type 'test.Unknown': input 'data' has role 9, which version 2.0 of the layer "
            "tables does not know; use a newer Tandem");
}

TEST(Module, WithAnUndefinedSymbolIsRefusedNamingTheSymbol) {
  EXPECT_THAT(reason_of("missing_symbol"), AllOf(HasSubstr("symbol 'a_function_nobody_defines'"),
                                                 HasSubstr("LIBRARIES in tandem_add_plugin")));
}

TEST(Module, WhoseLibraryIsNotFoundIsRefusedNamingTheLibrary) {
  EXPECT_THAT(reason_of("missing_library"),
              AllOf(HasSubstr("needs the library 'libtandem_test_absent.so', which is not found"),
                    HasSubstr("LD_LIBRARY_PATH")));
}

TEST(Module, WithoutTheEntryIsNotAPlugin) {
  EXPECT_THAT(reason_of("no_entry"),
              AllOf(HasSubstr("no symbol 'tandem_plugin_entry'"), HasSubstr("TANDEM_EXPORT")));
}

TEST(Module, ThatIsATextIsNotASharedLibrary) {
  const TempFolder folder;
  for (const char* text : {"", "not a library\n",
                           "a text that is long enough to be an ELF header, "
                           "but which begins with none of its bytes\n"}) {
    const ModuleReport report = report_of(folder.write("text.so", text));
    EXPECT_FALSE(report.loaded);
    EXPECT_THAT(report.reason, HasSubstr("it is not a shared library ("));
  }
}

TEST(Module, ThatDoesNotExistIsReportedAsMissing) {
  EXPECT_EQ(report_of("/nowhere/x.so").reason, "there is no such file");
}

TEST(Module, ThatRefusesThisMachineIsQuoted) {
  EXPECT_EQ(reason_of("refuses"),
            "it cannot work on this machine: it needs an abacus with 12 rods, and found none");
}

TEST(Module, ThatThrowsOutOfItsEntryDoesNotEndTheProgram) {
  EXPECT_THAT(reason_of("throws"), HasSubstr("threw an exception"));
}

TEST(Module, WhoseLayerTypeLacksAFunctionIsRefusedNamingIt) {
  EXPECT_THAT(reason_of("missing_field"), HasSubstr("layer type 'test.Shapeless' has no 'shapes'"));
}

TEST(Module, WithADefaultOutsideItsRangeIsRefused) {
  EXPECT_EQ(reason_of("bad_default"),
            "layer type 'test.Defaulted' (default value): stride is '0', but must be from 1 to 9");
}

}  // namespace
}  // namespace tandem
