// A GPU's position among PCI switches, read from a folder with the structure of sysfs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "plugins/cuda/pci.h"
#include "tests/support/temp_folder.h"

namespace tandem::cuda {
namespace {

namespace fs = std::filesystem;

class PciPositions : public testing::Test {
 protected:
  // Adds a device with its links, at a path from the host bridge on.
  void add(const std::string& path, const std::string& most, const std::string& now,
           const std::string& width, const std::string& numa = "") {
    const fs::path at = folder_.path() / "devices" / path;
    fs::create_directories(at);
    write(at / "max_link_speed", most);
    write(at / "current_link_speed", now);
    write(at / "current_link_width", width);
    write(at / "numa_node", numa);
    fs::create_directories(folder_.path() / "bus");
    fs::create_directory_symlink(at, folder_.path() / "bus" / at.filename());
  }
  static void write(const fs::path& file, const std::string& text) {
    if (!text.empty()) std::ofstream(file) << text << "\n";
  }
  [[nodiscard]] PciPosition find(const std::string& id) const {
    return find_pci_position(id, (folder_.path() / "bus").string());
  }
  test::TempFolder folder_;
};

TEST_F(PciPositions, UnderASwitchHaveTheSwitchsLinkToo) {
  const std::string root = "pci0000:00", port = root + "/0000:00:02.0", up = port + "/0000:02:00.0",
                    down = up + "/0000:03:08.0", gpu = down + "/0000:04:00.0";
  add(port, "16.0 GT/s PCIe", "16.0 GT/s PCIe", "16");
  add(up, "16.0 GT/s PCIe", "16.0 GT/s PCIe", "16");
  add(down, "8.0 GT/s PCIe", "8.0 GT/s PCIe", "16");
  // An idle GPU has slowed its link.
  add(gpu, "16.0 GT/s PCIe", "2.5 GT/s PCIe", "8", "1");
  const PciPosition position = find("0000:04:00.0");
  ASSERT_EQ(position.links.size(), 2U);
  EXPECT_EQ(position.links[0].above, "0000:02:00.0");
  EXPECT_EQ(position.links[0].text, "PCIe 8 GT/s x8, sysfs") << "as slow as the port above";
  EXPECT_EQ(position.links[1].below, "0000:02:00.0");
  EXPECT_EQ(position.links[1].above, "pci0000:00");
  EXPECT_EQ(position.links[1].text, "PCIe 16 GT/s x16, sysfs");
  EXPECT_EQ(position.numa_node, 1);
}

TEST_F(PciPositions, UnderARootPortHaveOnlyTheirOwnLink) {
  add("pci0000:80/0000:80:01.0/0000:AB:00.0", "16.0 GT/s PCIe", "", "16");
  fs::rename(folder_.path() / "bus" / "0000:AB:00.0", folder_.path() / "bus" / "0000:ab:00.0");
  const PciPosition position = find("0000:AB:00.0");
  ASSERT_EQ(position.links.size(), 1U);
  EXPECT_EQ(position.links[0].above, "pci0000:80");
  EXPECT_EQ(position.numa_node, -1);
}

TEST_F(PciPositions, WithoutASpeedAreEstimatedAndReportIt) {
  add("pci0000:00/0000:00:05.0", "Unknown", "Unknown", "0");
  const PciPosition position = find("0000:00:05.0");
  ASSERT_EQ(position.links.size(), 1U);
  EXPECT_EQ(position.links[0].text, "PCIe 16 GT/s x16, estimated");
}

TEST_F(PciPositions, ThatAreUnknownHaveNoLinks) {
  EXPECT_TRUE(find("0000:04:00.0").links.empty());
}

TEST(PciBandwidth, ExcludesTheCodingBits) {
  EXPECT_DOUBLE_EQ(pci_bandwidth(2.5, 16), 4e9);
  EXPECT_NEAR(pci_bandwidth(16, 16), 31.5e9, 0.02e9);
}

}  // namespace
}  // namespace tandem::cuda
