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
std::string message_of(const std::string& command, const TempFolder& folder) {
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
  ASSERT_EQ(message_of(cmake + " --install " + quoted(test::build_folder()) +
                           " --component sdk --prefix " + quoted(folder / "package"),
                       folder),
            "");
  // A copy elsewhere, from which no file of the source tree can be reached.
  std::filesystem::copy(test::source_folder() / "examples/custom_layer", folder / "acme",
                        std::filesystem::copy_options::recursive);
  ASSERT_EQ(
      message_of(cmake + " -S " + quoted(folder / "acme") + " -B " + quoted(folder / "build") +
                     " -DCMAKE_PREFIX_PATH=" + quoted(folder / "package") +
                     " -DCMAKE_CXX_COMPILER=" + quoted(TANDEM_CXX_COMPILER),
                 folder),
      "");
  ASSERT_EQ(message_of(cmake + " --build " + quoted(folder / "build"), folder), "");

  Registry registry;
  const ModuleReport report = registry.load(folder / "build/acme_swish.so");
  ASSERT_TRUE(report.loaded) << report.reason;
  EXPECT_EQ(report.name, "acme-swish");
  EXPECT_THAT(report.offers, ElementsAre("layer acme.Swish", "kernel acme.Swish/cpu"));
  EXPECT_STREQ(registry.layer_type("acme.Swish").parameters[0]->block, "acme_swish_param");
}

// Kernels of their own for both kinds of device, with the installed helpers. It is compiled, but no
// GPU is needed.
TEST(Package, ACudaKernelBuildsOutOfTreeWithTheInstalledHelpers) {
  if (std::system("nvcc --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "there is no nvcc";
  const TempFolder folder;
  const std::string cmake = quoted(TANDEM_CMAKE);
  ASSERT_EQ(message_of(cmake + " --install " + quoted(test::build_folder()) +
                           " --component sdk --prefix " + quoted(folder / "package"),
                       folder),
            "");
  std::filesystem::create_directories(folder / "acme");
  (void)folder.write("acme/CMakeLists.txt",
                     "cmake_minimum_required(VERSION 3.25)\n"
                     "project(Acme LANGUAGES CXX CUDA)\n"
                     "find_package(Tandem 0.1 REQUIRED)\n"
                     "find_package(CUDAToolkit REQUIRED)\n"
                     "tandem_add_plugin(acme twice.cu LIBRARIES CUDA::cudart)\n");
  (void)folder.write("acme/twice.cu", R"(
#include <tandem/plugins/cpu/layout.h>
#include <tandem/plugins/cuda/elements.h>
#include <tandem/plugins/cuda/indexing.h>
#include <tandem/plugins/cuda/sums.h>
#include <tandem/plugins/cuda/teams.h>
#include <tandem/plugins/sdk.h>
using namespace tandem;
struct Twice : sdk::LayerType {
  const char* name() const override { return "acme.Twice"; }
  const char* help() const override { return "2 x"; }
};
struct Body {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const { y[i] = 2 * x[i]; }
  const float* x;
  float* y;
};
struct TwiceCuda {
  TwiceCuda(const sdk::Binding& b, const sdk::Call&) : elements(sdk::count(b.input(0).shape)) {}
  void forward(const sdk::Call& call, const sdk::DevicePass& pass) const {
    cuda::for_each(call, elements, Body{pass.input(0).get(), pass.output(0).get()});
  }
  int64_t elements;
};
extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return sdk::Plugin(host, "acme", "1").layer<Twice>().kernel<Twice, TwiceCuda>("cuda").table();
}
)");
  ASSERT_EQ(
      message_of(cmake + " -S " + quoted(folder / "acme") + " -B " + quoted(folder / "build") +
                     " -DCMAKE_PREFIX_PATH=" + quoted(folder / "package") +
                     " -DCMAKE_CUDA_ARCHITECTURES=75-virtual -DCMAKE_CXX_COMPILER=" +
                     quoted(TANDEM_CXX_COMPILER),
                 folder),
      "");
  ASSERT_EQ(message_of(cmake + " --build " + quoted(folder / "build"), folder), "");
  Registry registry;
  const ModuleReport report = registry.load(folder / "build/acme.so");
  EXPECT_THAT(report.offers, ElementsAre("layer acme.Twice", "kernel acme.Twice/cuda"))
      << report.reason;
}

TEST(Package, SuggestsTheLibrariesOfTheCudaThatItWasBuiltWith) {
  const std::string settings = test::read_text(test::build_folder() / "CPackConfig.cmake");
  const std::string setting = "set(CPACK_DEBIAN_CUDA_PACKAGE_SUGGESTS \"";
  const size_t at = settings.find(setting);
  if (at == std::string::npos) GTEST_SKIP() << "built without code for GPUs";
  EXPECT_THAT(settings.substr(at + setting.size(), 80),
              testing::ContainsRegex("^cuda-cudart-[0-9]+-[0-9]+, libcublas-[0-9]+-[0-9]+, "
                                     "libcudnn9-cuda-[0-9]+, libnccl2\""));
}

}  // namespace
}  // namespace tandem
