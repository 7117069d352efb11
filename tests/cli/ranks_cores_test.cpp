// How several processes divide the cores that they may use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <tuple>

#include "plugins/processors.h"
#include "tests/cli/program.h"
#include "tests/cli/ranks.h"

namespace tandem {
namespace {

using test::checkpoint;
using test::Desk;
using test::mpirun;
using test::Outcome;
using test::Ranks;
using testing::HasSubstr;

// The bits of this net depend on the number of threads.
const std::string threaded =
    "train --net cifar10_quick --data synthetic --batch 48 --steps 2 --seed 5 --strategy "
    "sequential --out ";

// `of_one`, `of_two`: shell text before one process with two devices, and before two ranks.
void expect_bits_of_one_process_without_threads(const std::string& of_one,
                                                const std::string& of_two,
                                                const std::string& option_of_one = "") {
  const Desk desk;
  const Outcome one = desk.tandem(threaded + "one --devices cpu:2" + option_of_one, of_one);
  const Outcome two = desk.tandem(threaded + "two --devices cpu:1", of_two);
  ASSERT_EQ(one.code, 0) << one.errors;
  ASSERT_EQ(two.code, 0) << two.output << two.errors;
  EXPECT_TRUE(checkpoint(desk, "one") == checkpoint(desk, "two")) << of_two;
}

TEST_F(Ranks, DivideTheCoresAsDevicesDo) {
  expect_bits_of_one_process_without_threads("", mpirun(2));
}

TEST_F(Ranks, ComputeWithTheCoresThatTheyAreBoundTo) {
  expect_bits_of_one_process_without_threads(
      "", test::replaced(mpirun(2), "--bind-to none", "--bind-to core:overload-allowed"),
      " --threads 2");
}

TEST_F(Ranks, DivideTheCoreOfTaskset) {
  const std::string bind = "taskset -c " + std::to_string(allowed_processors().front());
  expect_bits_of_one_process_without_threads(bind, mpirun(2) + " " + bind);
}

// A control group that exists for one test, with a quota of one core.
class OneCoreGroup {
 public:
  OneCoreGroup() {
    for (const auto& [root, file, text] :
         {std::tuple{"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "100000"},
          std::tuple{"/sys/fs/cgroup", "cpu.max", "100000 100000"}}) {
      folder_ = std::filesystem::path(root) / ("tandem-test-" + std::to_string(::getpid()));
      std::error_code failure;
      if (!std::filesystem::create_directory(folder_, failure)) continue;
      if (std::filesystem::exists(folder_ / file) && std::ofstream(folder_ / file)
                                                         << text << std::flush)
        return;
      ::rmdir(folder_.c_str());
    }
    folder_.clear();
  }
  ~OneCoreGroup() { ::rmdir(folder_.c_str()); }
  OneCoreGroup(const OneCoreGroup&) = delete;
  OneCoreGroup& operator=(const OneCoreGroup&) = delete;

  [[nodiscard]] bool exists() const { return !folder_.empty(); }
  // Shell text that enters it.
  [[nodiscard]] std::string entry() const {
    return "echo $$ > " + (folder_ / "cgroup.procs").string() + " &&";
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(Ranks, DivideTheQuotaOfAControlGroup) {
  const OneCoreGroup group;
  if (!group.exists()) GTEST_SKIP() << "no control group for processors can be made here";
  expect_bits_of_one_process_without_threads(group.entry(), group.entry() + " " + mpirun(2));
  EXPECT_THAT(Desk().tandem("devices", group.entry()).output, HasSubstr("(a quota of 1)"));
}

TEST_F(Ranks, SayThatTheyAreBoundToFewerCoresThanThereAre) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "this machine has one core";
  const Desk desk;
  const std::string core = std::to_string(allowed_processors().front());
  const Outcome two =
      desk.tandem(tiny + "--steps 1 --devices cpu:1 --out two", mpirun(2) + " taskset -c " + core);
  EXPECT_THAT(two.output, testing::ContainsRegex(
                              "cores: rank 0 has 1 of this machine's [0-9]+ \\(bound to 1\\)"));
  const Outcome one =
      desk.tandem(tiny + "--steps 1 --devices cpu:1 --out one", "taskset -c " + core);
  EXPECT_THAT(one.output,
              testing::ContainsRegex("cores: 1 of this machine's [0-9]+ \\(bound to 1\\)"));
  EXPECT_THAT(desk.tandem("devices", "taskset -c " + core).output, HasSubstr("(bound to 1)"));
}

}  // namespace
}  // namespace tandem
