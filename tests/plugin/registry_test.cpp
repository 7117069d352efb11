#include "core/plugin/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/plugin/test_plugins.h"
#include "tests/support/folders.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::message_of;
using test::plugin;
using test::TempFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Registry, TwoModulesOfOneNameAreAnErrorThatNamesBoth) {
  Registry registry;
  registry.load(plugin("good"));
  const ModuleReport report = registry.load(plugin("taken_name"));
  EXPECT_FALSE(report.loaded);
  EXPECT_THAT(report.reason, AllOf(HasSubstr("layer type 'test.Good' is already registered by " +
                                             plugin("good").string()),
                                   HasSubstr("acme.Swish")));
  EXPECT_THAT(message_of([&] { (void)registry.layer_type("test.Good"); }),
              AllOf(HasSubstr("registered by two plugins"), HasSubstr(plugin("good").string()),
                    HasSubstr(plugin("taken_name").string())));
}

TEST(Registry, RegistersAllOfAModuleOrNothing) {
  Registry registry;
  registry.load(plugin("good"));
  registry.load(plugin("taken_name"));
  EXPECT_EQ(registry.find_layer_type("test.Own"), nullptr);
  EXPECT_TRUE(registry.modules().back().offers.empty());
}

TEST(Registry, AnUnknownLayerTypeIsReportedWithTheNearNameAndFailedModules) {
  Registry registry;
  registry.load(plugin("good"));
  registry.load(plugin("refuses"));
  EXPECT_EQ(registry.find_layer_type("test.Godo"), nullptr);
  EXPECT_EQ(message_of([&] { (void)registry.layer_type("test.Godo"); }),
            "unknown layer type 'test.Godo' (did you mean 'test.Good'?); 'tandem layers' lists the "
            "known ones; not loaded: " +
                plugin("refuses").string() +
                ": it cannot work on this machine: it needs an abacus with 12 rods, and found "
                "none");
}

TEST(Registry, OfManyFailedModulesAFewAreNamedAndTheOthersCounted) {
  const TempFolder folder;
  Registry registry;
  for (const char* name : {"a.so", "b.so", "c.so", "d.so", "e.so"}) {
    std::filesystem::copy_file(plugin("refuses"), folder.path() / name);
    registry.load(folder.path() / name);
  }
  const std::string message = message_of([&] { (void)registry.layer_type("test.Good"); });
  EXPECT_THAT(message, AllOf(HasSubstr("c.so"), Not(HasSubstr("d.so")),
                             EndsWith("; and 2 more ('tandem plugins' lists them)")));
}

TEST(Registry, AMissingKernelIsReportedWithTheDeviceKindsThereAre) {
  Registry registry;
  registry.load(plugin("good"));
  EXPECT_EQ(message_of([&] { (void)registry.kernel("test.Good", "cuda"); }),
            "layer type 'test.Good' has no kernel on device kind 'cuda', it has one on cpu");
  EXPECT_EQ(message_of([&] { (void)registry.kernel("test.Bad", "cuda"); }),
            "layer type 'test.Bad' has no kernel on device kind 'cuda', it has no kernel at all");
}

TEST(Registry, AnUnknownDeviceKindIsReportedWithTheKnownOnes) {
  Registry registry;
  EXPECT_EQ(message_of([&] { (void)registry.backend("gpu"); }),
            "unknown device kind 'gpu'; known: none");
}

TEST(Registry, DefersDataSetsUntilTheyAreRequested) {
  Registry registry;
  registry.scan(test::test_plugin_folder() / "drawn");
  EXPECT_THAT(registry.modules(), IsEmpty());
  EXPECT_THAT(registry.datasets(), ElementsAre("drawn"));
  EXPECT_STREQ(registry.dataset("drawn").name, "drawn");
  ASSERT_EQ(registry.modules().size(), 1u);
  EXPECT_TRUE(registry.modules()[0].loaded);
  EXPECT_THAT(registry.datasets(), ElementsAre("drawn"));
  EXPECT_STREQ(registry.dataset("drawn").name, "drawn");  // and once only
  EXPECT_EQ(registry.modules().size(), 1u);
}

TEST(Registry, LoadsAllDeferredModulesOnRequest) {
  Registry registry;
  registry.scan(test::test_plugin_folder() / "drawn");
  registry.scan(test::test_plugin_folder() / "broken_data");
  registry.load_all();
  ASSERT_EQ(registry.modules().size(), 2u);
  EXPECT_THAT(registry.datasets(), ElementsAre("drawn"));
}

TEST(Registry, ADataSetOfAFailedModuleIsReportedEachTime) {
  Registry registry;
  registry.scan(test::test_plugin_folder() / "broken_data");
  for (int time = 0; time < 2; ++time) {
    EXPECT_THAT(message_of([&] { (void)registry.dataset("broken"); }),
                AllOf(HasSubstr("data set 'broken' is not loaded: "),
                      HasSubstr("tandem_dataset_broken.so: "), HasSubstr("its drum is empty")));
  }
}

TEST(Registry, DefersKernelsUntilTheirDeviceKindIsRequested) {
  const TempFolder folder;
  std::filesystem::copy(plugin("good"), folder / "tandem_kernels_cpu_good.so");
  Registry registry;
  registry.scan(folder.path());
  EXPECT_THAT(message_of([&] { (void)registry.kernel("test.Good", "cuda"); }),
              HasSubstr("no kernel at all"));
  EXPECT_THAT(registry.modules(), IsEmpty());
  EXPECT_STREQ(registry.kernel("test.Good", "cpu").layer_type, "test.Good");
  EXPECT_STREQ(registry.kernel("test.Good", "cpu").layer_type, "test.Good");
  EXPECT_EQ(registry.modules().size(), 1u);
}

TEST(Registry, LoadsAllDeferredKernelsAndNothingElse) {
  const TempFolder folder;
  std::filesystem::copy(plugin("good"), folder / "tandem_kernels_cpu_good.so");
  std::filesystem::copy(plugin("newer_minor"), folder / "tandem_backend_newer.so");
  Registry registry;
  registry.scan(folder.path());
  registry.load_kernels();
  ASSERT_EQ(registry.modules().size(), 1u);
  EXPECT_EQ(registry.modules()[0].path, folder / "tandem_kernels_cpu_good.so");
}

TEST(Registry, ABackendOfAFailedModuleIsListedAndReportedEachTime) {
  const TempFolder folder;
  std::filesystem::copy(plugin("refuses"), folder / "tandem_backend_abacus.so");
  Registry registry;
  registry.scan(folder.path());
  EXPECT_THAT(registry.modules(), IsEmpty());
  for (int time = 0; time < 2; ++time) {
    EXPECT_THAT(registry.backends(), ElementsAre("abacus"));
    EXPECT_THAT(message_of([&] { (void)registry.backend("abacus"); }),
                AllOf(HasSubstr("backend 'abacus' is not loaded: "),
                      HasSubstr("tandem_backend_abacus.so: it cannot work on this machine")));
  }
}

TEST(Registry, AnUnknownDataSetIsReportedWithTheNearName) {
  Registry registry;
  registry.scan(test::test_plugin_folder() / "drawn");
  EXPECT_EQ(message_of([&] { (void)registry.dataset("drwan"); }),
            "unknown data set 'drwan' (did you mean 'drawn'?); known: drawn");
}

TEST(Registry, ScansAFolderInOrderOfFileName) {
  const TempFolder folder;
  std::filesystem::copy(plugin("refuses"), folder / "b.so");
  std::filesystem::copy(plugin("good"), folder / "a.so");
  (void)folder.write("c.txt", "no plugin");
  Registry registry;
  registry.scan(folder.path());
  ASSERT_EQ(registry.modules().size(), 2u);
  EXPECT_EQ(registry.modules()[0].path, folder / "a.so");
  EXPECT_TRUE(registry.modules()[0].loaded);
  EXPECT_EQ(registry.modules()[1].path, folder / "b.so");
  EXPECT_FALSE(registry.modules()[1].loaded);
}

TEST(Registry, AMissingFolderIsNoError) {
  Registry registry;
  registry.scan("/nowhere/at/all");
  EXPECT_THAT(registry.modules(), IsEmpty());
}

TEST(Registry, TheSameFolderTwiceChangesNothing) {
  Registry registry;
  registry.scan(plugin("good").parent_path());
  registry.scan(plugin("good").parent_path() / "." / "");
  ASSERT_EQ(registry.modules().size(), 1u);
  EXPECT_STREQ(registry.layer_type("test.Good").name, "test.Good");
}

TEST(Registry, AnEarlierFolderShadowsAFileOfTheSameName) {
  const TempFolder folder;
  std::filesystem::copy(plugin("good"), folder / "good.so");
  Registry registry;
  registry.scan(folder.path());
  registry.scan(plugin("good").parent_path());
  ASSERT_EQ(registry.modules().size(), 2u);
  EXPECT_TRUE(registry.modules()[0].loaded);
  EXPECT_FALSE(registry.modules()[1].loaded);
  EXPECT_TRUE(registry.modules()[1].shadowed);
  EXPECT_THAT(registry.modules()[1].reason, HasSubstr((folder / "good.so").string()));
  EXPECT_STREQ(registry.layer_type("test.Good").name, "test.Good");
}

TEST(Registry, WorksAfterASecondRegistryAndAfterAMove) {
  Registry first;
  first.load(plugin("newer_minor"));
  Registry second;
  second.load(plugin("newer_minor"));
  Registry moved = std::move(second);
  EXPECT_STREQ(first.layer_type("test.Newer").name, "test.Newer");
  EXPECT_STREQ(moved.layer_type("test.Newer").parameters[0]->name, "slope");
}

class SharedFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy_file(plugin("good"), folder.path() / "good.so");
    std::filesystem::permissions(folder.path(), std::filesystem::perms::others_write,
                                 std::filesystem::perm_options::add);
  }
  void TearDown() override { unsetenv("TANDEM_TRUST_PLUGINS"); }
  TempFolder folder;
};

TEST_F(SharedFolder, ThatEveryUserMayWriteToIsNotTrusted) {
  Registry registry;
  registry.scan(folder.path());
  ASSERT_EQ(registry.modules().size(), 1u);
  EXPECT_FALSE(registry.modules()[0].loaded);
  EXPECT_THAT(registry.modules()[0].reason,
              AllOf(HasSubstr("every user of this machine may write to its folder: chmod o-w '" +
                              folder.string()),
                    HasSubstr("TANDEM_TRUST_PLUGINS=1")));
  EXPECT_THAT(message_of([&] { (void)registry.layer_type("test.Good"); }),
              HasSubstr("every user of this machine"));
}

TEST_F(SharedFolder, IsNotTrustedThroughALinkToItEither) {
  const TempFolder own;
  std::filesystem::create_symlink(folder.path() / "good.so", own.path() / "good.so");
  Registry registry;
  registry.scan(own.path());
  ASSERT_EQ(registry.modules().size(), 1u);
  EXPECT_THAT(registry.modules()[0].reason, HasSubstr("its folder: chmod o-w '" + folder.string()));
}

TEST(PluginFile, ThatEveryUserMayWriteToIsNotTrusted) {
  const TempFolder folder;
  const std::filesystem::path file = folder.path() / "good.so";
  std::filesystem::copy_file(plugin("good"), file);
  std::filesystem::permissions(file, std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  Registry registry;
  registry.scan(folder.path());
  ASSERT_EQ(registry.modules().size(), 1u);
  EXPECT_FALSE(registry.modules()[0].loaded);
  EXPECT_THAT(registry.modules()[0].reason,
              HasSubstr("every user of this machine may write to it: chmod o-w '" + file.string()));
}

TEST_F(SharedFolder, IsReadWhereTheUserTrustsIt) {
  setenv("TANDEM_TRUST_PLUGINS", "1", 1);
  Registry registry;
  registry.scan(folder.path());
  EXPECT_NE(registry.find_layer_type("test.Good"), nullptr);
}

TEST(DefaultFolders, BeginWithThoseOfTheEnvironment) {
  const TempFolder folder;
  const char* before = std::getenv("TANDEM_PLUGIN_PATH");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TANDEM_PLUGIN_PATH", ("/x/one::" + folder.string()).c_str(), 1);
  const auto folders = Registry::default_folders();
  if (before == nullptr) {
    unsetenv("TANDEM_PLUGIN_PATH");
  } else {
    setenv("TANDEM_PLUGIN_PATH", kept.c_str(), 1);
  }
  ASSERT_GE(folders.size(), 3u);
  EXPECT_EQ(folders[0], "/x/one");
  EXPECT_EQ(folders[1], folder.path());
}

TEST(DefaultFolders, IncludeThePluginsOfTheBuildOnce) {
  const auto folders = Registry::default_folders();
  EXPECT_EQ(std::count(folders.begin(), folders.end(), test::plugin_folder().lexically_normal()),
            1);
}

}  // namespace
}  // namespace tandem
