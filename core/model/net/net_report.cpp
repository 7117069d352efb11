#include "core/model/net/net_report.h"

#include "core/base/error.h"
#include "core/base/text/strings.h"

namespace tandem {
namespace {

// Losses, metrics, layers with weights and others differ in color.
const char* color(const Layer& layer) {
  if (layer.has(TANDEM_LOSS)) return "#f2b5b0";
  if (layer.has(TANDEM_METRIC)) return "#e6d9f2";
  return layer.weights.empty() ? "#eeeeee" : "#b9d3ee";
}

std::string edge_label(const Tensor& tensor) {
  const Shape& s = tensor.shape;
  return s.h == 1 && s.w == 1 ? fmt::format("{}", s.c) : fmt::format("{}x{}x{}", s.c, s.h, s.w);
}

std::string edges(const Net& net, const std::string& from, int tensor) {
  std::string text;
  for (const int consumer : net.tensor(tensor).consumers) {
    text += fmt::format("  {} -> l{} [label=\"{}\"];\n", from, consumer,
                        edge_label(net.tensor(tensor)));
  }
  return text;
}

}  // namespace

std::vector<LayerSummary> summarize(const Net& net) {
  std::vector<LayerSummary> rows;
  for (size_t i = 0; i < net.layers.size(); ++i) {
    const Layer& layer = net.layers[i];
    LayerSummary row;
    row.layer = static_cast<int>(i);
    for (const int output : layer.outputs) {
      const Tensor& tensor = net.tensor(output);
      row.outputs.push_back(tensor.shape);
      if (tensor.alias_of < 0 && tensor.view_of < 0)
        row.output_bytes += element_count(tensor.shape) * dtype_bytes(tensor.dtype);
    }
    for (const int index : layer.weights) {
      const WeightArray& weight = net.weight(index);
      if (weight.layer == row.layer) row.weights += weight.count;
    }
    const tandem_layer_cost cost = net.cost(row.layer, net.batch);
    row.forward_flops = cost.forward_flops;
    if (layer.wants_backward_data) row.backward_flops += cost.backward_data_flops;
    if (layer.wants_backward_weights) row.backward_flops += cost.backward_weights_flops;
    rows.push_back(row);
  }
  return rows;
}

std::string fusion_text(const Net& net, int fused_into) {
  return fused_into < 0 ? "" : "fused into " + net.layer(fused_into).name;
}

std::string to_dot(const Net& net) {
  std::string text = fmt::format(
      "digraph net {{\n  label={};\n  node [shape=box, style=\"rounded,filled\", fontname=sans];\n"
      "  edge [fontname=sans, fontsize=10];\n",
      quote(net.name));
  for (const auto& [tensor, name] : {std::pair{net.data, "data"}, {net.label, "label"}}) {
    if (tensor < 0 || net.tensor(tensor).consumers.empty()) continue;
    text += fmt::format("  {} [shape=oval, fillcolor=\"#ffffff\"];\n", name);
    text += edges(net, name, tensor);
  }
  for (const LayerSummary& row : summarize(net)) {
    const Layer& layer = net.layer(row.layer);
    std::string label = fmt::format("{}\n{}", layer.name, layer.type->name);
    if (row.weights > 0) label += fmt::format("\n{} weights", row.weights);
    if (layer.fused_into >= 0) label += "\n" + fusion_text(net, layer.fused_into);
    text +=
        fmt::format("  l{} [label={}, fillcolor=\"{}\"];\n", row.layer, quote(label), color(layer));
    for (const int output : layer.outputs) {
      text += edges(net, fmt::format("l{}", row.layer), output);
    }
  }
  return text + "}\n";
}

}  // namespace tandem
