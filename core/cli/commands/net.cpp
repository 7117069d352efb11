#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/cli/arguments.h"
#include "core/cli/commands.h"
#include "core/cli/net_costs.h"
#include "core/cli/print.h"
#include "core/formats/safetensors.h"
#include "core/model/net/net_report.h"
#include "core/model/passes/build_net.h"
#include "core/plugin/registry.h"
#include "core/session/forecast.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

struct NetCommandArguments {
  NetChoice net;
  std::string precision = "float32";
  std::string phase, dot;  // phase "": training, if the net can be trained
  bool as_json = false;
};

struct Totals {
  int64_t weights = 0, output_bytes = 0;
  double forward = 0, backward = 0;
};

Totals totals_of(const std::vector<LayerSummary>& rows) {
  Totals totals;
  for (const LayerSummary& row : rows) {
    totals.weights += row.weights;
    totals.output_bytes += row.output_bytes;
    totals.forward += row.forward_flops;
    totals.backward += row.backward_flops;
  }
  return totals;
}

// Without the batch, which is printed once.
std::string size_text(const Shape& s) {
  return s.h == 1 && s.w == 1 ? fmt::format("{}", s.c) : fmt::format("{}x{}x{}", s.c, s.h, s.w);
}

void print_as_json(const Net& net, const std::vector<LayerSummary>& rows, int64_t training_bytes) {
  json tree = {{"net", net.name}, {"batch", net.batch}, {"layers", json::array()}};
  for (const LayerSummary& row : rows) {
    const Layer& layer = net.layers[static_cast<size_t>(row.layer)];
    json entry = {{"name", layer.name},
                  {"type", layer.type->name},
                  {"inputs", json::array()},
                  {"outputs", json::array()},
                  {"weights", row.weights},
                  {"forward_flops", row.forward_flops},
                  {"backward_flops", row.backward_flops},
                  {"output_bytes", row.output_bytes}};
    for (const int input : layer.inputs) {
      entry["inputs"].push_back(net.tensors[static_cast<size_t>(input)].name);
    }
    for (size_t i = 0; i < row.outputs.size(); ++i) {
      const Shape& s = row.outputs[i];
      const Tensor& tensor = net.tensors[static_cast<size_t>(layer.outputs[i])];
      entry["outputs"].push_back({{"name", tensor.name},
                                  {"shape", {s.n, s.c, s.h, s.w}},
                                  {"layout", layout_name(tensor.layout)},
                                  {"dtype", dtype_name(tensor.dtype)}});
    }
    if (!layer.joined_scale.empty()) entry["joined_scale"] = layer.joined_scale;
    if (layer.fused_into >= 0) entry["forward"] = fusion_text(net, layer.fused_into);
    if (layer.gradient_fused_into >= 0) {
      entry["backward"] = fusion_text(net, layer.gradient_fused_into);
    }
    tree["layers"].push_back(entry);
  }
  const Totals totals = totals_of(rows);
  tree["weights"] = totals.weights;
  tree["forward_flops"] = totals.forward;
  tree["backward_flops"] = totals.backward;
  tree["output_bytes"] = totals.output_bytes;
  tree["training_bytes"] = training_bytes;
  print_json(tree);
}

void print_table(const Net& net, const std::vector<LayerSummary>& rows, int64_t training_bytes) {
  size_t width = 5;
  for (const Layer& layer : net.layers) width = std::max(width, layer.name.size());
  print_names("net '{}', batch {}\n\n{:<{}}  {:<16} {:>14} {:<17} {:>10} {:>11} {:>11} {:>10}\n",
              net.name, net.batch, "layer", width, "type", "output", "layout   dtype", "weights",
              "forward", "backward", "memory");
  for (const LayerSummary& row : rows) {
    const Layer& layer = net.layers[static_cast<size_t>(row.layer)];
    std::string layout;
    if (!layer.outputs.empty()) {
      const Tensor& output = net.tensors[static_cast<size_t>(layer.outputs[0])];
      layout = fmt::format("{:<8} {}", layout_name(output.layout), dtype_name(output.dtype));
    }
    print_names("{:<{}}  {:<16} {:>14} {:<17} {:>10} {:>11} {:>11} {:>10}\n", layer.name, width,
                layer.type->name, row.outputs.empty() ? "-" : size_text(row.outputs[0]), layout,
                row.weights > 0 ? fmt::format("{}", row.weights) : "-",
                flops_text(row.forward_flops), flops_text(row.backward_flops),
                layer.fused_into >= 0  ? fusion_text(net, layer.fused_into)
                : row.output_bytes > 0 ? human_bytes(row.output_bytes)
                                       : "in place");
  }
  if (std::any_of(net.layers.begin(), net.layers.end(),
                  [](const Layer& layer) { return layer.fused_into >= 0; })) {
    say("\nfused: in place; the kernel of the named layer does its forward pass\n");
  }
  const auto joined = std::count_if(net.layers.begin(), net.layers.end(),
                                    [](const Layer& layer) { return !layer.joined_scale.empty(); });
  if (joined > 0) {
    say("\n{} BatchNorm layer{} computed with the Scale after {}, as BatchNormScale\n", joined,
        joined == 1 ? " is" : "s are", joined == 1 ? "it" : "them");
  }
  const Totals totals = totals_of(rows);
  const auto batch = static_cast<double>(net.batch);
  say("\n{} layers, {} weights ({})\n", net.layers.size(), totals.weights,
      human_bytes(totals.weights * dtype_bytes(TANDEM_FLOAT32)));
  say("floating-point operations an image: {} forward, {} backward\n",
      flops_text(totals.forward / batch), flops_text(totals.backward / batch));
  say("outputs of all layers at batch {}: {}\n", net.batch, human_bytes(totals.output_bytes));
  if (training_bytes > 0) {
    say("memory to train on one device: {}\n", human_bytes(training_bytes));
  }
}

// A net that cannot be trained (a deploy file) is shown for testing; `why` receives the reason.
Net build_shown(const NetDefinition& definition, const Registry& registry, const std::string& phase,
                NetOptions& options, std::string& why) {
  options.phase = phase == "test" ? TANDEM_TEST : TANDEM_TRAIN;
  try {
    return build_net(definition, registry, options);
  } catch (const Error& error) {
    if (!phase.empty()) throw;
    options.phase = TANDEM_TEST;
    why = error.what();
    try {
      return build_net(definition, registry, options);
    } catch (const Error&) {
    }
    throw;
  }
}

int run_net(const NetCommandArguments& a) {
  Registry registry = Registry::with_defaults();
  const NetDefinition definition = a.net.definition();
  if (!a.phase.empty() && a.phase != "train" && a.phase != "test") {
    throw error("--phase {}: there are train and test", a.phase);
  }
  NetOptions options;
  options.batch = a.net.batch_of(definition);
  options.data = a.net.data(definition);
  options.precision = parse_precision(a.precision);
  const DeviceSpec kernels = kernel_devices(registry, simulated_devices(1), options.precision);
  options.device_kind = kernels.kind;
  std::string why;
  const Net net = build_shown(definition, registry, a.phase, options, why);
  const std::vector<LayerSummary> rows = summarize(net);
  int64_t training_bytes = 0;
  std::string refusal;
  if (options.phase == TANDEM_TRAIN && !net.scalars.empty()) {
    training_bytes = training_memory(registry, definition, options, kernels, &refusal);
  }
  if (!a.dot.empty()) write_output(a.dot, to_dot(net));
  if (!why.empty() && !a.as_json) say("shown for testing: {}\n\n", why);
  a.as_json ? print_as_json(net, rows, training_bytes) : print_table(net, rows, training_bytes);
  if (kernels.ordinals.empty() && !a.as_json) {
    say("as {} devices have it{}\n", kernels.kind,
        training_bytes > 0 ? "; memory is without what their kernels keep beside tensors" : "");
  }
  if (!refusal.empty() && !a.as_json) {
    say("memory is without what the kernels of {} devices keep beside tensors: {}\n", kernels.kind,
        refusal);
  }
  if (!a.dot.empty() && !a.as_json) say("drawing written to {} (dot -Tsvg)\n", a.dot);
  return 0;
}

}  // namespace

void add_net(CommandLine& line) {
  auto a = std::make_shared<NetCommandArguments>();
  Command& command =
      line.add("net", "Show a net: every layer with its shapes, weights, work and memory");
  command.option("net FILE", &a->net.net, "A model's name or a prototxt file").required();
  add_net_size_options(command, a->net);
  add_precision_option(command, a->precision);
  command.option("--phase train|test", &a->phase,
                 "The net of this phase (default: train, if the net can be trained)");
  command.option("--dot FILE", &a->dot, "Write a drawing of the net in DOT");
  add_json_option(command, a->as_json);
  command.action([a] { return run_net(*a); });
}

}  // namespace tandem::cli
