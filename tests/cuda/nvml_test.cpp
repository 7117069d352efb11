// What is read from NVIDIA's management library, with a stand-in for it.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "plugins/cuda/nvml.h"

namespace tandem::cuda {
namespace {

constexpr const char* first = "0000:00:00.0";
constexpr const char* second = "0000:01:00.0";
constexpr const char* in_virtual_machine = "0000:02:00.0";

// The stand-in is beside the libraries of the programs, and is not copied to a machine with a GPU.
class NvLinksFromNvml : public testing::Test {
 protected:
  void SetUp() override {
    const auto programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    library_ = programs.parent_path() / "lib" / "libtandem_fake_nvml.so";
    if (!std::filesystem::exists(library_)) GTEST_SKIP() << "no stand-in for NVML";
  }
  std::string library_;
};

TEST_F(NvLinksFromNvml, HaveTheirOtherEndAndBandwidth) {
  const NvLinks found = find_nvlinks({first, second}, library_.c_str());
  ASSERT_TRUE(found.are_known);
  const std::vector<NvLink>& links = found.links[0];
  ASSERT_EQ(links.size(), 4U) << "an inactive link is not counted";
  EXPECT_EQ(links[0].remote, second);
  EXPECT_EQ(links[0].bandwidth, 20e9);
  EXPECT_EQ(links[1].bandwidth, 25e9);
  EXPECT_EQ(links[2].remote, "0000:0a:00.0") << "as sysfs and CUDA write it";
  EXPECT_FALSE(links[2].leads_to_switch);
  EXPECT_TRUE(links[3].leads_to_switch);
  EXPECT_EQ(links[3].remote, "");
  EXPECT_EQ(links[3].bandwidth, 25e9);
  EXPECT_TRUE(found.links[1].empty());
}

TEST_F(NvLinksFromNvml, HaveTheBandwidthOfTheirVersion) {
  const NvLinks found = find_nvlinks({in_virtual_machine}, library_.c_str());
  ASSERT_EQ(found.links[0].size(), 3U);
  EXPECT_EQ(found.links[0][0].bandwidth, 25e9) << "5 is NVLink 3.1";
  EXPECT_EQ(found.links[0][1].bandwidth, 25e9) << "6 is NVLink 4.0";
  EXPECT_EQ(found.links[0][2].bandwidth, 50e9) << "7 is NVLink 5.0";
}

TEST_F(NvLinksFromNvml, ThatAreHiddenHaveNoOtherEnd) {
  const NvLinks found = find_nvlinks({in_virtual_machine}, library_.c_str());
  ASSERT_EQ(found.links[0].size(), 3U);
  for (const NvLink& link : found.links[0]) {
    EXPECT_EQ(link.remote, "");
    EXPECT_FALSE(link.leads_to_switch);
  }
  EXPECT_TRUE(found.links[0][0].is_of_unknown_type) << "no response";
  EXPECT_TRUE(found.links[0][1].is_of_unknown_type);
  EXPECT_FALSE(found.links[0][2].is_of_unknown_type) << "a GPU that is hidden";
}

TEST_F(NvLinksFromNvml, AreUnknownForAGpuThatTheLibraryDoesNotKnow) {
  EXPECT_FALSE(find_nvlinks({first, "0000:07:00.0"}, library_.c_str()).are_known);
}

TEST(NvLinks, AreUnknownWithoutTheLibrary) {
  EXPECT_FALSE(find_nvlinks({first}, "libthere-is-none.so.1").are_known);
}

}  // namespace
}  // namespace tandem::cuda
