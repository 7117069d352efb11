// The promise of docs/reference/abi.md: a binary plugin that was stored when its version of the
// ABI was released loads and trains, and what built a plugin (compiler, standard library, language)
// changes no bit of what it trains.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "tests/cli/program.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using test::Desk;
using test::Outcome;
using testing::HasSubstr;

fs::path stored_folder() {
  return test::source_folder() / "tests/stored_plugins";
}

// stored_2_0 and so on: the versions of the ABI of which a plugin is stored.
std::set<std::string> stored_versions() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(stored_folder())) {
    const std::string name = entry.path().stem();
    if (entry.path().extension() == ".so") names.insert(name);
  }
  return names;
}

// "" or the reason.
std::string no_compiler(const std::string& compiler) {
  const std::string command = fmt::format("{} --version > /dev/null 2>&1", compiler);
  return std::system(command.c_str()) == 0 ? "" : fmt::format("there is no {}", compiler);
}

// Builds modules/NAME/NAME.so of the desk.
void build(const Desk& desk, const std::string& name, const std::string& command,
           const std::string& source) {
  desk.make_folder("modules/" + name);
  const std::string line = fmt::format(
      "cd '{}' && {} -O1 -ffp-contract=off -fPIC -shared -fvisibility=hidden -I '{}' "
      "'{}' -o modules/{}/{}.so 2> errors.txt",
      (desk / "").string(), command, test::source_folder().string(),
      (stored_folder() / source).string(), name, name);
  ASSERT_EQ(std::system(line.c_str()), 0) << line << "\n" << desk.read("errors.txt");
}

// The weights after 12 steps with the module of that folder.
std::string trained(const Desk& desk, const std::string& module) {
  desk.write("stored.prototxt", R"(name: "stored"
layer {
  name: "data" type: "Data" top: "data" top: "label"
  transform_param { crop_size: 8 }
  data_param { batch_size: 8 }
}
layer {
  name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 5 kernel_size: 3 weight_filler { type: "xavier" } }
}
layer {
  name: "conv2" type: "Convolution" bottom: "data" top: "conv2"
  convolution_param { num_output: 5 kernel_size: 3 weight_filler { type: "xavier" } }
}
layer {
  name: "mix" type: "stored.Mix" bottom: "conv1" bottom: "conv2" top: "mix"
  stored_mix_param {
    scale: 3 power: 1 doubled: true sign: MINUS halves: 1 halves: 2 more: 0.75 more: 0.5
    factor_filler { type: "uniform" min: 0.5 max: 1.5 }
  }
}
layer {
  name: "score" type: "InnerProduct" bottom: "mix" top: "score"
  inner_product_param { num_output: 4 weight_filler { type: "xavier" } }
}
layer { name: "loss" type: "stored.Loss" bottom: "score" bottom: "label" top: "loss" }
)");
  const Outcome outcome = desk.tandem(
      "train --net stored.prototxt --data stored_rows --data-option pictures=48 --devices cpu:2 "
      "--steps 12 --lr 0.01 --no-plugin-check --out run",  // its 'val' has the samples of 'train'
      fmt::format("rm -rf run; TANDEM_PLUGIN_PATH='{}'", module));
  EXPECT_EQ(outcome.code, 0) << module << "\n" << outcome.errors;
  return outcome.code == 0 ? desk.read("run/last.safetensors") : "";
}

TEST(StoredPlugin, OfEveryVersionLoadsAndTrains) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "the stored plugins are for x86-64";
#endif
  const std::set<std::string> versions = stored_versions();
  ASSERT_THAT(versions, testing::Contains("stored_2_0"));
  for (const std::string& version : versions) {
    const Desk desk;
    desk.make_folder("stored");
    fs::copy(stored_folder() / (version + ".so"), desk / "stored");
    const std::string listed =
        desk.tandem("plugins", fmt::format("TANDEM_PLUGIN_PATH='{}'", (desk / "stored").string()))
            .output;
    EXPECT_THAT(listed, HasSubstr(version + ".so"));
    const std::string weights = trained(desk, (desk / "stored").string());
    EXPECT_GT(weights.size(), 1000U);
    build(desk, "now", fmt::format("{} -std=c11", TANDEM_C_COMPILER), fmt::format("{}.c", version));
    EXPECT_TRUE(weights == trained(desk, (desk / "modules/now").string()))
        << version << ".so trains other bits than its source, built now";
  }
}

struct Build {
  std::string name, compiler, options, source;
};

TEST(PluginBuilds, OfEveryCompilerTrainTheSameBits) {
  const Desk desk;
  build(desk, "base", fmt::format("{} -std=c++20", TANDEM_CXX_COMPILER), "twin.cpp");
  const std::string expected = trained(desk, (desk / "modules/base").string());
  std::vector<Build> builds{
      {"debug", TANDEM_CXX_COMPILER, "-std=c++20 -D_GLIBCXX_DEBUG", "twin.cpp"},
      {"assertions", TANDEM_CXX_COMPILER, "-std=c++20 -D_GLIBCXX_ASSERTIONS -O3", "twin.cpp"},
      {"c11", TANDEM_C_COMPILER, "-std=c11 -pedantic", "stored_2_0.c"}};
  for (const char* compiler :
       {"g++-12", "g++-13", "g++-14", "clang++", "clang++-16", "clang++-19"}) {
    builds.push_back({compiler, compiler, "-std=c++20", "twin.cpp"});
  }
  for (const char* compiler : {"clang", "clang-16"}) {
    builds.push_back({compiler, compiler, "-std=c11 -pedantic", "stored_2_0.c"});
  }
  int seen = 0;
  for (const Build& one : builds) {
    if (const std::string reason = no_compiler(one.compiler); !reason.empty()) {
      fmt::print("left out: {}\n", reason);
      continue;
    }
    build(desk, one.name, one.compiler + " " + one.options, one.source);
    EXPECT_TRUE(expected == trained(desk, (desk / ("modules/" + one.name)).string())) << one.name;
    ++seen;
  }
  EXPECT_GE(seen, 3);
}

}  // namespace
}  // namespace tandem
