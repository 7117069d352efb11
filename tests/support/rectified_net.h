// A net with ReLUs after layers of several types and with sums, and the same net in which none of
// the layers can fuse ReLUs and one sum has gradients of its own: for runs that must give the same
// bits.
#pragma once

#include <fmt/format.h>

#include <string>

#include "core/model/file/definition.h"
#include "core/model/net/net.h"
#include "core/model/passes/build_net.h"
#include "core/plugin/registry.h"
#include "include/tandem/net.h"

namespace tandem::test {

// `looked_at`: another layer reads what is before each ReLU but the last, which then has a pass of
// its own. (The last is in fc_parallel's chain, through which everything must pass.) A layer that
// runs in place before a sum keeps the sum from sharing its gradient. `normalizes`: one of the
// layers is a BatchNormScale, which mixes the samples of a batch.
inline NetDefinition rectified_net(bool looked_at, bool normalizes = false) {
  const std::string filler = " weight_filler { type: \"xavier\" }";
  const std::string window = "convolution_param { num_output: 8 kernel_size: 3 pad: 1" + filler;
  const std::string factors =
      "scale_param { bias_term: true filler { type: \"gaussian\" mean: 1 std: 0.1 } }";
  const auto dense = [&](int outputs) {
    return fmt::format("inner_product_param {{ num_output: {}{} }}", outputs, filler);
  };
  NetWriter net("rectified");
  net.data(20);
  const auto relu = [&](const std::string& name, const std::string& from) {
    if (looked_at) net.layer("look at " + from, "Silence", {from}, {});
    net.layer(name, "ReLU", {from}, {name});
  };
  net.layer("conv1", "Convolution", window + " }").layer("scale1", "Scale", factors);
  relu("relu1", "scale1");
  net.layer("pool1", "Pooling", "pooling_param { kernel_size: 2 stride: 2 }")
      .layer("conv2", "Convolution", window + " }")
      .layer("sum2", "Eltwise", {"conv2", "pool1"}, {"sum2"});
  relu("relu2", "sum2");
  net.layer("branch", "Convolution", window + " }");
  if (looked_at)
    net.layer("same", "Reshape", "reshape_param { shape { dim: 0 dim: 0 } axis: 0 num_axes: 2 }");
  net.layer("sum", "Eltwise", {"relu2", looked_at ? "same" : "branch"}, {"sum"})
      .layer("conv3a", "Convolution", window + " }");
  relu("relu3a", "conv3a");
  net.layer("conv3", "Convolution", window + " }")
      .layer("scale3", normalizes ? "BatchNorm" : "Scale",
             normalizes ? "batch_norm_param { scale_bias: true }" : factors);
  relu("relu3", "scale3");
  net.layer("fc4", "InnerProduct", dense(16)).layer("scale4", "Scale", factors);
  relu("relu4", "scale4");
  net.layer("fc5", "InnerProduct", dense(12)).layer("relu5", "ReLU");
  net.layer("score", "InnerProduct", dense(5)).loss();
  return read_net_text(net.text());
}

// Built for two rows of 20x20 pixels on a kind of device.
inline Net built(const NetDefinition& definition, const std::string& kind = "cpu",
                 int32_t phase = TANDEM_TRAIN) {
  static const Registry registry = Registry::with_defaults();
  NetOptions options;
  options.phase = phase;
  options.device_kind = kind;
  options.batch = 2;
  options.data = {1, 3, 20, 20};
  return build_net(definition, registry, options);
}

// How many layers have no forward pass of their own in the net made for a kind of device.
inline int fusion_text(const NetDefinition& definition, const std::string& kind, int32_t phase) {
  int layers = 0;
  for (const Layer& layer : built(definition, kind, phase).layers) {
    layers += layer.fused_into >= 0 ? 1 : 0;
  }
  return layers;
}

}  // namespace tandem::test
