// The installed tree serves programs by itself: its headers, the example tandem-alexnet and the
// README's snippet are compiled against it alone; `uninstall` removes it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "tests/cli/program.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using test::Desk;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string quoted(const fs::path& path) {
  return fmt::format("'{}'", path.string());
}

class Installation : public testing::Test {
 protected:
  // Runs a command in the desk's folder; an expectation fails, with its output, if the command
  // does.
  void run(const std::string& command) const {
    const std::string whole =
        fmt::format("cd {} && {} > log.txt 2>&1", quoted(desk_ / ""), command);
    EXPECT_EQ(std::system(whole.c_str()), 0) << command << "\n" << desk_.read("log.txt");
  }
  void install(const std::string& arguments = "") const {
    run(fmt::format("{} --install {} --prefix {} {}", quoted(TANDEM_CMAKE),
                    quoted(test::build_folder()), quoted(desk_ / "usr"), arguments));
  }
  // Configures and builds the project in `folder` against the installed tree, in folder/build.
  void build(const std::string& folder) const {
    run(
        fmt::format("{0} -S {1} -B {1}/build -DCMAKE_PREFIX_PATH={2} -DCMAKE_CXX_COMPILER={3} "
                    "-DCMAKE_CXX_FLAGS='{4}' -DCMAKE_C_FLAGS='{4}'",
                    quoted(TANDEM_CMAKE), folder, quoted(desk_ / "usr"),
                    quoted(TANDEM_CXX_COMPILER), TANDEM_SANITIZER_FLAGS));
    run(fmt::format("{} --build {}/build", quoted(TANDEM_CMAKE), folder));
  }
  // The README's program, which trains two steps on synthetic data.
  void write_readme_program(const std::string& file) const {
    const std::string readme = test::read_text(test::source_folder() / "README.md");
    const std::string begin = "```cpp\n";
    const size_t first = readme.find(begin) + begin.size();
    const std::string code = readme.substr(first, readme.find("```", first) - first);
    const size_t body = code.find("\n\n");
    EXPECT_THAT(code.substr(0, body), HasSubstr("#include"));
    desk_.write(file, code.substr(0, body) + "\nint main() {" +
                          test::replaced(code.substr(body), "options.data = \"flowers\";",
                                         "options.data = \"synthetic\";\noptions.steps = 2;\n"
                                         "options.batch = 4;\noptions.out = \"run\";") +
                          "return predictor.class_names().size() == 10 ? 0 : 1;\n}\n");
  }

  Desk desk_;
};

TEST_F(Installation, HasThePublicHeadersAndNoneOfTheCores) {
  install("--component sdk");
  std::set<std::string> headers, plugin_headers;
  const fs::path folder = desk_ / "usr/include";
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string in_plugins = fs::relative(entry.path(), folder / "tandem/plugins").string();
    const bool is_plugins = !in_plugins.starts_with("..");
    (is_plugins ? plugin_headers : headers)
        .insert(is_plugins ? in_plugins : entry.path().filename().string());
    const std::string text = test::read_text(entry.path());
    EXPECT_THAT(text, AllOf(Not(HasSubstr("\"core/")), Not(HasSubstr("\"plugins/"))))
        << entry.path();
    if (in_plugins.starts_with("cuda/")) continue;  // tests/plugin/package_test.cpp compiles these
    desk_.write("one.cpp",
                fmt::format("#include <{}>\n", fs::relative(entry.path(), folder).string()));
    run(fmt::format("{} -std=c++20 -Wall -Wextra -Werror -fsyntax-only -Iusr/include one.cpp",
                    quoted(TANDEM_CXX_COMPILER)));
  }
  EXPECT_THAT(
      plugin_headers,
      testing::ElementsAre("abi.h", "abi/backends.h", "abi/common.h", "abi/datasets.h",
                           "abi/layers.h", "abi/transports.h", "cpu/bfloat16.h", "cpu/layout.h",
                           "cpu/team.h", "cpu/vector.h", "cuda/elements.h", "cuda/indexing.h",
                           "cuda/launch.h", "cuda/status.h", "cuda/sums.h", "cuda/teams.h",
                           "cuda/tensor_groups.h", "cuda/tensor_sums.h", "cuda/vectors.h",
                           "random.h", "sdk.h", "sdk/binding.h", "sdk/dataset.h", "sdk/host.h",
                           "sdk/layer_type.h", "sdk/parameters.h", "sdk/pass.h", "sdk/tables.h"));
  EXPECT_THAT(headers, testing::Contains("tandem.h"));
  EXPECT_LE(headers.size(), 14U);
}

TEST_F(Installation, IsEnoughForTheAlexNetExample) {
  install();
  fs::copy(test::source_folder() / "examples/alexnet", desk_ / "alexnet",
           fs::copy_options::recursive);
  build("alexnet");
  run("alexnet/build/tandem-alexnet --size 67 --classes 10 --batch 4 --steps 2 --warm-up 1");
  EXPECT_THAT(desk_.read("log.txt"), AllOf(HasSubstr("a + b + max(c, m) + n + exposed broadcast"),
                                           HasSubstr("send_fc_gradients")));
}

#ifdef TANDEM_HAS_SHAPES
TEST_F(Installation, IsEnoughForTheShapesExample) {
  install();
  fs::copy(test::source_folder() / "examples/shapes", desk_ / "shapes",
           fs::copy_options::recursive);
  build("shapes");
  run("shapes/build/tandem-shapes --per-class 1 --size 16 drawn");
  EXPECT_TRUE(fs::exists(desk_ / "drawn/train/circle/00001.jpg"));
}
#endif

// A program in C, with CMake and with pkg-config, on a run of the installed program.
TEST_F(Installation, IsEnoughForPredictionsInC) {
  install();
  desk_.draw_two_classes("images");
  run("usr/bin/tandem train --net tiny.prototxt --data images --batch 4 --steps 2 --out run");
  fs::copy(test::source_folder() / "examples/predict_in_c", desk_ / "in_c",
           fs::copy_options::recursive);
  build("in_c");
  run("in_c/build/predict run images/val/red/1.ppm images/val/blue/1.ppm");
  EXPECT_THAT(desk_.read("log.txt"),
              testing::ContainsRegex("red/1.ppm: (red|blue) [0-9.]+ %\nimages/val/blue/1.ppm: "));
  if (std::system("command -v pkg-config > /dev/null 2>&1") != 0) return;
  const std::string library = quoted(desk_ / "usr" / TANDEM_LIBRARY_FOLDER);
  const std::string config = fmt::format("PKG_CONFIG_PATH={}/pkgconfig pkg-config", library);
  run(
      fmt::format("{} -x c -std=c11 -Wall -Wextra -Werror {} $({} --cflags tandem) -c in_c/main.c "
                  "-o in_c/main.o",
                  quoted(TANDEM_CXX_COMPILER), TANDEM_SANITIZER_FLAGS, config));
  run(fmt::format("{} {} in_c/main.o $({} --libs tandem) -Wl,-rpath,{} -o in_c/by_pkg_config",
                  quoted(TANDEM_CXX_COMPILER), TANDEM_SANITIZER_FLAGS, config, library));
  run("in_c/by_pkg_config run images/val/red/1.ppm");
}

TEST_F(Installation, IsEnoughForTheReadmesProgramWithCMake) {
  install();
  desk_.make_folder("program");
  write_readme_program("program/main.cpp");
  desk_.write("program/CMakeLists.txt",
              "cmake_minimum_required(VERSION 3.25)\nproject(Program LANGUAGES CXX)\n"
              "find_package(Tandem 0.1 REQUIRED)\nadd_executable(program main.cpp)\n"
              "target_link_libraries(program PRIVATE Tandem::tandem)\n");
  build("program");
  run("program/build/program");
}

TEST_F(Installation, IsEnoughForTheReadmesProgramWithPkgConfig) {
  if (std::system("command -v pkg-config > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "pkg-config is not installed";
  }
  install();
  write_readme_program("main.cpp");
  const std::string config =
      fmt::format("$(PKG_CONFIG_PATH={} pkg-config --cflags --libs tandem)",
                  quoted(desk_ / "usr" / TANDEM_LIBRARY_FOLDER / "pkgconfig"));
  run(fmt::format("{} -std=c++20 {} main.cpp {} -Wl,-rpath,{} -o program",
                  quoted(TANDEM_CXX_COMPILER), TANDEM_SANITIZER_FLAGS, config,
                  quoted(desk_ / "usr" / TANDEM_LIBRARY_FOLDER)));
  run("./program");
}

TEST_F(Installation, WithoutItsModelsSaysWhereTheyWereLookedFor) {
  install();
  fs::remove_all(desk_ / "usr/share/tandem/models");
  for (const char* command : {"models", "models --json", "net alexnet"}) {
    run(fmt::format("if usr/bin/tandem {} > out.txt 2> err.txt; then exit 1; fi", command));
    EXPECT_THAT(desk_.read("err.txt"),
                AllOf(HasSubstr("there are no models in "), HasSubstr("usr/share/tandem/models"),
                      HasSubstr("TANDEM_MODEL_PATH")))
        << command;
    EXPECT_THAT(desk_.read("out.txt"), IsEmpty()) << command;
  }
}

TEST_F(Installation, IsRemovedByUninstallAndNothingElseIs) {
  desk_.make_folder("usr/share/man/man1");
  desk_.write("usr/share/man/man1/other.1", "");
  install("--component runtime");
  EXPECT_TRUE(fs::exists(desk_ / "usr/share/bash-completion/completions/tandem"));
  EXPECT_TRUE(fs::exists(desk_ / "usr/share/man/man1/tandem.1"));
  const fs::path manifest = test::build_folder() / "install_manifest_runtime.txt";
  fs::copy_file(manifest, desk_ / "install_manifest_runtime.txt");
  fs::remove(manifest);
  run(fmt::format("{} -DFOLDER={} -P {}", quoted(TANDEM_CMAKE), quoted(desk_ / ""),
                  quoted(test::source_folder() / "cmake/TandemUninstall.cmake")));
  std::set<std::string> left;
  for (const auto& entry : fs::recursive_directory_iterator(desk_ / "usr")) {
    if (!entry.is_directory()) left.insert(entry.path().filename());
    EXPECT_NE(entry.path().filename(), "tandem") << entry.path();
  }
  EXPECT_THAT(left, testing::ElementsAre("other.1"));
}

}  // namespace
}  // namespace tandem
