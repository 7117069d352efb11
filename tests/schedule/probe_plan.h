// Nets and plans of the probe's layer (tests/schedule/probe), which reports what it is given.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/schedule/handmade.h"

namespace tandem::test {

// data -> probe.Double -> out; batch 5 of `channels` values.
inline Net probe_net(int64_t channels = 2, const std::string& type = "probe.Double") {
  Net net;
  net.name = "probe";
  net.batch = 5;
  net.layers.resize(1);
  net.tensors.resize(2);
  net.weights.resize(1);
  Layer& layer = net.layers[0];
  layer.name = "double1";
  layer.type = &registry().layer_type(type);
  layer.attributes = std::make_shared<Attributes>();
  layer.inputs = {0};
  layer.outputs = {1};
  layer.weights = {0};
  layer.loss_weights = {0};
  layer.wants_backward_data = layer.wants_backward_weights = true;
  layer.location = {"probe.prototxt", 4, 0};
  for (Tensor& tensor : net.tensors) tensor.shape = {5, channels, 1, 1};
  net.tensors[1].producer = 0;
  net.weights[0].shape = {1, 1, 1, 1};
  net.weights[0].count = 1;
  net.weight_floats = 16;
  net.data = 0;
  return net;
}

// Rows split over the devices: forward, then both halves of backward, the weights' gradient twice.
inline Plan probe_plan(int devices) {
  Maker maker(devices);
  maker.plan.batch = 5;
  for (int device = 0; device < devices; ++device) {
    const std::string at = " @" + std::to_string(device);
    const Interval rows = share(5, devices, device);
    PlanBinding binding;
    binding.layer = 0;
    binding.device = device;
    binding.rows = rows;
    const int64_t count = rows.count() * 2;
    const Region in = maker.persistent("in", device, count),
                 out = maker.persistent("out", device, count),
                 out_gradient = maker.persistent("out gradient", device, count),
                 in_gradient = maker.persistent("in gradient", device, count),
                 weights = maker.constant("weights", device, {0.5F}),
                 gradients = maker.persistent("gradients", device, 1),
                 saved = maker.floats("saved", device, 0),
                 scratch = maker.floats("scratch", device, 0);
    binding.inputs = {in};
    binding.outputs = {out};
    binding.weights = {weights};
    binding.input_gradients = {in_gradient};
    binding.output_gradients = {out_gradient};
    binding.weight_gradients = {gradients};
    binding.saved = saved.buffer;
    binding.scratch = binding.backward_scratch = scratch.buffer;
    maker.plan.bindings.push_back(binding);
    maker.task("forward" + at, {compute(device)}, {in, weights}, {out, saved, scratch},
               LayerWork{device, LayerPass::forward});
    maker.task("backward_weights" + at, {compute(device)}, {saved, out_gradient}, {gradients},
               LayerWork{device, LayerPass::backward_weights});
    maker.task("backward" + at, {compute(device)}, {saved, out_gradient, gradients},
               {in_gradient, gradients}, LayerWork{device, LayerPass::backward, true});
  }
  return maker.derived();
}

struct Machines {
  explicit Machines(int count) : machine(cpu(), devices("cpu", count), {}), runtime(machine) {}
  Machine machine;
  Runtime runtime;
};

}  // namespace tandem::test
