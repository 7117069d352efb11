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
using test::Outcome;
using test::RunningProgram;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

TEST(PackKilled, LeavesNothingBehindAndTheNextOneIsWhole) {
  const Desk desk;
  desk.draw("images/a", 300, 200, 0, 0);
  desk.draw("images/b", 300, 0, 0, 200);
  desk.make_folder("out");
  int killed = 0;
  for (const int milliseconds : {0, 10, 30, 60, 100, 200, 400, 800}) {
    RunningProgram program(desk, "pack images --out out/images.pack");
    ASSERT_TRUE(program.wait_for_file(desk / "running_stdout.txt"));
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    const Outcome outcome = program.stop(SIGKILL);
    std::filesystem::remove(desk / "running_stdout.txt");
    if (outcome.code == 0) {  // it was quicker: then it is whole
      std::filesystem::remove(desk / "out/images.pack");
      continue;
    }
    EXPECT_EQ(outcome.code, 128 + SIGKILL);
    ++killed;
    EXPECT_THAT(names_in(desk / "out"), testing::IsEmpty()) << "after " << milliseconds << " ms";
  }
  EXPECT_GT(killed, 0);
  EXPECT_THAT(desk.tandem("pack images --out out/images.pack").output,
              HasSubstr("600 images (480 train, 120 val) in 'out/images.pack'"));
  EXPECT_THAT(names_in(desk / "out"), UnorderedElementsAre("images.pack"));
  EXPECT_EQ(desk.tandem("data out/images.pack").code, 0);
}

}  // namespace
}  // namespace tandem
