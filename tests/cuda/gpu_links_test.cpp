// The links of made-up machines: their channels and paths, and the sources of the numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/cuda/gpu_links.h"
#include "plugins/sdk.h"

namespace tandem::cuda {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

GpuFacts gpu(int number, int major = 7, int minor = 0) {
  GpuFacts facts;
  facts.name = sdk::text("cuda:", number);
  facts.major = major;
  facts.minor = minor;
  facts.memory_bandwidth = 800e9;
  return facts;
}

// Without P2P, each GPU a device.
LinkFacts machine(size_t count, int major = 7, int minor = 0) {
  LinkFacts facts;
  for (size_t i = 0; i < count; ++i) {
    facts.gpus.push_back(gpu(static_cast<int>(i), major, minor));
    facts.devices.push_back(i);
  }
  facts.peers.resize(count * count);
  return facts;
}

PeerFacts& peer(LinkFacts& facts, size_t source, size_t target) {
  return facts.peers[source * facts.gpus.size() + target];
}
void give_access(LinkFacts& facts) {
  for (PeerFacts& pair : facts.peers) pair.has_access = true;
}

// Two switches under one host bridge, two GPUs under each.
LinkFacts four_under_two_switches() {
  LinkFacts facts = machine(4);
  for (size_t i = 0; i < 4; ++i) {
    const std::string id = sdk::text("0000:0", i, ":00.0"), port = i < 2 ? "switch a" : "switch b";
    facts.gpus[i].pci = {{id, port, 16e9, "PCIe 8 GT/s x16, sysfs"},
                         {port, "pci0000:00", 16e9, "PCIe 8 GT/s x16, sysfs"}};
  }
  return facts;
}

struct Way {
  std::vector<std::string> names;
  double bandwidth = 1e18;  // of the slowest channel
};
Way way(const LinkMap& map, size_t devices, size_t source, size_t target) {
  Way result;
  const size_t pair = source * devices + target;
  for (uint32_t i = map.begins[pair]; i < map.begins[pair + 1]; ++i) {
    result.names.push_back(map.names[map.channels[i]]);
    result.bandwidth = std::min(result.bandwidth, map.bandwidths[map.channels[i]]);
  }
  return result;
}

TEST(GpuLinks, UnderOneSwitchDoNotReachTheHost) {
  LinkFacts facts = four_under_two_switches();
  give_access(facts);
  const LinkMap map = map_links(facts);
  EXPECT_THAT(way(map, 4, 0, 1).names, ElementsAre("cuda:0 -> switch a (PCIe 8 GT/s x16, sysfs)",
                                                   "switch a -> cuda:1 (PCIe 8 GT/s x16, sysfs)"));
  EXPECT_DOUBLE_EQ(way(map, 4, 0, 1).bandwidth, 0.85 * 16e9);
}

TEST(GpuLinks, UnderTwoSwitchesShareTheSwitchesLinks) {
  LinkFacts facts = four_under_two_switches();
  give_access(facts);
  const LinkMap map = map_links(facts);
  const Way first = way(map, 4, 0, 2), second = way(map, 4, 1, 3);
  EXPECT_THAT(first.names, ElementsAre("cuda:0 -> switch a (PCIe 8 GT/s x16, sysfs)",
                                       "switch a -> pci0000:00 (PCIe 8 GT/s x16, sysfs)",
                                       "pci0000:00 -> switch b (PCIe 8 GT/s x16, sysfs)",
                                       "switch b -> cuda:2 (PCIe 8 GT/s x16, sysfs)"));
  EXPECT_EQ(first.names[1], second.names[1]);
  EXPECT_EQ(first.names[2], second.names[2]);
}

TEST(GpuLinks, WithoutPeerAccessGoThroughHostMemory) {
  const LinkFacts facts = four_under_two_switches();
  const LinkMap map = map_links(facts);
  const Way way01 = way(map, 4, 0, 1);
  EXPECT_THAT(way01.names, testing::Contains("host memory (no P2P; estimated)"));
  EXPECT_THAT(way01.names, testing::Contains(HasSubstr("switch a -> pci0000:00")));
  LinkFacts with_access = facts;
  give_access(with_access);
  EXPECT_GT(map.latencies[1], map_links(with_access).latencies[1]);
}

TEST(GpuLinks, OfDifferentProcessorsShareTheLinkBetweenThem) {
  LinkFacts facts = machine(2);
  give_access(facts);
  for (size_t i = 0; i < 2; ++i) {
    facts.gpus[i].numa_node = static_cast<int32_t>(i);
    facts.gpus[i].pci = {{"id", sdk::text("pci0000:", i), 16e9, "PCIe"}};
  }
  EXPECT_THAT(way(map_links(facts), 2, 0, 1).names,
              ElementsAre("cuda:0 -> pci0000:0 (PCIe)", "between the processors (estimated)",
                          "pci0000:1 -> cuda:1 (PCIe)"));
  facts.gpus[1].numa_node = 0;
  EXPECT_EQ(way(map_links(facts), 2, 0, 1).names.size(), 2U) << "one processor's host bridges";
}

// A cube with doubled edges, like the first machines with eight GPUs: 0-1, 0-2, 0-3 and 0-4 ...
TEST(GpuLinks, ByNvlinkBelongToOnePair) {
  LinkFacts facts = machine(4);
  give_access(facts);
  for (const auto& [a, b, links] : {std::tuple(0, 1, 1), {0, 2, 1}, {0, 3, 2}, {1, 2, 2}}) {
    for (const auto& [from, to] : {std::pair(a, b), {b, a}}) {
      PeerFacts& pair = peer(facts, static_cast<size_t>(from), static_cast<size_t>(to));
      pair.nvlinks = links;
      pair.nvlink_bandwidth = 25e9;
    }
  }
  const LinkMap map = map_links(facts);
  EXPECT_THAT(way(map, 4, 0, 1).names, ElementsAre("cuda:0 -> cuda:1 (1 NVLink, NVML)"));
  EXPECT_THAT(way(map, 4, 3, 0).names, ElementsAre("cuda:3 -> cuda:0 (2 NVLinks, NVML)"));
  EXPECT_DOUBLE_EQ(way(map, 4, 3, 0).bandwidth, 0.85 * 50e9);
  EXPECT_THAT(way(map, 4, 1, 3).names, Each(HasSubstr("PCIe"))) << "no NVLink between them";
}

TEST(GpuLinks, OnNvswitchesCarryAllTrafficOfTheirGpu) {
  LinkFacts facts = machine(4, 9);
  give_access(facts);
  for (GpuFacts& one : facts.gpus) {
    one.switch_links = 18;
    one.switch_link_bandwidth = 25e9;
  }
  const LinkMap map = map_links(facts);
  const Way first = way(map, 4, 0, 1), second = way(map, 4, 0, 2);
  EXPECT_THAT(first.names, ElementsAre("cuda:0 -> NVSwitch (18 NVLinks, NVML)",
                                       "NVSwitch -> cuda:1 (18 NVLinks, NVML)"));
  EXPECT_EQ(first.names[0], second.names[0]);
  EXPECT_DOUBLE_EQ(first.bandwidth, 0.85 * 450e9);
}

// NVML's versions promise 50 GB/s, but these boards have slower links.
TEST(GpuLinks, AreLimitedByTheLinksOfTheirGpu) {
  for (const auto& [major, minor, most] :
       {std::tuple(8, 6, 14e9), {8, 0, 25e9}, {9, 0, 25e9}, {10, 0, 50e9}}) {
    LinkFacts facts = machine(2, major, minor);
    give_access(facts);
    for (PeerFacts& pair : facts.peers) {
      pair.nvlinks = 2;
      pair.nvlink_bandwidth = 50e9;
    }
    EXPECT_DOUBLE_EQ(way(map_links(facts), 2, 0, 1).bandwidth, 0.85 * 2 * most) << major;
    for (GpuFacts& one : facts.gpus) {
      one.switch_links = 6;
      one.switch_link_bandwidth = 50e9;
    }
    EXPECT_DOUBLE_EQ(way(map_links(facts), 2, 0, 1).bandwidth, 0.85 * 6 * most) << major;
  }
}

TEST(GpuLinks, ThatNvmlDoesNotReportAreEstimatedIfThereAreNativeAtomics) {
  LinkFacts facts = machine(3, 8);
  give_access(facts);
  for (PeerFacts& pair : facts.peers) pair.has_native_atomics = true;
  for (GpuFacts& one : facts.gpus) one.nvlink_peers = 2;
  peer(facts, 0, 1).nvlinks = peer(facts, 1, 0).nvlinks = 4;
  peer(facts, 0, 1).nvlink_bandwidth = peer(facts, 1, 0).nvlink_bandwidth = 25e9;
  const LinkMap map = map_links(facts);
  EXPECT_THAT(way(map, 3, 0, 1).names, ElementsAre("cuda:0 -> cuda:1 (4 NVLinks, NVML)"));
  EXPECT_THAT(way(map, 3, 0, 2).names,
              ElementsAre("cuda:0 -> cuda:2 (6 NVLinks, estimated for compute capability 8.0)"));
}

// Six links and four neighbors each: two of them have two links.
TEST(GpuLinks, WithoutNvmlAreEstimatedFromAtomicsAndRanks) {
  LinkFacts facts = machine(3);
  give_access(facts);
  for (GpuFacts& one : facts.gpus) one.nvlink_peers = 4;
  const auto link = [&](size_t a, size_t b, int32_t rank) {
    for (PeerFacts* pair : {&peer(facts, a, b), &peer(facts, b, a)}) {
      pair->has_native_atomics = true;
      pair->rank = rank;
    }
  };
  link(0, 1, 1);
  link(0, 2, 0);
  const LinkMap map = map_links(facts);
  EXPECT_THAT(way(map, 3, 0, 1).names,
              ElementsAre("cuda:0 -> cuda:1 (1 NVLink, estimated for compute capability 7.0)"));
  EXPECT_THAT(way(map, 3, 2, 0).names,
              ElementsAre("cuda:2 -> cuda:0 (2 NVLinks, estimated for compute capability 7.0)"));
  EXPECT_THAT(way(map, 3, 1, 2).names, Each(HasSubstr("PCIe x16, estimated")));
}

TEST(GpuLinks, WithoutNvmlGoAllToTheOnlyNeighbor) {
  LinkFacts facts = machine(3, 8);
  give_access(facts);
  for (PeerFacts* pair : {&peer(facts, 0, 1), &peer(facts, 1, 0)}) pair->has_native_atomics = true;
  facts.gpus[0].nvlink_peers = facts.gpus[1].nvlink_peers = 1;
  EXPECT_THAT(way(map_links(facts), 3, 0, 1).names,
              ElementsAre("cuda:0 -> cuda:1 (12 NVLinks, estimated for compute capability 8.0)"));
}

TEST(GpuLinks, WithoutNvmlAndWithManyNeighborsAreEstimatedAsASwitch) {
  LinkFacts facts = machine(3, 9);
  give_access(facts);
  for (PeerFacts& pair : facts.peers) pair.has_native_atomics = true;
  for (GpuFacts& one : facts.gpus) one.nvlink_peers = 7;
  EXPECT_THAT(way(map_links(facts), 3, 0, 1).names,
              ElementsAre("cuda:0 -> NVSwitch (18 NVLinks, estimated for compute capability 9.0)",
                          "NVSwitch -> cuda:1 (18 NVLinks, estimated for compute capability 9.0)"));
  for (GpuFacts& one : facts.gpus) one.nvlink_peers = 3;
  EXPECT_THAT(way(map_links(facts), 3, 0, 1).names,
              ElementsAre("cuda:0 -> cuda:1 (6 NVLinks, estimated for compute capability 9.0)"));
}

TEST(GpuLinks, OfTwoDevicesOnOneGpuAreItsMemory) {
  LinkFacts facts = machine(1);
  facts.devices = {0, 0};
  const LinkMap map = map_links(facts);
  EXPECT_THAT(way(map, 2, 0, 1).names, ElementsAre("memory of cuda:0 (read and written)"));
  EXPECT_EQ(way(map, 2, 0, 1).names, way(map, 2, 1, 0).names) << "both directions share it";
  EXPECT_DOUBLE_EQ(way(map, 2, 0, 1).bandwidth, 400e9);
  facts.gpus[0].memory_bandwidth = 0;
  EXPECT_THAT(way(map_links(facts), 2, 0, 1).names, ElementsAre("memory of cuda:0 (estimated)"));
}

TEST(GpuLinks, FormATableWithAPathForEachPairAndANameForEachChannel) {
  LinkFacts facts = four_under_two_switches();
  give_access(facts);
  LinkMap map = map_links(facts);
  const tandem_topology table = map.table();
  EXPECT_EQ(table.channel_count, 12U);  // six links, two directions
  EXPECT_EQ(map.latencies.size(), 16U);
  EXPECT_EQ(map.begins.size(), 17U);
  EXPECT_EQ(map.begins[0], map.begins[1]) << "from a device to itself there is nothing";
  EXPECT_STREQ(table.channel_names[0], map.names[0].c_str());
  EXPECT_EQ(table.path_begins[16], map.channels.size());
}

}  // namespace
}  // namespace tandem::cuda
