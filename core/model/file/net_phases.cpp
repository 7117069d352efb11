#include "core/model/file/net_phases.h"

#include <utility>

namespace tandem {
namespace {

// As protobuf merges two messages: stages are appended, a given level replaces the other.
NetState sum(NetState state, const NetState& more) {
  if (more.level != 0) state.level = more.level;
  state.stages.insert(state.stages.end(), more.stages.begin(), more.stages.end());
  return state;
}

}  // namespace

LayerDefinition kept_to(LayerDefinition layer, bool trains, bool tests) {
  layer.include.clear();
  layer.exclude.clear();
  if (trains && tests) return layer;
  StateRule rule;
  rule.phase = trains ? TANDEM_TRAIN : TANDEM_TEST;
  layer.include.push_back(rule);
  return layer;
}

NetDefinition in_states(const NetDefinition& net, const NetState& training,
                        const NetState& testing) {
  NetDefinition result = net;
  result.layers.clear();
  result.state = {};
  const NetState train = sum(net.state, training), test = sum(net.state, testing);
  for (LayerDefinition layer : net.layers) {
    const bool trains = layer.in_phase(TANDEM_TRAIN, train);
    const bool tests = layer.in_phase(TANDEM_TEST, test);
    if (!trains && !tests) {
      result.left_out.push_back(std::move(layer));
      continue;
    }
    result.layers.push_back(kept_to(std::move(layer), trains, tests));
  }
  return result;
}

NetDefinition joined(const NetDefinition& training, const NetDefinition& testing) {
  NetDefinition result = training;
  result.layers.clear();
  const auto add = [&result](const NetDefinition& net, int32_t phase) {
    for (const LayerDefinition& layer : net.layers) {
      if (!layer.in_phase(phase)) continue;
      result.layers.push_back(kept_to(layer, phase == TANDEM_TRAIN, phase == TANDEM_TEST));
    }
  };
  add(training, TANDEM_TRAIN);
  add(testing, TANDEM_TEST);
  return result;
}

}  // namespace tandem
