#include "core/schedule/report/slow_passes.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <variant>

#include "core/base/text/strings.h"
#include "core/schedule/cost/cost_table.h"

namespace tandem {
namespace {

// Bytes a second; a thread of a CPU of today reaches it, and GPUs far more.
constexpr double sure_bandwidth = 1e10;
constexpr double slow_factor = 5, min_share = 0.1;
// A thread of a team may wait for another one that has no processor, for some time slices of 3 to
// 4 ms and in many steps one after the other. That is no slow kernel.
constexpr double min_seconds = 1e-2;
// A pass that takes less of the time of all passes but the longest says little about what the
// device can do. The longest is left out since it may take nearly all of the net's time.
constexpr double telling_share = 0.005;

struct TimedPass {
  int device = 0, layer = -1;
  LayerPass pass = LayerPass::forward;
  double seconds = 0, flops = 0, bytes = 0;
};

// A pass of a layer may be several tasks of a device, each for some of the rows or neurons.
std::vector<TimedPass> timed_passes(const Net& net, const Plan& plan,
                                    const std::vector<TraceEvent>& events) {
  std::map<int, double> shortest;  // by task
  for (const TraceEvent& event : events) {
    const double seconds = event.end - event.start;
    const auto [found, is_new] = shortest.emplace(event.task, seconds);
    if (!is_new) found->second = std::min(found->second, seconds);
  }
  LayerWorks layers(net);
  std::map<std::tuple<int, int, LayerPass>, TimedPass> passes;
  for (const auto& [index, seconds] : shortest) {
    const Task& task = plan.task(index);
    const auto* work = std::get_if<LayerWork>(&task.work);
    if (work == nullptr || task.streams.empty()) continue;
    const PlanBinding& use = plan.binding(work->binding);
    const int device = task.streams.front().device;
    TimedPass& pass = passes[{device, use.layer, work->pass}];
    const PassWork amount = work_of(layers, use.layer, work->pass, use.rows.count());
    const double fraction = slice_fraction(net, use);
    pass.device = device;
    pass.layer = use.layer;
    pass.pass = work->pass;
    pass.seconds += seconds;
    pass.flops += fraction * amount.flops;
    pass.bytes += fraction * amount.bytes;
  }
  std::vector<TimedPass> result;
  for (const auto& [key, pass] : passes) result.push_back(pass);
  return result;
}

struct Fastest {
  double rate = 0;  // operations a second
  int layer = -1;
};

// By device, as devices of one kind may differ; none where no pass tells.
std::map<int, Fastest> fastest_of(const std::vector<TimedPass>& passes,
                                  const std::map<int, double>& totals) {
  std::map<int, double> longest;
  for (const TimedPass& pass : passes) {
    longest[pass.device] = std::max(longest[pass.device], pass.seconds);
  }
  std::map<int, Fastest> result;
  for (const TimedPass& pass : passes) {
    const double others = totals.at(pass.device) - longest[pass.device];
    if (pass.flops <= 0 || pass.seconds < telling_share * others) continue;
    Fastest& fastest = result[pass.device];
    if (pass.flops <= fastest.rate * pass.seconds) continue;
    fastest = {pass.flops / std::max(pass.seconds, 1e-9), pass.layer};
  }
  return result;
}

const char* words_of(LayerPass pass) {
  switch (pass) {
    case LayerPass::forward:
      return "its forward pass";
    case LayerPass::backward_data:
      return "the gradient of its input";
    case LayerPass::backward_weights:
      return "the gradient of its weights";
    case LayerPass::backward:
      return "its backward pass";
    default:
      return "its statistics";
  }
}

std::string time_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.3g} ms", 1e3 * seconds) : fmt::format("{:.3g} s", seconds);
}

}  // namespace

std::vector<SlowPass> slow_passes(const Net& net, const Plan& plan,
                                  const std::vector<TraceEvent>& events) {
  const std::vector<TimedPass> passes = timed_passes(net, plan, events);
  std::map<int, double> totals;
  for (const TimedPass& pass : passes) totals[pass.device] += pass.seconds;
  const std::map<int, Fastest> fastest = fastest_of(passes, totals);
  std::map<std::pair<int, LayerPass>, SlowPass> slow;
  for (const TimedPass& pass : passes) {
    const double by_bytes = pass.bytes / sure_bandwidth;
    const auto found_rate = fastest.find(pass.device);
    const double by_flops = found_rate == fastest.end() ? 0 : pass.flops / found_rate->second.rate;
    const double expected = std::max(by_bytes, by_flops);
    const double share = pass.seconds / std::max(totals[pass.device], 1e-9);
    if (expected <= 0 || share < min_share) continue;
    if (pass.seconds <= std::max(slow_factor * expected, min_seconds)) continue;
    SlowPass& found = slow[{pass.layer, pass.pass}];
    if (found.seconds >= pass.seconds) continue;
    found = {pass.layer, pass.pass, pass.seconds,
             expected,   share,     by_flops > by_bytes ? found_rate->second.layer : -1};
  }
  std::vector<SlowPass> result;
  for (const auto& [key, found] : slow) result.push_back(found);
  std::stable_sort(result.begin(), result.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return result;
}

std::string to_text(const Net& net, const SlowPass& slow) {
  const Layer& layer = net.layer(slow.layer);
  const std::string expected =
      slow.fastest_layer < 0
          ? fmt::format("moving its data takes at {:.0f} GB/s", sure_bandwidth / 1e9)
          : fmt::format("its operations take at the rate of layer '{}'",
                        net.layer(slow.fastest_layer).name);
  return fmt::format(
      "layer '{}' ({}) is slow: {} takes {}, {:.0f} % of the time of all layers, and {:.0f} times "
      "as long as {}. This device has no fast kernel for its extents; other numbers of channels or "
      "another size of its input may take less time",
      layer.name, layer.type->name, words_of(slow.pass), time_text(slow.seconds), 100 * slow.share,
      slow.seconds / slow.expected, expected);
}

}  // namespace tandem
