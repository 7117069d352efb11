// The processors of a process: its affinity, quotas of control groups, and what ranks share. The
// control groups are files in a folder.
#include "core/base/processors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "core/base/parallel.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using testing::IsEmpty;

// A process on a machine of 8 cores that may run on `allowed`.
ProcessorUse on(std::vector<int> allowed, std::vector<ProcessorQuota> quotas = {}) {
  return {"machine", 8, std::move(allowed), std::move(quotas)};
}

const std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7};

std::vector<double> quotas_in(const test::TempFolder& root) {
  std::vector<double> found;
  for (const ProcessorQuota& quota : processor_quotas(root.path())) {
    found.push_back(quota.processors);
  }
  return found;
}

TEST(Processors, HaveTheQuotaOfEveryLevelOfVersion2) {
  const test::TempFolder root;
  (void)root.write("proc/self/cgroup", "0::/slice/job\n");
  (void)root.write("sys/fs/cgroup/slice/job/cpu.max", "max 100000\n");
  (void)root.write("sys/fs/cgroup/slice/cpu.max", "350000 100000\n");
  EXPECT_EQ(quotas_in(root), (std::vector<double>{3.5}));
  (void)root.write("sys/fs/cgroup/slice/job/cpu.max", "50000 100000\n");
  EXPECT_EQ(quotas_in(root), (std::vector<double>{0.5, 3.5}));
  EXPECT_EQ(processor_share({on(all, processor_quotas(root.path()))}, 0), 1);
}

TEST(Processors, HaveTheQuotaOfVersion1AndOfAContainersOwnRoot) {
  const test::TempFolder root;
  (void)root.write("proc/self/cgroup", "4:memory:/docker/1\n3:cpu,cpuacct:/docker/1\n0::/\n");
  (void)root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  (void)root.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(quotas_in(root), (std::vector<double>{4}));
  (void)root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_THAT(quotas_in(root), IsEmpty());
}

TEST(Processors, AreNotLimitedByWhatCannotBeRead) {
  const test::TempFolder root;
  EXPECT_THAT(quotas_in(root), IsEmpty());
  (void)root.write("proc/self/cgroup", "nonsense\n0:\n");
  (void)root.write("sys/fs/cgroup/cpu.max", "nonsense");
  EXPECT_THAT(quotas_in(root), IsEmpty());
  EXPECT_GE(processor_share({own_processors(root.path())}, 0), 1);
}

TEST(Processors, AreThoseOfTheAffinity) {
  const std::vector<int> before = allowed_processors();
  ASSERT_FALSE(before.empty());
  std::jthread bound([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(before.back(), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(allowed_processors(), (std::vector<int>{before.back()}));
    EXPECT_EQ(processor_count(), 1);
  });
}

TEST(Processors, AreDividedAmongTheRanksThatShareThem) {
  EXPECT_EQ(processor_share({on(all), on(all), on(all)}, 1), 2);
  EXPECT_EQ(processor_share({on(all), {"other", 8, all, {}}}, 0), 8);
  EXPECT_EQ(processor_share({on({0, 1}), on({2, 3, 4})}, 0), 2) << "each is bound to its own";
  EXPECT_EQ(processor_share({on({0, 1}), on({2, 3, 4})}, 1), 3);
  EXPECT_EQ(processor_share({on({0, 1, 2, 3}), on({2, 3})}, 0), 3) << "0, 1, and half of 2 and 3";
  EXPECT_EQ(processor_share({on({0}), on({0}), on({0})}, 2), 1) << "never none";
  const std::vector<ProcessorUse> many(6, on({0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(processor_share(many, 5), 1) << "six sixths";
}

TEST(Processors, OfAQuotaAreDividedAmongTheRanksInItsGroup) {
  const ProcessorQuota four{"1:1", 4}, three{"1:2", 3}, part{"1:3", 1.5};
  EXPECT_EQ(processor_share({on(all, {four})}, 0), 4);
  EXPECT_EQ(processor_share({on(all, {part})}, 0), 2) << "the second one for half of the time";
  EXPECT_EQ(processor_share({on(all, {four}), on(all, {four})}, 0), 2);
  EXPECT_EQ(processor_share({on(all, {three, four}), on(all, {four})}, 0), 2);
  EXPECT_EQ(processor_share({on(all, {four}), on(all, {three})}, 0), 4) << "groups of their own";
}

// One process with R devices gives each floor(cores / R), whose bits ranks have.
TEST(Processors, OfRanksAreThoseOfTheDevicesOfOneProcess) {
  for (int cores = 1; cores <= 8; ++cores) {
    for (size_t ranks = 1; ranks <= 9; ++ranks) {
      const ProcessorUse bound = on(std::vector<int>(all.begin(), all.begin() + cores));
      const ProcessorUse limited = on(all, {{"1:1", double(cores)}});
      for (const ProcessorUse& one : {bound, limited}) {
        const int alone = processor_share({one}, 0);
        EXPECT_EQ(processor_share(std::vector<ProcessorUse>(ranks, one), 0),
                  std::max(1, alone / static_cast<int>(ranks)));
      }
    }
  }
}

TEST(Processors, SayWhyTheyAreFewerThanTheMachineHas) {
  EXPECT_EQ(processor_limits({on(all)}, 0), "");
  EXPECT_EQ(processor_limits({on({0, 1, 2, 3}), on({4, 5, 6, 7})}, 0), "") << "all are used";
  EXPECT_EQ(processor_limits({on({2, 5})}, 0), "2 of this machine's 8 (bound to 2)");
  EXPECT_EQ(processor_limits({on(all, {{"1:1", 2.5}})}, 0),
            "3 of this machine's 8 (a quota of 2.5)");
  EXPECT_EQ(processor_limits({on({1}), on({2})}, 1), "1 of this machine's 8 (bound to 1)");
  EXPECT_EQ(processor_limits({on(all), on(all), on(all)}, 0), "") << "2 are left, but by nobody";
  const ProcessorUse in_one = on(all, {{"1:1", 1}});
  EXPECT_EQ(processor_limits({in_one, in_one}, 1), "1 of this machine's 8 (a quota of 1)");
}

}  // namespace
}  // namespace tandem
