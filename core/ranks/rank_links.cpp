#include "core/ranks/rank_links.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/ranks/measure_links.h"
#include "core/ranks/ranks.h"
#include "core/schedule/cost/topology_file.h"

namespace tandem {
namespace {

// Of that pair, to rank 0. Called by all ranks, so that no other pair is measured meanwhile.
LinkSpeed measure(const Communicator& ranks, MessageTimes& times, size_t pair,
                  const MessageTimes::Pair& of) {
  LinkSpeed link;
  const int me = ranks.rank();
  if (me == of.first || me == of.second) link = times.measure(pair);
  const std::string what = fmt::format("the speed of its messages to rank {}", of.second);
  if (of.first != 0 && me == of.first) ranks.send(0, &link, sizeof(link), what.c_str());
  if (of.first != 0 && me == 0) ranks.receive(of.first, &link, sizeof(link), what.c_str());
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

// The ranks of each host.
std::vector<std::vector<int>> find_hosts(const Communicator& ranks, RankLinks& links) {
  const std::vector<std::string>& names = ranks.hosts().names;
  std::vector<std::vector<int>> ranks_of;
  for (size_t rank = 0; rank < names.size(); ++rank) {
    const auto found = std::find(links.hosts.begin(), links.hosts.end(), names[rank]);
    const auto host = size_t(found - links.hosts.begin());
    if (found == links.hosts.end()) {
      links.hosts.push_back(names[rank]);
      ranks_of.emplace_back();
    }
    links.host_of_rank.push_back(static_cast<int>(host));
    ranks_of[host].push_back(static_cast<int>(rank));
  }
  return ranks_of;
}

void measure_messages(const Communicator& ranks, const Registry& registry, const Machine& machine,
                      RankLinks& links) {
  const std::vector<std::vector<int>> ranks_of = find_hosts(ranks, links);
  links.within.resize(ranks_of.size());
  links.to_first.resize(ranks_of.size());
  std::vector<MessageTimes::Pair> pairs;
  std::vector<std::optional<LinkSpeed>*> results;
  for (size_t host = 0; host < ranks_of.size(); ++host) {
    const std::vector<int>& of_host = ranks_of[host];
    if (of_host.size() > 1) {
      pairs.push_back({of_host[0], of_host[1]});
      results.push_back(&links.within[host]);
    }
    if (host > 0) {
      pairs.push_back({ranks_of[0][0], of_host[0]});
      results.push_back(&links.to_first[host]);
    }
  }
  MessageTimes times(registry, machine, ranks, pairs);
  links.path = times.path();
  for (size_t i = 0; i < pairs.size(); ++i) *results[i] = measure(ranks, times, i, pairs[i]);
}

Machine open_machine(const Communicator& ranks, const Registry& registry, const DeviceSpec& spec,
                     int threads) {
  MachineOptions options;
  options.threads = threads > 0 ? threads : ranks.hosts().processors;
  try {
    return {registry.backend(spec.kind), spec, options};
  } catch (const Error&) {
    if (ranks.rank() > 0) let_root_report();
    throw;
  }
}

}  // namespace

RankLinks measure_rank_links(const Communicator& ranks, const Registry& registry,
                             const DeviceSpec& spec, int threads) {
  const Machine machine = open_machine(ranks, registry, spec, threads);
  RankLinks links;
  measure_messages(ranks, registry, machine, links);
  if (ranks.rank() == 0 && spec.count() > 1) {
    const MeasuredLink copies = measure_link(machine, 0, 1).alone;
    links.copies = {copies.bandwidth, copies.latency};
  }
  return links;
}

std::shared_ptr<const Topology> measured_topology(const Communicator& ranks,
                                                  const Registry& registry, const DeviceSpec& spec,
                                                  int threads) {
  const RankLinks links = measure_rank_links(ranks, registry, spec, threads);
  const std::string text = ranks.rank() == 0 ? rank_topology_text(links, spec.count()) : "";
  const std::string path = links.path.empty() ? "" : fmt::format(" ({})", links.path);
  return std::make_shared<Topology>(parse_topology(
      ranks.broadcast_text(text, "the links that were measured"), "measured between ranks" + path));
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
    const auto host = size_t(links.host_of_rank[rank]);
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
