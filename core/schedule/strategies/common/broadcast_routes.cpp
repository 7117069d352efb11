#include "core/schedule/strategies/common/broadcast_routes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/schedule/strategies/common/collectives.h"

namespace tandem {
namespace {

// All orders of a few devices; of many, those of the ring of neighbors cut at each place.
std::vector<std::vector<int>> lines(const StrategyInputs& inputs) {
  constexpr int few = 5;
  std::vector<int> order = device_order(inputs);
  std::vector<std::vector<int>> result;
  if (inputs.devices > few) {
    for (int i = 0; i < inputs.devices; ++i) {
      result.push_back(order);
      std::rotate(order.begin(), order.begin() + 1, order.end());
    }
    return result;
  }
  std::sort(order.begin(), order.end());
  do result.push_back(order);
  while (std::next_permutation(order.begin(), order.end()));
  return result;
}

}  // namespace

void add_line(LinkLoads& loads, const std::vector<int>& line, int owner, double bytes) {
  const auto at = std::find(line.begin(), line.end(), owner);
  for (auto to = at; std::next(to) != line.end(); ++to) loads.add(*to, *std::next(to), bytes);
  for (auto to = at; to != line.begin(); --to) loads.add(*to, *std::prev(to), bytes);
}

std::vector<std::vector<BroadcastRoute>> broadcast_routes(const StrategyInputs& inputs,
                                                          LinkLoads loads,
                                                          const std::vector<int>& owners,
                                                          const std::vector<double>& bytes,
                                                          int parts) {
  const std::vector<std::vector<int>> candidates = lines(inputs);
  LinkLoads weights(inputs.link.bandwidth, inputs.topology);
  std::vector<std::vector<BroadcastRoute>> routes(owners.size());
  for (int part = 0; part < parts; ++part) {
    for (size_t i = 0; i < owners.size(); ++i) {
      const double each = bytes[i] / parts;
      const std::vector<int>* best = nullptr;
      constexpr double never = std::numeric_limits<double>::infinity();
      std::pair<double, double> least{never, never};
      for (const std::vector<int>& line : candidates) {
        LinkLoads tried = loads, alone = weights;
        add_line(tried, line, owners[i], each);
        add_line(alone, line, owners[i], each);
        // To the nanosecond: sums in another order are not another load.
        const std::pair load{std::round(1e9 * tried.busiest().first), alone.unevenness()};
        if (load >= least) continue;
        least = load;
        best = &line;
      }
      add_line(loads, *best, owners[i], each);
      add_line(weights, *best, owners[i], each);
      routes[i].push_back({*best});
    }
  }
  return routes;
}

}  // namespace tandem
