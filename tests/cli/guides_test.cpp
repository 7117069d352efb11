// The guides for authors of plugins, followed from nothing: what a guide shows as files is written
// to an empty folder, built with an installed SDK and nothing else, checked and trained. And what
// they name is in that SDK.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "tests/cli/program.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using test::Desk;
using test::Outcome;
using testing::HasSubstr;

const std::vector<std::string> guides{
    "write_a_layer.md", "layer_with_weights.md", "layers_in_depth.md", "fused_layers.md",
    "cuda_kernel.md",   "write_a_data_set.md",   "plain_c.md"};

std::string guide_text(const std::string& guide) {
  return test::read_text(test::source_folder() / "docs/guide" / guide);
}

void run(const Desk& desk, const std::string& command) {
  const std::string line =
      fmt::format("cd '{}' && {} > log.txt 2>&1", (desk / "").string(), command);
  ASSERT_EQ(std::system(line.c_str()), 0) << command << "\n" << desk.read("log.txt");
}

void install_sdk(const Desk& desk) {
  run(desk, fmt::format("'{}' --install '{}' --prefix package --component sdk", TANDEM_CMAKE,
                        test::build_folder().string()));
}

// Code blocks whose first line names a file: "// gain.cpp", "# net.prototxt", "/* leaky.c: ... */".
// Returns their number.
int write_files(const Desk& desk, const std::string& guide, const std::string& folder) {
  static const std::regex name(R"(^(//|#|/\*) ([\w.]+\.(cpp|cu|c|txt|prototxt))\b)");
  std::istringstream text(guide_text(guide));
  std::string block;
  bool inside = false;
  int files = 0;
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("```")) {
      if (inside) block += line + "\n";
      continue;
    }
    std::smatch found;
    if (inside && std::regex_search(block, found, name)) {
      desk.write(folder + "/" + found[2].str(), block);
      ++files;
    }
    inside = !inside;
    block.clear();
  }
  return files;
}

class Guide : public testing::Test {
 protected:
  // Writes the guide's files to a folder and builds them.
  void follow(const std::string& guide, int files, const std::string& options = "") {
    install_sdk(desk_);
    ASSERT_EQ(write_files(desk_, guide, "own"), files);
    run(desk_, fmt::format("'{}' -S own -B build -DCMAKE_PREFIX_PATH=\"$PWD/package\" "
                           "-DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER='{}' {}",
                           TANDEM_CMAKE, TANDEM_CXX_COMPILER, options));
    run(desk_, fmt::format("'{}' --build build", TANDEM_CMAKE));
  }
  void check(const std::string& module, const std::string& promise) const {
    const Outcome outcome = desk_.tandem("plugin check build/" + module);
    EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
    EXPECT_THAT(outcome.output, HasSubstr("kept   " + promise));
  }
  void train(const std::string& arguments) const {
    const Outcome outcome = desk_.tandem("train " + arguments, "TANDEM_PLUGIN_PATH=build");
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
  }
  Desk desk_;
};

TEST_F(Guide, OfALayerWithWeightsBuildsChecksAndTrains) {
  follow("layer_with_weights.md", 3);
  check("acme_gain.so", "weight gradients");
  check("acme_gain.so", "layouts");
  train("--net own/net.prototxt --data synthetic --devices cpu:2 --steps 20 --out run");
  // Blocked layouts go through the layer.
  const Outcome net = desk_.tandem("net own/net.prototxt", "TANDEM_PLUGIN_PATH=build");
  EXPECT_EQ(net.code, 0) << net.errors;
  std::istringstream lines(net.output);
  bool is_seen = false;
  for (std::string line, before; std::getline(lines, line); before = line) {
    if (!line.starts_with("gain1 ")) continue;
    EXPECT_TRUE(before.starts_with("conv1 ")) << net.output;
    is_seen = true;
  }
  EXPECT_TRUE(is_seen) << net.output;
}

TEST_F(Guide, OfPlainCBuildsAndChecks) {
  follow("plain_c.md", 2);
  check("acme_leaky.so", "input gradients");
}

// Of a run that learned from the guide's data set.
void expect_own_preparation(const Desk& desk) {
  const std::string plugins = "TANDEM_PLUGIN_PATH=build";
  const Outcome tested = desk.tandem("test --run run", plugins);
  const Outcome predicted = desk.tandem("predict --run run my_folder --top 1", plugins);
  EXPECT_EQ(predicted.code, 0) << predicted.errors;
  EXPECT_THAT(predicted.errors, HasSubstr("as data set 'records' prepares them"));
  int right = 0, lines = 0;
  std::istringstream text(predicted.output);
  for (std::string line; std::getline(text, line); ++lines) {
    right += line.find(fmt::format(": class {} ", lines % 10)) == std::string::npos ? 0 : 1;
  }
  EXPECT_EQ(lines, 40);
  EXPECT_THAT(tested.output, HasSubstr(fmt::format("top-1 {:.2f} %", 2.5 * right)));
  desk.write("picture.png", "none");
  EXPECT_THAT(desk.refusal("predict --run run picture.png", plugins),
              HasSubstr("'records' prepares them, and it does not read"));
  EXPECT_THAT(desk.refusal("predict --run run my_folder"), HasSubstr("unknown data set 'records'"));
}

TEST_F(Guide, OfADataSetBuildsAndTrains) {
  follow("write_a_data_set.md", 2);
  for (const char* split : {"train", "val"}) {
    std::string records;
    for (int i = 0; i < 40; ++i) {
      records += static_cast<char>(i % 10);
      for (int k = 0; k < 3 * 32 * 32; ++k) {
        const int dark = *split == 't' ? k % 50 : k % 40;
        records += static_cast<char>(k / 32 % 32 == 2 * (i % 10) ? 250 : dark);
      }
    }
    desk_.write(fmt::format("my_folder/{}.records", split), records);
  }
  const Outcome listed = desk_.tandem("datasets records", "TANDEM_PLUGIN_PATH=build");
  EXPECT_EQ(listed.code, 0) << listed.errors;
  EXPECT_THAT(listed.output, HasSubstr("height and width"));
  const Outcome checked = desk_.tandem(
      "plugin check build/tandem_dataset_records.so --data my_folder --data-option side=32");
  EXPECT_EQ(checked.code, 0) << checked.output << checked.errors;
  train(
      "--data my_folder --data-option side=32 --net cifar10_quick --batch 8 --steps 10 --out run");
  const Outcome tested = desk_.tandem("test --run run", "TANDEM_PLUGIN_PATH=build");
  EXPECT_EQ(tested.code, 0) << tested.errors;
  expect_own_preparation(desk_);
  EXPECT_THAT(desk_.refusal("train --data my_folder --net cifar10_quick --steps 1 --out other",
                            "TANDEM_PLUGIN_PATH=build"),
              HasSubstr("no multiple of the"));
}

TEST_F(Guide, OfACudaKernelBuildsAndItsKernelForTheCpuPasses) {
  if (std::system("nvcc --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "there is no nvcc";
  follow("cuda_kernel.md", 2, "-DCMAKE_CUDA_ARCHITECTURES=75-virtual");
  check("acme_bend.so", "layouts");
  EXPECT_THAT(desk_.tandem("layers acme.Bend", "TANDEM_PLUGIN_PATH=build").output,
              HasSubstr("cuda (float32, bfloat16, float16)"));
}

// The first guide shows parts of examples/custom_layer, which other tests build.
TEST(Guides, OfALayerShowsTheExample) {
  const std::string text = guide_text("write_a_layer.md");
  const std::string source =
      test::read_text(test::source_folder() / "examples/custom_layer/swish.cpp");
  const size_t begin = text.find("struct Swish : LayerType"), end = text.find("```", begin);
  ASSERT_NE(begin, std::string::npos);
  EXPECT_THAT(source, HasSubstr(text.substr(begin, end - begin)));
}

// What begins with "```", a name of the language, and what follows up to the end of the block.
std::vector<std::string> blocks_of(const std::string& guide, const std::string& language) {
  const std::string text = guide_text(guide), begin = "```" + language + "\n";
  std::vector<std::string> blocks;
  for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
    const size_t from = at + begin.size();
    blocks.push_back(text.substr(from, text.find("```", from) - from));
  }
  return blocks;
}

// The sources of these two guides are those of `tandem plugin new`, below the first comment.
TEST(Guides, OfCAndCudaShowWhatTheProgramWrites) {
  const Desk desk;
  struct Shown {
    std::string guide, name, part, language, source;
  };
  for (const Shown& shown : {Shown{"plain_c.md", "acme.Leaky", "c", "c", "acme_leaky.c"},
                             {"cuda_kernel.md", "acme.Bend", "cuda", "cpp", "acme_bend.cu"}}) {
    const Outcome written = desk.tandem("plugin new " + shown.name + " --with " + shown.part);
    ASSERT_EQ(written.code, 0) << written.errors;
    const std::string folder = shown.source.substr(0, shown.source.find('.'));
    const auto below_comment = [](const std::string& text) {
      return text.substr(text.find("#include"));
    };
    const auto sources = blocks_of(shown.guide, shown.language);
    ASSERT_EQ(sources.size(), 1U) << shown.guide;
    EXPECT_EQ(below_comment(sources[0]), below_comment(desk.read(folder + "/" + shown.source)))
        << shown.guide << " and plugins/templates/" << shown.part << ".*.in differ";
    const auto builds = blocks_of(shown.guide, "cmake");
    ASSERT_EQ(builds.size(), 1U) << shown.guide;
    const std::string build = desk.read(folder + "/CMakeLists.txt");
    std::istringstream lines(builds[0]);
    std::string line;
    std::getline(lines, line);  // names the file
    while (std::getline(lines, line)) EXPECT_THAT(build, HasSubstr(line)) << shown.guide;
  }
}

TEST(Guides, HaveLessThan150Lines) {
  std::vector<fs::path> pages;
  for (const std::string& guide : guides) {
    pages.push_back(test::source_folder() / "docs/guide" / guide);
  }
  for (const char* page : {"write_a_strategy.md", "write_a_backend.md"}) {
    pages.push_back(test::source_folder() / "docs/design" / page);
  }
  for (const fs::path& page : pages) {
    const std::string text = test::read_text(page);
    EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 150) << page;
  }
}

// README's first picture, and the command that the guide prints under it.
TEST(Guides, TheFiguresOfReadmesPictureAreWhatItsCommandPredicts) {
  const std::string readme = test::read_text(test::source_folder() / "README.md");
  const std::string guide = test::read_text(test::source_folder() / "docs/guide/pipeline.md");
  std::smatch times, command;
  ASSERT_TRUE(std::regex_search(
      readme, times, std::regex("step takes ([0-9.]+ ms); without overlap it takes ([0-9.]+ ms)")));
  ASSERT_TRUE(
      std::regex_search(guide, command,
                        std::regex("tandem (plan [^\n]*)--strategy two_phase --split fc6([^\n]*)"
                                   "\\\\\n([^\n]*)--svg")));
  const std::string before = command[1], rest = command[2].str() + command[3].str();
  const Desk desk;
  EXPECT_THAT(desk.tandem(before + "--strategy two_phase --split fc6" + rest).output,
              HasSubstr("predicted step: " + times[1].str()));
  EXPECT_THAT(desk.tandem(before + "--strategy sequential" + rest).output,
              HasSubstr("predicted step: " + times[2].str()));
}

// Headers, constants, and members of what a kernel is given.
TEST(Guides, NameWhatTheSdkHolds) {
  const Desk desk;
  install_sdk(desk);
  std::string sdk;
  for (const auto& entry : fs::recursive_directory_iterator(desk / "package/include")) {
    if (entry.is_regular_file()) sdk += test::read_text(entry.path());
  }
  for (const std::string& guide : guides) {
    EXPECT_TRUE(fs::exists(desk / ("package/share/tandem/guides/" + guide))) << guide;
  }
  static const std::regex header(R"(<(tandem/[\w./]+)>)"),
      constant(R"(\bTANDEM_[A-Z][A-Z0-9_]+\b)"),
      member(R"(\b(?:pass|binding|query|attributes|call|request|Plugin)\.(\w+)\b)");
  const std::set<std::string> of_the_program{"TANDEM_PLUGIN_PATH", "TANDEM_BACKWARD_READS_"};
  int named = 0;
  for (const std::string& guide : guides) {
    const std::string text = guide_text(guide);
    const auto each = [&](const std::regex& pattern, int group, const auto& visit) {
      for (std::sregex_iterator found(text.begin(), text.end(), pattern), end; found != end;
           ++found) {
        visit((*found)[static_cast<size_t>(group)].str());
        ++named;
      }
    };
    each(header, 1, [&](const std::string& file) {
      EXPECT_TRUE(fs::exists(desk / ("package/include/" + file))) << guide << " names " << file;
    });
    each(constant, 0, [&](const std::string& name) {
      const bool is_known = of_the_program.contains(name) || sdk.find(name) != std::string::npos;
      EXPECT_TRUE(is_known) << guide << " names " << name;
    });
    each(member, 1, [&](const std::string& name) {
      const std::regex word("\\b" + name + "\\b");
      EXPECT_TRUE(std::regex_search(sdk, word)) << guide << " names " << name;
    });
  }
  EXPECT_GT(named, 100);
}

}  // namespace
}  // namespace tandem
