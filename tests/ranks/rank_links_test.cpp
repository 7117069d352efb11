// The topology that plans of several ranks are made for, from what was measured between them, and
// which way the measured messages go.
#include "core/ranks/rank_links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "core/schedule/cost/topology_file.h"
#include "tests/support/backend_copy.h"
#include "tests/support/thread_links.h"
#include "tests/support/thread_transport.h"

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

// A backend of devices "far", which are those of the cpu behind memory that the host cannot reach.
Registry registry_of_far_devices(bool has_links) {
  static test::BackendCopy far(Registry::with_defaults().backend("cpu"));
  far.table.kind = "far";
  far.buffers.host_addressable = 0;
  Registry registry =
      has_links ? test::ThreadLinks::registry_with("far") : Registry::with_defaults();
  registry.load([](const tandem_host*) -> const tandem_plugin* {
    static const tandem_backend* tables[] = {&far.table};
    static const tandem_backends part{sizeof(tandem_backends), TANDEM_BACKENDS_MAJOR,
                                      TANDEM_BACKENDS_MINOR, 1, tables};
    static tandem_plugin plugin{};
    plugin.abi_major = TANDEM_ABI_MAJOR;
    plugin.abi_minor = TANDEM_ABI_MINOR;
    plugin.struct_size = sizeof plugin;
    plugin.name = "far";
    plugin.version = "1";
    plugin.backends = &part;
    return &plugin;
  });
  return registry;
}

// Of two ranks, as rank 0 has it.
RankLinks measured_between_far_devices(bool has_links) {
  test::ThreadWorld world(2);
  const Registry registries[2] = {registry_of_far_devices(has_links),
                                  registry_of_far_devices(has_links)};
  RankLinks result;
  const auto measure = [&](int rank) {
    world.join(rank);
    Communicator ranks(test::ThreadWorld::transport(), 60);
    ranks.set_hosts({{"a", "b"}, 1});
    const RankLinks links =
        measure_rank_links(ranks, registries[rank], parse_devices("far:1", registries[rank]), 1);
    if (rank == 0) result = links;
  };
  std::thread other(measure, 1);
  measure(0);
  other.join();
  return result;
}

TEST(MeasuredRankLinks, AreThoseThatWillCarryTheMessages) {
  test::ThreadLinks links;
  RankLinks measured = measured_between_far_devices(true);
  EXPECT_EQ(measured.path, "messages between devices: threads of one process");
  ASSERT_TRUE(measured.to_first[1]);
  EXPECT_GT(measured.to_first[1]->bandwidth, 0);
  EXPECT_GE(std::count(links.calls.begin(), links.calls.end(), "transfer ends"), 40)
      << "7 and 3 rounds of two messages with two ends each";
  EXPECT_EQ(links.opened, links.closed);

  links.calls.clear();
  measured = measured_between_far_devices(false);
  EXPECT_EQ(measured.path,
            "messages between devices go through the host's memory: there is no module for "
            "messages between devices 'far'");
  ASSERT_TRUE(measured.to_first[1]);
  EXPECT_GT(measured.to_first[1]->bandwidth, 0);
  EXPECT_TRUE(links.calls.empty());
}

}  // namespace
}  // namespace tandem
