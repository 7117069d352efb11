#include "core/schedule/strategies/data_parallel/alexnet_like.h"

#include <utility>

#include "core/base/error.h"

namespace tandem {
namespace {

double backward_seconds(const Net& net, const CostTable& costs, int layer) {
  const Layer& l = net.layer(layer);
  double seconds = costs.statistics_seconds(net, layer, LayerPass::backward_statistics, net.batch);
  for (const auto& [wanted, pass] :
       {std::pair(l.wants_backward_data, LayerPass::backward_data),
        std::pair(l.wants_backward_weights, LayerPass::backward_weights)}) {
    if (wanted) seconds += costs.pass_seconds(net, layer, pass, net.batch);
  }
  return seconds;
}

double parameters_up_to(const Net& net, int last_layer) {
  double count = 0;
  for (const WeightArray& weight : net.weights) {
    if (weight.kind == TANDEM_TRAINED && weight.layer >= 0 && weight.layer <= last_layer) {
      count += static_cast<double>(weight.count);
    }
  }
  return count;
}

}  // namespace

const OptionTable<AlexNetThresholds>& threshold_options() {
  static const auto table =
      OptionTable<AlexNetThresholds>()
          .add(fraction_option("--time-threshold",
                               "AlexNet-like test: share of backward time (default: 0.1)"),
               &AlexNetThresholds::time_threshold)
          .add(fraction_option("--weight-threshold",
                               "AlexNet-like test: share of weights (default: 0.1)"),
               &AlexNetThresholds::weight_threshold);
  return table;
}

AlexNetTest test_alexnet_like(const Net& net, const CostTable& costs,
                              const AlexNetThresholds& thresholds) {
  AlexNetTest test;
  const int layers = static_cast<int>(net.layers.size());
  double all_time = 0;
  for (int layer = 0; layer < layers; ++layer) all_time += backward_seconds(net, costs, layer);
  const double all_parameters = parameters_up_to(net, layers);
  if (all_time <= 0 || all_parameters <= 0) {
    test.explanation = fmt::format("not AlexNet-like: the net has no {} to compare",
                                   all_time <= 0 ? "backward time" : "parameters");
    return test;
  }
  double time = 0;
  int p = layers;
  while (p > 0 && test.time_share <= thresholds.time_threshold) {
    time += backward_seconds(net, costs, --p);
    test.time_share = time / all_time;
  }
  test.p = net.layer(p).name;
  if (test.time_share <= thresholds.time_threshold) {
    test.explanation = fmt::format(
        "not AlexNet-like: backward time never passes the first threshold, {:.3g} of the total",
        thresholds.time_threshold);
    return test;
  }
  test.weight_share = parameters_up_to(net, p - 1) / all_parameters;
  test.alexnet_like = test.weight_share < thresholds.weight_threshold;
  test.explanation = fmt::format(
      "{}AlexNet-like by {} times: from the loss on, backward time passes {:.3g} of the total at "
      "p = '{}' (t/T = {:.3f}); what lies before p holds v/V = {:.3f} of the parameters, which is "
      "{} {:.3g}",
      test.alexnet_like ? "" : "not ", costs.empty() ? "estimated" : "measured",
      thresholds.time_threshold, test.p, test.time_share, test.weight_share,
      test.alexnet_like ? "below" : "not below", thresholds.weight_threshold);
  return test;
}

}  // namespace tandem
