// The topology that plans of several ranks are made for, from what was measured between them.
#include "core/train/rank_links.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/schedule/cost/topology_file.h"

namespace tandem {
namespace {

// Two ranks on one host, one on another.
RankLinks three_ranks() {
  RankLinks links;
  links.host_of_rank = {0, 0, 1};
  links.hosts = {"a", "b"};
  links.within = {LinkSpeed{4e9, 2e-6}, std::nullopt};
  links.to_first = {std::nullopt, LinkSpeed{1e9, 40e-6}};
  links.copies = LinkSpeed{10e9, 1e-6};
  return links;
}

TEST(RankLinks, GiveEachPairOfDevicesTheSpeedOfItsSlowestPart) {
  const Topology topology = parse_topology(rank_topology_text(three_ranks(), 2), "test");
  ASSERT_EQ(topology.device_count(), 6);
  EXPECT_DOUBLE_EQ(topology.bandwidth(0, 1), 10e9) << "in one rank";
  EXPECT_DOUBLE_EQ(topology.bandwidth(4, 5), 10e9) << "in the only rank of a host";
  EXPECT_DOUBLE_EQ(topology.path(4, 5).latency, 1e-6);
  EXPECT_DOUBLE_EQ(topology.bandwidth(0, 2), 4e9) << "of two ranks of a host";
  EXPECT_DOUBLE_EQ(topology.bandwidth(5, 0), 1e9) << "of two hosts";
  EXPECT_DOUBLE_EQ(topology.path(0, 2).latency, 2e-6);
  EXPECT_DOUBLE_EQ(topology.path(4, 0).latency, 40e-6 + 1e-6 + 0.6e-6) << "network, host a, host b";
}

TEST(RankLinks, OfOneHostShareTheirWayToTheNetwork) {
  const Topology topology = parse_topology(rank_topology_text(three_ranks(), 1), "test");
  const auto& first = topology.path(0, 2).channels;
  const auto& second = topology.path(1, 2).channels;
  EXPECT_FALSE(std::ranges::find_first_of(first, second) == first.end());
}

TEST(RankLinks, OfOneHostNeedNoNetwork) {
  RankLinks links;
  links.host_of_rank = {0, 0};
  links.hosts = {"a"};
  links.within = {LinkSpeed{4e9, 2e-6}};
  links.to_first = {std::nullopt};
  const std::string text = rank_topology_text(links, 1);
  EXPECT_EQ(text.find("network"), std::string::npos);
  EXPECT_DOUBLE_EQ(parse_topology(text, "test").bandwidth(0, 1), 4e9);
}

}  // namespace
}  // namespace tandem
