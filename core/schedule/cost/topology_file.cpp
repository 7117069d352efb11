#include "core/schedule/cost/topology_file.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <utility>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/device/machine.h"
#include "core/model/file/fields.h"

namespace tandem {
namespace {

// Paths are compared by the time of a copy of so many bytes.
constexpr int64_t typical_bytes = 1 << 20;
// Of a path; far more than any machine has. There is a path for every pair of devices.
constexpr size_t max_channels = 64;

struct Node {
  std::string name;
  bool is_device = false;
  std::optional<uint32_t> channel;  // of a hub
  double latency = 0;
};
struct Edge {
  int target = 0;
  uint32_t channel = 0;
  double latency = 0;
};

class Reader {
 public:
  explicit Reader(const std::string& file) { topology_.file = file; }

  Topology read(const Message& message) {
    require_known(message, {"device", "hub", "switch", "link"}, "field", owner());
    for (const Field* field : message.all("device")) add_device(*field);
    device_count_ = nodes_.size();
    if (device_count_ == 0) {
      throw error("{}: it has no device; write device {{ name: \"gpu0\" }} for each", owner());
    }
    if (device_count_ > size_t(max_devices)) {
      throw error("{}: it has {} devices, at most {} are possible", owner(), device_count_,
                  max_devices);
    }
    for (const Field* field : message.all("hub")) add_hub(*field);
    for (const Field* field : message.all("switch")) add_switch(*field);
    edges_.resize(nodes_.size());
    for (const Field* field : message.all("link")) add_link(*field);
    find_paths();
    return std::move(topology_);
  }

 private:
  [[nodiscard]] std::string owner() const { return fmt::format("topology '{}'", topology_.file); }

  [[nodiscard]] const Field& require(const Message& block, const char* name,
                                     const Field& of) const {
    const Field* field = block.find(name);
    if (field != nullptr) return *field;
    throw error("{}: a {} needs a {}{}", owner(), of.name, name, in_file(of.location));
  }
  [[nodiscard]] std::string where(const Field& field) const {
    return owner() + in_file(field.location);
  }

  Node& add_node(const Field& name, bool is_device) {
    const std::string& text = text_of(name, owner());
    if (text.empty()) throw error("{}: an empty name{}", owner(), in_file(name.location));
    if (!numbers_.emplace(text, static_cast<int>(nodes_.size())).second) {
      throw error("{}: '{}' occurs twice{}", owner(), text, in_file(name.location));
    }
    return nodes_.emplace_back(Node{text, is_device, {}, 0});
  }

  // Checks the fields of a block, of which only `repeated` may occur more than once.
  void require_fields(const Message& block, const std::vector<std::string>& known, const char* what,
                      const std::string& repeated = "") const {
    require_known(block, known, fmt::format("field of a {}", what), owner());
    for (const std::string& name : known) {
      const auto fields = block.all(name);
      if (name == repeated || fields.size() < 2) continue;
      throw error("{}: a second {} in one {}{}", owner(), name, what, in_file(fields[1]->location));
    }
  }

  void add_device(const Field& field) {
    const Message& block = block_of(field, owner());
    require_fields(block, {"name", "speed"}, "device", "name");
    double speed = 1;
    if (const Field* given = block.find("speed")) {
      speed = number_of(*given, owner());
      if (speed <= 0) throw wrong_value(*given, owner(), "above 0; 1 means as fast as the costs");
    }
    (void)require(block, "name", field);
    for (const Field* name : block.all("name")) {
      topology_.devices.push_back(add_node(*name, true).name);
      topology_.speeds.push_back(speed);
    }
  }

  void add_hub(const Field& field) {
    const Message& block = block_of(field, owner());
    require_fields(block, {"name", "bandwidth", "latency"}, "hub");
    const Field& bandwidth = require(block, "bandwidth", field);
    Node& node = add_node(require(block, "name", field), false);
    node.channel = static_cast<uint32_t>(topology_.channels.size());
    topology_.channels.push_back(
        {node.name, parse_bandwidth(text_of(bandwidth, owner()), where(bandwidth))});
    node.latency = latency_of(block);
  }

  void add_switch(const Field& field) {
    const Message& block = block_of(field, owner());
    require_fields(block, {"name", "latency"}, "switch");
    add_node(require(block, "name", field), false).latency = latency_of(block);
  }

  [[nodiscard]] double latency_of(const Message& block) const {
    const Field* field = block.find("latency");
    return field == nullptr ? 0 : parse_latency(text_of(*field, owner()), where(*field));
  }

  [[nodiscard]] int end_of(const Field& field) const {
    const std::string& name = text_of(field, owner());
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) return found->second;
    std::vector<std::string> known;
    for (const Node& node : nodes_) known.push_back(node.name);
    throw error("{}: there is no device, hub or switch '{}'{}{}", owner(), name,
                did_you_mean(name, known), in_file(field.location));
  }

  void add_link(const Field& field) {
    const Message& block = block_of(field, owner());
    require_fields(block, {"between", "and", "bandwidth", "latency", "one_way"}, "link", "between");
    (void)require(block, "between", field);
    const Field& bandwidth = require(block, "bandwidth", field);
    const Field& target = require(block, "and", field);
    const Field* one_way = block.find("one_way");
    const int to = end_of(target);
    for (const Field* source : block.all("between")) {
      const int from = end_of(*source);
      if (from == to) {
        throw error("{}: a link between '{}' and itself{}", owner(), nodes_[size_t(to)].name,
                    in_file(source->location));
      }
      const double speed = parse_bandwidth(text_of(bandwidth, owner()), where(bandwidth));
      add_edge(from, to, speed, latency_of(block));
      if (one_way == nullptr || !boolean_of(*one_way, owner())) {
        add_edge(to, from, speed, latency_of(block));
      }
    }
  }

  void add_edge(int from, int to, double bandwidth, double latency) {
    const auto channel = static_cast<uint32_t>(topology_.channels.size());
    topology_.channels.push_back(
        {nodes_[size_t(from)].name + " -> " + nodes_[size_t(to)].name, bandwidth});
    edges_[size_t(from)].push_back({to, channel, latency});
  }

  void find_paths() {
    for (size_t source = 0; source < device_count_; ++source) {
      std::vector<Topology::Path> paths = paths_from(static_cast<int>(source));
      std::move(paths.begin(), paths.end(), std::back_inserter(topology_.paths));
    }
  }

  // The fastest paths to all devices (Dijkstra).
  std::vector<Topology::Path> paths_from(int source) {
    constexpr double never = std::numeric_limits<double>::infinity();
    std::vector<double> seconds(nodes_.size(), never);
    std::vector<Topology::Path> paths(nodes_.size());
    using Reached = std::pair<double, int>;  // seconds, node
    std::priority_queue<Reached, std::vector<Reached>, std::greater<>> next;
    seconds[size_t(source)] = 0;
    next.emplace(0, source);
    while (!next.empty()) {
      const auto [reached, nearest] = next.top();
      next.pop();
      if (reached > seconds[size_t(nearest)]) continue;  // there was a faster path
      for (const Edge& edge : edges_[size_t(nearest)]) {
        Topology::Path path = extended(paths[size_t(nearest)], edge);
        const double time = topology_.seconds(path, typical_bytes);
        if (time >= seconds[size_t(edge.target)]) continue;
        if (path.channels.size() > max_channels) {
          throw error("{}: from '{}' to '{}' a copy passes {} links and hubs; at most {} can be",
                      owner(), nodes_[size_t(source)].name, nodes_[size_t(edge.target)].name,
                      path.channels.size(), max_channels);
        }
        seconds[size_t(edge.target)] = time;
        paths[size_t(edge.target)] = std::move(path);
        // No copy passes through another device.
        if (!nodes_[size_t(edge.target)].is_device) next.emplace(time, edge.target);
      }
    }
    for (size_t target = 0; target < device_count_; ++target) {
      if (seconds[target] < never) continue;
      throw error(
          "{}: there is no path from '{}' to '{}': connect them by links, or by links to a "
          "hub or switch",
          owner(), nodes_[size_t(source)].name, nodes_[target].name);
    }
    paths.resize(device_count_);
    return paths;
  }

  [[nodiscard]] Topology::Path extended(Topology::Path path, const Edge& edge) const {
    path.channels.push_back(edge.channel);
    const Node& target = nodes_[size_t(edge.target)];
    if (target.channel) path.channels.push_back(*target.channel);
    path.latency += edge.latency + target.latency;
    return path;
  }

  Topology topology_;
  std::vector<Node> nodes_;  // devices first
  size_t device_count_ = 0;
  std::map<std::string, int> numbers_;
  std::vector<std::vector<Edge>> edges_;
};

}  // namespace

Topology parse_topology(const std::string& text, const std::string& file) {
  Topology topology = Reader(file).read(parse_text_format(text, file));
  topology.text = text;
  return topology;
}

Topology read_topology(const std::filesystem::path& path) {
  const Message message = read_text_format(path);
  Topology topology = Reader(path.string()).read(message);
  topology.text = write_text_format(message);
  return topology;
}

std::string topology_text(const std::vector<std::string>& devices,
                          const std::vector<MeasuredLink>& links) {
  std::string text;
  for (const std::string& device : devices) {
    text += fmt::format("device {{ name: \"{}\" }}\n", device);
  }
  for (const MeasuredLink& link : links) {
    text += fmt::format(
        "link {{ between: \"{}\" and: \"{}\" bandwidth: \"{:.6g}GB/s\" latency: \"{:.4g}us\" "
        "one_way: true }}\n",
        devices[size_t(link.source)], devices[size_t(link.target)], link.bandwidth / 1e9,
        link.latency * 1e6);
  }
  return text;
}

}  // namespace tandem
