#include "core/train/rank_links.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "core/base/error.h"
#include "core/schedule/cost/topology_file.h"
#include "core/train/measure_links.h"

namespace tandem {
namespace {

// Large enough that what a network lets through at once, as after a pause, hardly counts.
constexpr int64_t small_message = 4 << 10, large_message = int64_t{32} << 20;
constexpr int small_rounds = 7, large_rounds = 3;
constexpr const char* timed_message = "a message whose time is measured";

// Half of the least time that a message to `peer` and back takes; a message that comes later than
// others was held up.
double one_way_seconds(const Communicator& ranks, int peer, bool begins, int rounds,
                       std::vector<std::byte>& message, int64_t bytes) {
  double least = -1;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    if (begins) ranks.send(peer, message.data(), bytes, timed_message);
    ranks.receive(peer, message.data(), bytes, timed_message);
    if (!begins) ranks.send(peer, message.data(), bytes, timed_message);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    if (round > 0 && (least < 0 || time.count() < least)) least = time.count();
  }
  return least / 2;
}

// Between this rank and `peer`. The small message takes no time of the bandwidth: a network lets
// it through at once.
LinkSpeed measure_pair(const Communicator& ranks, int peer, bool begins) {
  std::vector<std::byte> message(static_cast<size_t>(large_message));
  LinkSpeed link;
  link.latency = one_way_seconds(ranks, peer, begins, small_rounds, message, small_message);
  const double longest = one_way_seconds(ranks, peer, begins, large_rounds, message, large_message);
  link.bandwidth = static_cast<double>(large_message) / std::max(longest - link.latency, 1e-9);
  return link;
}

// Between two ranks, to rank 0. Called by all ranks, so that no other pair is measured meanwhile.
LinkSpeed measure(const Communicator& ranks, int first, int second) {
  LinkSpeed link;
  const int me = ranks.rank();
  if (me == first || me == second) {
    link = measure_pair(ranks, me == first ? second : first, me == first);
  }
  const std::string what = fmt::format("the speed of its messages to rank {}", second);
  if (first != 0 && me == first) ranks.send(0, &link, sizeof(link), what.c_str());
  if (first != 0 && me == 0) ranks.receive(first, &link, sizeof(link), what.c_str());
  int64_t done = 1;
  ranks.broadcast(&done, sizeof(done), "the end of a measurement");
  return link;
}

std::string link_text(const std::string& from, const std::string& to, const LinkSpeed& link) {
  return fmt::format(
      "link {{ between: \"{}\" and: \"{}\" bandwidth: \"{:.6g}GB/s\" latency: \"{:.4g}us\" }}\n",
      from, to, link.bandwidth / 1e9, link.latency * 1e6);
}

std::string device_name(size_t rank, int device) {
  return fmt::format("rank{}:{}", rank, device);
}

RankLinks measure_messages(const Communicator& ranks) {
  const std::vector<std::string>& names = ranks.hosts().names;
  RankLinks links;
  std::vector<std::vector<int>> ranks_of;
  for (size_t rank = 0; rank < names.size(); ++rank) {
    const auto found = std::find(links.hosts.begin(), links.hosts.end(), names[rank]);
    const auto host = static_cast<size_t>(found - links.hosts.begin());
    if (found == links.hosts.end()) {
      links.hosts.push_back(names[rank]);
      ranks_of.emplace_back();
    }
    links.host_of_rank.push_back(static_cast<int>(host));
    ranks_of[host].push_back(static_cast<int>(rank));
  }
  for (size_t host = 0; host < ranks_of.size(); ++host) {
    const std::vector<int>& of_host = ranks_of[host];
    links.within.emplace_back();
    links.to_first.emplace_back();
    if (of_host.size() > 1) links.within[host] = measure(ranks, of_host[0], of_host[1]);
    if (host > 0) links.to_first[host] = measure(ranks, ranks_of[0][0], of_host[0]);
  }
  return links;
}

}  // namespace

RankLinks measure_rank_links(const Communicator& ranks, const Registry& registry,
                             const DeviceSpec& spec) {
  RankLinks links = measure_messages(ranks);
  if (ranks.rank() == 0 && spec.count() > 1) {
    const Machine machine(registry.backend(spec.kind), spec, MachineOptions{});
    const MeasuredLink copies = measure_link(machine, 0, 1).alone;
    links.copies = {copies.bandwidth, copies.latency};
  }
  return links;
}

std::shared_ptr<const Topology> measured_topology(const Communicator& ranks,
                                                  const Registry& registry,
                                                  const DeviceSpec& spec) {
  const RankLinks links = measure_rank_links(ranks, registry, spec);
  const std::string text = ranks.rank() == 0 ? rank_topology_text(links, spec.count()) : "";
  return std::make_shared<Topology>(parse_topology(
      ranks.broadcast_text(text, "the links that were measured"), "measured between ranks"));
}

std::string rank_topology_text(const RankLinks& links, int devices) {
  std::string text, network;
  for (size_t rank = 0; rank < links.host_of_rank.size(); ++rank) {
    for (int device = 0; device < devices; ++device) {
      text += fmt::format("device {{ name: \"{}\" }}\n", device_name(rank, device));
    }
  }
  // The first host reaches the network as fast as the fastest of the others.
  std::optional<LinkSpeed> fastest;
  for (const auto& link : links.to_first) {
    if (link && (!fastest || link->bandwidth > fastest->bandwidth)) fastest = link;
  }
  const bool has_network = fastest.has_value();
  if (has_network) text += "switch { name: \"network\" }\n";
  for (size_t host = 0; host < links.hosts.size(); ++host) {
    text += fmt::format("switch {{ name: \"host{}\" }}\n", host);
    if (!has_network) continue;
    LinkSpeed link = links.to_first[host].value_or(*fastest);
    link.latency /= 2;  // of the way from host to host
    network += link_text(fmt::format("host{}", host), "network", link);
  }
  for (size_t rank = 0; rank < links.host_of_rank.size(); ++rank) {
    const auto host = static_cast<size_t>(links.host_of_rank[rank]);
    LinkSpeed link{1e12, 0};  // a host of one device: the way to the network alone takes time
    // Copies in a rank have links of their own, and no faster way through the host.
    if (links.copies && devices > 1) link = {links.copies->bandwidth, 0.6 * links.copies->latency};
    if (links.within[host]) link = {links.within[host]->bandwidth, links.within[host]->latency / 2};
    for (int device = 0; device < devices; ++device) {
      network += link_text(device_name(rank, device), fmt::format("host{}", host), link);
      for (int other = device + 1; other < devices && links.copies; ++other) {
        network += link_text(device_name(rank, device), device_name(rank, other), *links.copies);
      }
    }
  }
  return text + network;
}

}  // namespace tandem
