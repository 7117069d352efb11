// tandem pack, killed: nothing that loads wrong, and nothing that the next one stumbles over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/cli/program.h"

namespace tandem {
namespace {

using test::Desk;
using test::RunningProgram;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

class PackKilled : public testing::Test {
 protected:
  PackKilled() {
    desk_.draw("images/a", 300, 200, 0, 0);
    desk_.draw("images/b", 300, 0, 0, 200);
    desk_.make_folder("out");
  }
  void expect_that_the_next_is_whole() const {
    EXPECT_THAT(desk_.tandem("pack images --out out/images.pack").output,
                HasSubstr("600 images (480 train, 120 val) in 'out/images.pack'"));
    EXPECT_THAT(names_in(desk_ / "out"), ElementsAre("images.pack"));
    EXPECT_EQ(desk_.tandem("data out/images.pack").code, 0);
  }

  Desk desk_;
};

TEST_F(PackKilled, LeavesNothingWhileItWrites) {
  std::string list;
  for (int i = 0; i < 200000; ++i) {
    const std::string name = std::to_string(i % 300 + 1) + ".ppm ";
    list += "images/a/" + name + "0\nimages/b/" + name + "1\n";
  }
  desk_.write("list.txt", list);
  RunningProgram program(desk_, "pack list.txt --out out/images.pack");
  ASSERT_TRUE(program.wait_for_unnamed_file(100000)) << program.stop(SIGKILL).errors;
  EXPECT_EQ(program.stop(SIGKILL).code, 128 + SIGKILL);
  EXPECT_THAT(names_in(desk_ / "out"), testing::IsEmpty());
  expect_that_the_next_is_whole();
}

TEST_F(PackKilled, LeavesNothingOrAWholePackAtAnyTime) {
  for (const int milliseconds : {0, 10, 30, 60, 100, 200, 400, 800}) {
    RunningProgram program(desk_, "pack images --out out/images.pack");
    ASSERT_TRUE(program.wait_for_file(desk_ / "running_stdout.txt"));
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    (void)program.stop(SIGKILL);
    std::filesystem::remove(desk_ / "running_stdout.txt");
    if (names_in(desk_ / "out").empty()) continue;
    EXPECT_THAT(names_in(desk_ / "out"), ElementsAre("images.pack"));
    EXPECT_EQ(desk_.tandem("data out/images.pack").code, 0) << "after " << milliseconds << " ms";
    std::filesystem::remove(desk_ / "out/images.pack");
  }
  expect_that_the_next_is_whole();
}

}  // namespace
}  // namespace tandem
