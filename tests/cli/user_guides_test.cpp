// Every command that README and the guides print for users, run as it stands there, page by page,
// in a folder that holds what the page takes for granted: small data, and options for few steps.
// What cannot run here is listed with its reason. Guides for authors of plugins are followed by
// guides_test.cpp and others.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <sstream>

#include "tests/cli/program.h"
#include "tests/cli/ranks.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

using test::Desk;

struct Pair {
  const char *part, *other;
};

// Parts of commands that are not run, and why.
const std::vector<Pair> not_run{
    {"cuda", "needs a GPU"},
    {"CUDA_VISIBLE_DEVICES", "needs a GPU"},
    {"srun ", "needs Slurm"},
    {"timm/", "needs Hugging Face"},
    {"resnet50.pth", "needs published weights"},
    {"tandem-alexnet --devices cpu:2 --strategy all", "six times the command before it"},
};

// Smaller work of the same kind.
const std::vector<Pair> smaller{
    {"tandem-shapes flowers", "tandem-shapes --per-class 8 flowers"},
    {"--net googlenet --devices sim:32 --hosts 8", "--net lenet --devices sim:4 --hosts 2"},
    {"--net googlenet --devices sim:8 --strategy all",
     "--net lenet --devices sim:4 --strategy all"},
    {"--net googlenet --devices cpu:2 --costs", "--net lenet --devices cpu:2 --costs"},
    {"--net resnet18 --devices cpu", "--net lenet --devices cpu"},
    {"--devices cpu:4 --strategy auto", "--devices cpu:2 --strategy auto"},
    {"profile --net alexnet", "profile --net lenet"},
    {"plan --net alexnet --devices sim:4", "plan --net lenet --devices sim:4"},
    {"--data flowers.pack --net alexnet", "--data flowers.pack --net cifar10_quick"},
    {"--model resnet18 --find-lr", "--model lenet --find-lr"},
    {"--trials 9", "--trials 2"},
    {"mpirun -n 4", "mpirun -n 2"},
    {"--devices sim:8 --strategy mixed", "--devices sim:4 --strategy mixed"},
    {"--batch 128", "--batch 4"},
};

std::string with_smaller_work(std::string command) {
  for (const auto& [part, other] : smaller) {
    const size_t at = command.find(part);
    if (at != std::string::npos) command.replace(at, std::string(part).size(), other);
  }
  const auto has = [&](const char* part) { return command.find(part) != std::string::npos; };
  const bool measures = has("tandem profile") || has("tandem-alexnet");
  if (has("tandem train") && !has("--resume") && !has("--find-lr")) {
    command = std::regex_replace(command, std::regex(" --epochs [0-9]+"), "");
    if (!has("--steps")) command += " --steps 2";
    if (!has("--batch")) command += " --batch 4";
  }
  if (has("--find-lr")) command += " --batch 4";
  if (has("tandem search")) command += " --steps 2 --batch 4";
  if (has("tandem-alexnet")) command += " --size 115 --classes 10";
  if (measures) command += " --warm-up 1 --steps 1";
  if (measures && !has("--batch")) command += " --batch 4";
  return command;
}

// Indented lines that begin with a program's name; their comments are left out.
std::vector<std::string> commands_of(const std::string& page) {
  static const std::regex begins("^    (tandem[a-z-]* |mpirun |srun )"), comment(" +# .*$");
  std::istringstream text(test::read_text(test::source_folder() / page));
  std::vector<std::string> commands;
  bool goes_on = false;
  for (std::string line; std::getline(text, line);) {
    if (!goes_on && !std::regex_search(line, begins)) continue;
    if (!goes_on) commands.emplace_back();
    line = std::regex_replace(line, comment, "");
    goes_on = line.ends_with('\\');
    if (goes_on) line.pop_back();
    commands.back() += line.substr(std::min<size_t>(4, line.size()));
  }
  return commands;
}

// Measurements and forecasts that README has as well are run with README.
bool is_of_readme(const std::string& page, const std::string& command) {
  const bool is_alone =
      command.starts_with("tandem-alexnet") || command.starts_with("tandem plan ");
  if (page == "README.md" || !is_alone) return false;
  const std::vector<std::string> first = commands_of("README.md");
  return std::find(first.begin(), first.end(), command) != first.end();
}

// What the pages take for granted.
void prepare(const Desk& desk) {
  for (const char* data : {"flowers", "DIR", "FOLDER"}) {
    desk.draw(std::string(data) + "/tulip", 10, 20, 20, 200);
    desk.draw(std::string(data) + "/rose", 10, 200, 20, 20);
  }
  desk.draw("more_images", 2, 20, 20, 200);
  std::filesystem::copy_file(desk / "more_images/1.ppm", desk / "a.jpg");
  std::string labels = "path,cat,dog,tree\n", ages = "path,age\n";
  for (int i = 1; i <= 10; ++i) {
    labels += fmt::format("flowers/rose/{}.ppm,{},{},1\n", i, i % 2, (i + 1) % 2);
    ages += fmt::format("flowers/rose/{}.ppm,{}.5\n", i, 10 + i);
  }
  desk.write("labels.csv", labels);
  desk.write("ages.csv", ages);
  for (const char* net : {"train_val.prototxt", "caffenet.prototxt"}) {
    desk.write(net, test::tiny_net());
  }
  desk.write("solver.prototxt", "base_lr: 0.01 lr_policy: \"fixed\" max_iter: 2\n");
  ASSERT_EQ(desk.tandem("train --net tiny.prototxt --data flowers --steps 1 --out first").code, 0);
  ASSERT_EQ(desk.tandem("export --run first caffenet.caffemodel").code, 0);
  ASSERT_EQ(desk.tandem("profile --net lenet --batch 4 --steps 1 --costs costs.csv").code, 0);
}

// How the shell finds the programs, and what mpirun needs where ranks outnumber cores.
std::string in_desk(const Desk& desk, const std::string& command) {
  return fmt::format(
      "cd '{}' && {} export PATH='{}/bin':\"$PATH\" {} OMPI_ALLOW_RUN_AS_ROOT=1 "
      "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 "
      "OMPI_MCA_hwloc_base_binding_policy=none && ({}) > log.txt 2>&1",
      (desk / "").string(), test::own_cache(), test::build_folder().string(),
      command.starts_with("mpirun") ? test::environment_of_ranks : "", command);
}

class CommandsOf : public testing::TestWithParam<const char*> {};

TEST_P(CommandsOf, APageRunAsTheyStandThere) {
  const std::vector<std::string> commands = commands_of(GetParam());
  ASSERT_FALSE(commands.empty());
  const Desk desk;
  prepare(desk);
  for (const std::string& command : commands) {
    const bool is_excused = std::any_of(not_run.begin(), not_run.end(), [&](const Pair& one) {
      return command.find(one.part) != std::string::npos;
    });
    const bool is_job = command.starts_with("mpirun") && !test::no_mpi().empty();
#ifndef TANDEM_HAS_SHAPES
    const bool is_missing = command.starts_with("tandem-shapes");
#else
    const bool is_missing = false;
#endif
    if (is_excused || is_job || is_missing || is_of_readme(GetParam(), command)) continue;
    if (command.starts_with("tandem-shapes")) std::filesystem::remove_all(desk / "flowers");
    const int status = std::system(in_desk(desk, with_smaller_work(command)).c_str());
    const std::string log = desk.read("log.txt");
    if (log.find("this CPU does not multiply bfloat16") != std::string::npos) continue;
    EXPECT_EQ(status, 0) << command << "\n" << log;
  }
}

INSTANTIATE_TEST_SUITE_P(Pages, CommandsOf,
                         testing::Values("README.md", "docs/guide/train.md", "docs/guide/caffe.md",
                                         "docs/guide/cluster.md", "docs/guide/pipeline.md",
                                         "docs/guide/strategies.md", "docs/guide/precision.md"),
                         [](const auto& page) {
                           std::string name = page.param;
                           name = name.substr(name.rfind('/') + 1);
                           return name.substr(0, name.find('.'));
                         });

TEST(CommandsOfGuides, WhatIsNotRunIsThere) {
  std::string all;
  for (const char* page : {"README.md", "train.md", "caffe.md", "cluster.md", "cuda.md",
                           "pipeline.md", "strategies.md", "precision.md"}) {
    const std::string folder = page == std::string("README.md") ? "" : "docs/guide/";
    for (const std::string& command : commands_of(folder + page)) all += command + "\n";
  }
  for (const std::vector<Pair>* list : {&not_run, &smaller}) {
    for (const Pair& one : *list) EXPECT_THAT(all, testing::HasSubstr(one.part));
  }
}

}  // namespace
}  // namespace tandem
