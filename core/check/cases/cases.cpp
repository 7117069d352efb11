#include <algorithm>

#include "core/check/cases/generator.h"
#include "core/model/file/definition.h"
#include "core/model/net/net.h"
#include "core/model/passes/build_net.h"

namespace tandem::checker {

std::vector<NetUse> uses_in_net(const Registry& registry, const NetDefinition& definition,
                                NetOptions options) {
  options.batch = std::min<int64_t>(options.batch, 3);
  options.device_kind = "";
  options.precision = TANDEM_FLOAT32;
  const auto build = [&]() -> Net {
    try {
      return build_net(definition, registry, options);
    } catch (const Error&) {  // of a net that only tests, the reason is the same again
      options.phase = TANDEM_TEST;
      return build_net(definition, registry, options);
    }
  };
  const Net net = build();
  const std::vector<Shape> shapes = net.shapes(options.batch);
  std::vector<NetUse> uses;
  for (const Layer& layer : net.layers) {
    std::vector<Shape> inputs;
    for (const int tensor : layer.inputs) inputs.push_back(shapes[size_t(tensor)]);
    uses.push_back({layer.name, layer.type->name, layer.attributes, std::move(inputs),
                    uint32_t(layer.outputs.size())});
  }
  return uses;
}

std::vector<NetUse> uses_in_net(const Registry& registry, const std::string& file) {
  NetOptions options;
  options.batch = 3;
  return uses_in_net(registry, read_net(file), options);
}

namespace {

constexpr int64_t max_small = 5000;

bool is_large(const std::vector<Shape>& shapes) {
  return std::any_of(shapes.begin(), shapes.end(),
                     [](const Shape& shape) { return element_count(shape) > max_small; });
}

// Small enough for finite differences, with the same channels if these are few.
std::vector<Shape> cropped(std::vector<Shape> shapes) {
  constexpr int64_t max_side = 6, max_channels = 64;
  for (Shape& shape : shapes) {
    shape.h = std::min(shape.h, max_side);
    shape.w = std::min(shape.w, max_side - 1);
  }
  if (!is_large(shapes)) return shapes;
  for (Shape& shape : shapes) shape.c = std::min(shape.c, max_channels);
  return shapes;
}

// First, so that what a layer keeps of its first use is too small for the others.
void prepare_one_row(const Maker& maker, std::vector<Shape> inputs, const NetUse& use,
                     const std::vector<Values>& values) {
  const int64_t rows = inputs.empty() ? 1 : inputs[0].n;
  for (Shape& shape : inputs) shape.n = shape.n == rows ? 1 : shape.n;
  try {
    static_cast<void>(maker.make({}, inputs, use.outputs, values, use.attributes));
  } catch (const Error&) {  // it needs more of them
  }
}

}  // namespace

std::vector<Case> cases_of(const Registry& registry, KernelDevice& device, const std::string& type,
                           const CaseOptions& options) {
  const tandem_layer_type& table = registry.layer_type(type);
  const Maker maker(registry, device, table, options);
  std::vector<Case> of_net;
  for (const NetUse& use : options.uses) {
    if (use.type != type) continue;
    const std::vector<Values> values = values_of(type, use.inputs.size());
    const auto add = [&](const std::vector<Shape>& inputs) {
      if (options.trying) options.trying(" --layer " + use.layer);
      prepare_one_row(maker, inputs, use, values);
      of_net.push_back(maker.make({}, inputs, use.outputs, values, use.attributes));
      of_net.back().arguments = " --layer " + use.layer;
    };
    const bool large = is_large(use.inputs);
    if (large && options.sizes != CaseSizes::large) {
      try {
        add(cropped(use.inputs));
      } catch (const Error&) {  // its parameters need the shapes of the net
      }
    }
    if (options.sizes == (large ? CaseSizes::small : CaseSizes::large)) continue;
    try {
      add(use.inputs);
    } catch (const Error& refusal) {
      throw error("layer '{}': {}", use.layer, refusal.what());
    }
  }
  if (!of_net.empty() || options.sizes != CaseSizes::all) return of_net;
  if (!options.inputs.empty()) {
    const uint32_t outputs = options.outputs > 0 ? options.outputs : min_outputs(table);
    return {maker.make(options.parameters, options.inputs, outputs,
                       values_of(type, options.inputs.size()))};
  }
  return generated_cases(maker, table);
}

}  // namespace tandem::checker
