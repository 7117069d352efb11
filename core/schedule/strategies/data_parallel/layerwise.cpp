#include "core/schedule/strategies/data_parallel/layerwise.h"

#include <fmt/format.h>

#include "core/base/text/strings.h"
#include "core/schedule/strategies/common/buckets.h"
#include "core/schedule/strategies/composed/composition.h"

namespace tandem {
namespace {

// Fills in options that were not given.
LayerwiseOptions completed(const StrategyInputs& in, LayerwiseOptions options) {
  if (options.reduce.empty()) options.reduce = "ring";
  if (options.bucket == 0) options.bucket = default_bucket(in, options.reduce);
  return options;
}

std::vector<StrategyVariant> layerwise_variants(const StrategyInputs& inputs) {
  LayerwiseOptions options = layerwise_options().read(inputs.options);
  if (!options.reduce.empty() || inputs.devices < 2) return {{"", inputs.options}};
  std::vector<StrategyVariant> result;
  for (const std::string reduction : {"serial", "tree", "ring"}) {
    if (inputs.devices == 2 && reduction == "tree") continue;  // the same as serial
    options.reduce = reduction;
    result.push_back(
        {"--reduce " + reduction, layerwise_options().write(completed(inputs, options))});
  }
  return result;
}

std::vector<StrategyOptions> layerwise_lossless_cases(int) {
  std::vector<StrategyOptions> cases;
  for (const char* reduce : {"serial", "tree", "ring"}) {
    for (const int64_t bucket : {int64_t{0}, int64_t{1} << 16}) {
      cases.push_back(layerwise_options().write({reduce, bucket}));
    }
  }
  return cases;
}

Plan build_layerwise(const StrategyInputs& inputs) {
  const LayerwiseOptions options = completed(inputs, layerwise_options().read(inputs.options));
  Plan plan = compose(inputs, {"layerwise", options.reduce, options.bucket});
  plan.options = layerwise_options().write(options);
  const size_t buckets = make_buckets(*inputs.net, options.bucket).size();
  plan.notes.push_back(fmt::format("reduction: {}; {} bucket{} of gradients, closed at {}",
                                   options.reduce, buckets, buckets == 1 ? "" : "s",
                                   human_bytes(options.bucket)));
  return plan;
}

}  // namespace

const OptionTable<LayerwiseOptions>& layerwise_options() {
  static const auto table = [] {
    StrategyOption reduce = word_option(
        "--reduce", "how gradients are added up: serial (to the root), tree or ring (default)",
        {"serial", "tree", "ring"});
    reduce.resets = {"bucket"};
    return OptionTable<LayerwiseOptions>()
        .add(std::move(reduce), &LayerwiseOptions::reduce)
        .add(size_option("--bucket",
                         "layers share a message until it has so many bytes (default: 4MiB, for a "
                         "ring more where messages are slow to begin)"),
             &LayerwiseOptions::bucket);
  }();
  return table;
}

Strategy layerwise_strategy() {
  return {.name = "layerwise",
          .summary = "every layer's gradient travels as soon as it exists",
          .options = layerwise_options().options(),
          .build = &build_layerwise,
          .variants = &layerwise_variants,
          .lossless_cases = &layerwise_lossless_cases};
}

}  // namespace tandem
