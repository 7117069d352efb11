// Which links are counted of those that NVML reports.
#include "plugins/cuda/link_facts.h"

#include <gtest/gtest.h>

namespace tandem::cuda {
namespace {

const std::vector<std::string> ids{"0000:00:00.0", "0000:01:00.0"};

LinkFacts two(int major, int nvlink_peers) {
  LinkFacts facts;
  facts.gpus.resize(2);
  facts.peers.resize(4);
  for (GpuFacts& gpu : facts.gpus) {
    gpu.major = major;
    gpu.nvlink_peers = nvlink_peers;
  }
  return facts;
}

NvLinks both(const NvLink& link) {
  return {true, {{link, link}, {link, link}}};
}

TEST(NvLinkCount, CountsLinksToAGpuForThePair) {
  LinkFacts facts = two(8, 1);
  const NvLink there{ids[1], 25e9}, back{ids[0], 25e9}, elsewhere{"0000:0a:00.0", 25e9};
  count_nvlinks({true, {{there, there, elsewhere}, {back, back}}}, ids, facts);
  EXPECT_EQ(facts.peers[1].nvlinks, 2);
  EXPECT_EQ(facts.peers[2].nvlinks, 2);
  EXPECT_EQ(facts.peers[1].nvlink_bandwidth, 25e9);
  EXPECT_EQ(facts.gpus[0].switch_links, 0);
}

TEST(NvLinkCount, CountsLinksWithAHiddenEndForASwitch) {
  const NvLinks hidden = both({"", 25e9, false, true});
  LinkFacts facts = two(9, 1);
  count_nvlinks(hidden, ids, facts);
  EXPECT_EQ(facts.gpus[0].switch_links, 2);
  EXPECT_EQ(facts.gpus[1].switch_link_bandwidth, 25e9);
  LinkFacts strangers = two(9, 0);
  count_nvlinks(hidden, ids, strangers);
  EXPECT_EQ(strangers.gpus[0].switch_links, 0) << "they have no atomics with each other";
  LinkFacts old = two(7, 1);
  count_nvlinks(hidden, ids, old);
  EXPECT_EQ(old.gpus[0].switch_links, 0) << "boards of these have links from GPU to GPU";
}

TEST(NvLinkCount, DoesNotCountLinksToAHiddenGpu) {
  LinkFacts facts = two(9, 1);
  count_nvlinks(both({"", 25e9, false, false}), ids, facts);
  EXPECT_EQ(facts.gpus[0].switch_links, 0);
  EXPECT_EQ(facts.peers[1].nvlinks, 0);
}

}  // namespace
}  // namespace tandem::cuda
