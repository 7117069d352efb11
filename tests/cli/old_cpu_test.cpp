// A CPU without AVX, which qemu-user emulates: no illegal instruction, and the same results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/cli/program.h"

namespace tandem {
namespace {

using test::Desk;
using test::Outcome;
using testing::HasSubstr;

class CpuWithoutAvx : public testing::Test {
 protected:
  void SetUp() override {
#if !defined(__x86_64__)
    GTEST_SKIP() << "not an x86-64 CPU";
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "qemu-user does not run sanitizer builds";
#endif
    if (std::system("qemu-x86_64 --version > /dev/null 2>&1") != 0) {
      GTEST_SKIP() << "qemu-x86_64 (Debian: qemu-user) is not installed";
    }
  }
  std::string output(const std::string& arguments, const std::string& before) const {
    const Outcome outcome = desk_.tandem(arguments, before);
    EXPECT_EQ(outcome.code, 0) << before << " " << arguments << "\n"
                               << outcome.output << outcome.errors;
    return outcome.output;
  }

  const std::string old_cpu_ = "qemu-x86_64 -cpu Nehalem",
                    same_kernels_ = "ONEDNN_MAX_CPU_ISA=SSE41";
  Desk desk_;
};

TEST_F(CpuWithoutAvx, HasTheKernelsThatTheCapLeaves) {
  EXPECT_THAT(output("devices", old_cpu_), HasSubstr("with SSE4.1; "));
}

TEST_F(CpuWithoutAvx, TrainsToTheSameBitsAsACappedOne) {
  desk_.draw_two_classes("images");
  const std::string train = "train --net tiny.prototxt --data images --batch 4 --steps 2 --out ";
  output(train + "old", old_cpu_);
  output(train + "capped", same_kernels_);
  EXPECT_EQ(desk_.read("old/last.safetensors"), desk_.read("capped/last.safetensors"));
}

// With oneDNN's kernels and our own: convolution, pooling, LRN, inner products, the update.
TEST_F(CpuWithoutAvx, ComputesALargerNet) {
  EXPECT_THAT(output("profile --net cifar10_full --batch 2 --steps 1 --warm-up 1", old_cpu_),
              HasSubstr("norm1"));
}

}  // namespace
}  // namespace tandem
