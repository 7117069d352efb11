// The commands `net` and `models`: what nets are made of, and what training them costs, computed
// without running it.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/cli/commands.h"
#include "core/device/parse.h"
#include "core/formats/safetensors.h"
#include "core/model/adapted/models.h"
#include "core/model/net/learning.h"
#include "core/model/net/net_report.h"
#include "core/model/passes/build_net.h"
#include "core/plugin/registry.h"
#include "core/session/forecast.h"

namespace tandem::cli {
namespace {

// "4.14 G", "910.20 k"; "-" for none.
std::string flops_text(double flops) {
  if (flops >= 1e9) return fmt::format("{:.2f} G", flops / 1e9);
  if (flops >= 1e6) return fmt::format("{:.2f} M", flops / 1e6);
  return flops > 0 ? fmt::format("{:.2f} k", flops / 1e3) : "-";
}

// Training with the batch, data and precision of `options`.
SessionOptions training_session(const NetOptions& options) {
  SessionOptions session;
  session.batch = options.batch;
  session.data = options.data;
  session.precision = options.precision;
  session.testing = false;
  session.rule.states = 1;
  return session;
}

// The memory in bytes to train on one device with kernels as those of `kernels`; `options` have
// batch, data and precision. `refusal`: why these kernels could not be asked, or "".
int64_t training_memory(Registry& registry, const NetDefinition& definition,
                        const NetOptions& options, const DeviceSpec& kernels,
                        std::string* refusal) {
  SessionOptions session = training_session(options);
  session.devices = simulated_devices(1);
  session.kernels = kernels.kind;
  session.strategy = "sequential";
  Session planned(registry, definition, session);
  Phase& phase = planned.training();
  const MemoryPlan memory = memory_on(registry, kernels, phase.net, phase.plan, refusal);
  return memory.persistent_bytes[0] + memory.transient_bytes[0];
}

struct NetCommandArguments {
  NetChoice net;
  std::string precision = "float32";
  std::string phase, dot;  // phase "": training, if the net can be trained
  bool as_json = false;
};

LayerSummary total_of(const std::vector<LayerSummary>& rows) {
  LayerSummary total;
  for (const LayerSummary& row : rows) {
    total.weights += row.weights;
    total.output_bytes += row.output_bytes;
    total.forward_flops += row.forward_flops;
    total.backward_flops += row.backward_flops;
  }
  return total;
}

// Without the batch, which is printed once.
std::string size_text(const Shape& s) {
  return s.h == 1 && s.w == 1 ? fmt::format("{}", s.c) : fmt::format("{}x{}x{}", s.c, s.h, s.w);
}

void add_amounts(const LayerSummary& amounts, json& tree) {
  tree["weights"] = amounts.weights;
  tree["forward_flops"] = amounts.forward_flops;
  tree["backward_flops"] = amounts.backward_flops;
  tree["output_bytes"] = amounts.output_bytes;
}

json summary_json(const Net& net, const LayerSummary& row) {
  const Layer& layer = net.layer(row.layer);
  json entry = {{"name", layer.name},
                {"type", layer.type->name},
                {"inputs", json::array()},
                {"outputs", json::array()}};
  add_amounts(row, entry);
  for (const int input : layer.inputs) entry["inputs"].push_back(net.tensor(input).name);
  for (size_t i = 0; i < row.outputs.size(); ++i) {
    const Shape& s = row.outputs[i];
    const Tensor& tensor = net.tensor(layer.outputs[i]);
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
  return entry;
}

json net_json(const Net& net, const std::vector<LayerSummary>& rows, int64_t training_bytes) {
  json tree = {{"net", net.name},
               {"batch", net.batch},
               {"training_bytes", training_bytes},
               {"layers", json::array()}};
  for (const LayerSummary& row : rows) tree["layers"].push_back(summary_json(net, row));
  add_amounts(total_of(rows), tree);
  return tree;
}

void print_table(const Net& net, const std::vector<LayerSummary>& rows, int64_t training_bytes) {
  size_t width = 5;
  for (const Layer& layer : net.layers) width = std::max(width, layer.name.size());
  print_names("net '{}', batch {}\n\n{:<{}}  {:<16} {:>14} {:<17} {:>10} {:>11} {:>11} {:>10}\n",
              net.name, net.batch, "layer", width, "type", "output", "layout   dtype", "weights",
              "forward", "backward", "memory");
  for (const LayerSummary& row : rows) {
    const Layer& layer = net.layer(row.layer);
    std::string layout;
    if (!layer.outputs.empty()) {
      const Tensor& output = net.tensor(layer.outputs[0]);
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
  const LayerSummary total = total_of(rows);
  const auto batch = double(net.batch);
  say("\n{} layers, {} weights ({})\n", net.layers.size(), total.weights,
      human_bytes(total.weights * dtype_bytes(TANDEM_FLOAT32)));
  say("floating-point operations an image: {} forward, {} backward\n",
      flops_text(total.forward_flops / batch), flops_text(total.backward_flops / batch));
  say("outputs of all layers at batch {}: {}\n", net.batch, human_bytes(total.output_bytes));
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

// What training would refuse or note.
void print_learning_problems(const NetDefinition& definition, const Registry& registry,
                             NetOptions options) {
  options.device_kind = "";
  const Net net = build_net(definition, registry, options);
  for (const LearningProblem& one : find_learning_problems(definition, net, {})) {
    print_names("{}{}\n", one.learns_never ? "nothing can be learned: " : "note: ", one.text);
  }
}

int run_net(NetCommandArguments& a) {
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
  if (a.as_json) return print_json(net_json(net, rows, training_bytes));
  if (!why.empty()) say("shown for testing: {}\n\n", why);
  print_table(net, rows, training_bytes);
  if (kernels.ordinals.empty()) {
    say("as {} devices have it{}\n", kernels.kind,
        training_bytes > 0 ? "; memory is without what their kernels keep beside tensors" : "");
  }
  if (!refusal.empty()) {
    say("memory is without what the kernels of {} devices keep beside tensors: {}\n", kernels.kind,
        refusal);
  }
  for (const std::string& note : definition.notes) print_names("net: {}\n", note);
  if (options.phase == TANDEM_TRAIN) print_learning_problems(definition, registry, options);
  if (!a.dot.empty()) say("drawing written to {} (dot -Tsvg)\n", a.dot);
  return 0;
}

struct ModelsArguments {
  int64_t image_size = 0, batch = 0;
  std::string devices = default_kind;
  bool measures = false, as_json = false;
};

struct ModelRow {
  bool is_published = false;  // a net of torchvision's or timm's
  std::string name, refusal;  // refusal: why it cannot be built for these images, or measured
  bool is_built = false;
  int64_t weights = 0, batch = 0, memory = 0;
  Shape data{1, 3, 0, 0};
  double forward_flops = 0, images_per_second = 0;
};

ModelRow row_of(Registry& registry, const std::string& model, const ModelsArguments& a) {
  NetChoice choice;
  choice.net = model;
  choice.batch = a.batch;
  choice.size = a.image_size;
  const NetDefinition definition = choice.definition();
  ModelRow row;
  row.name = model;
  row.is_published = !is_model_name(model);
  row.data = choice.data(definition);
  row.batch = choice.batch_of(definition);
  try {
    const DeviceSpec kernels = kernel_devices(registry, simulated_devices(1), TANDEM_FLOAT32);
    NetOptions options;
    options.batch = row.batch;
    options.data = row.data;
    options.device_kind = kernels.kind;
    const Net net = build_net(definition, registry, options);
    row.is_built = true;
    for (const LayerSummary& layer : summarize(net)) {
      row.weights += layer.weights;
      row.forward_flops += layer.forward_flops / double(row.batch);
    }
    std::string ignored;
    row.memory = training_memory(registry, definition, options, kernels, &ignored);
    if (!a.measures) return row;
    SessionOptions measured = training_session(options);
    measured.devices = a.devices;
    Session session(registry, definition, measured);
    row.images_per_second = measure(session, 1, 2).images_per_second;
  } catch (const Error& failure) {
    row.refusal = failure.what();
  }
  return row;
}

constexpr std::string_view marked = " *";

void print_row(const ModelRow& row, size_t width, bool with_rate) {
  const std::string name = fmt::format("{}{}", row.name, row.is_published ? marked : "");
  const std::string size = fmt::format("{}x{}", row.data.h, row.data.w);
  if (!row.refusal.empty()) {
    say("{:<{}}  {:>9}  {}\n", name, width, size, row.refusal);
    return;
  }
  say("{:<{}}  {:>9} {:>11} {:>11} {:>6} {:>10}", name, width, size,
      fmt::format("{:.2f} M", double(row.weights) / 1e6), flops_text(row.forward_flops), row.batch,
      human_bytes(row.memory));
  if (with_rate) say(" {:>9.1f}", row.images_per_second);
  say("\n");
}

json row_json(const ModelRow& row, bool with_rate) {
  json entry = {
      {"model", row.name},      {"of", row.is_published ? "torchvision or timm" : "tandem"},
      {"height", row.data.h},   {"width", row.data.w},
      {"weights", row.weights}, {"forward_flops", row.forward_flops},
      {"batch", row.batch},     {"training_bytes", row.memory}};
  if (with_rate) entry["images_per_second"] = row.images_per_second;
  if (!row.refusal.empty()) entry["refusal"] = row.refusal;
  return entry;
}

int run_models(ModelsArguments& a) {
  Registry registry = Registry::with_defaults();
  std::vector<std::string> models = model_names(), both;
  for (const std::string& model : pretrained_net_names()) {
    (is_model_name(model) ? both : models).push_back(model);
  }
  if (models.empty()) throw error("{}", no_models());
  size_t width = 5;
  for (const std::string& model : models) width = std::max(width, model.size() + marked.size());
  if (!a.as_json) {
    say("{:<{}}  {:>9} {:>11} {:>11} {:>6} {:>10}{}\n", "model", width, "images", "weights",
        "operations", "batch", "memory", a.measures ? "  images/s" : "");
  }
  json list = json::array();
  std::vector<ModelRow> failed;  // for another reason than the size of the images
  for (const std::string& model : models) {
    const ModelRow row = row_of(registry, model, a);
    if (!row.refusal.empty() && (row.is_built || a.image_size == 0)) failed.push_back(row);
    if (a.as_json) {
      list.push_back(row_json(row, a.measures));
    } else {
      print_row(row, width, a.measures);
      std::fflush(stdout);
    }
  }
  if (a.as_json) print_json(list);
  if (!failed.empty()) {
    throw error("{} of the models cannot be shown; the first: {}: {}", failed.size(),
                failed[0].name, failed[0].refusal);
  }
  if (a.as_json) return 0;
  say("\noperations: floating-point operations of a forward pass of one image; memory: to train on "
      "one device with this batch{}\n",
      a.measures ? "; images/s: training steps on " + a.devices
                 : ". --measure adds the images/s of this machine");
  say("*: as torchvision or timm has it, for its weights (--weights FILE --model NAME){}\n",
      both.empty() ? ""
                   : fmt::format("; with such weights {} are theirs, too", fmt::join(both, ", ")));
  return 0;
}

}  // namespace

void add_net(CommandLine& line) {
  Command& command =
      line.add("net", "Show a net: every layer with its shapes, weights, work and memory");
  NetCommandArguments& a = command.runs(run_net);
  command.add({{"net FILE", &a.net.net, "A model's name or a prototxt file", required}});
  add_net_size_options(command, a.net);
  command.add({
      precision_option(a.precision),
      {"--phase train|test", &a.phase,
       "The net of this phase (default: train, if the net can be trained)"},
      {"--dot FILE", &a.dot, "Write a drawing of the net in DOT"},
      json_option(a.as_json),
  });
}

void add_models(CommandLine& line) {
  Command& command =
      line.add("models", "List the models: image size, weights, work, memory, speed");
  ModelsArguments& a = command.runs(run_models);
  command.add({
      {"--image-size N", &a.image_size, "Height and width of the images (default: the model's)",
       in_range(1, max_image_size)},
      {"--batch N", &a.batch, "Images in a batch (default: the model's)", in_range(1)},
      {"--measure", &a.measures, "Run three training steps of each model, which may take minutes"},
      devices_option(a.devices),
      json_option(a.as_json),
  });
}

}  // namespace tandem::cli
