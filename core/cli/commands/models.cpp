#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/cli/arguments.h"
#include "core/cli/commands.h"
#include "core/cli/net_costs.h"
#include "core/cli/print.h"
#include "core/device/parse.h"
#include "core/model/file/models.h"
#include "core/model/net/net_report.h"
#include "core/model/passes/build_net.h"
#include "core/session/forecast.h"

namespace tandem::cli {
namespace {

struct ModelsArguments {
  int64_t image_size = 0, batch = 0;
  std::string devices = default_kind;
  bool measures = false, as_json = false;
};

struct ModelRow {
  std::string name, refusal;  // refusal: why it cannot be built for these images
  int64_t weights = 0, batch = 0, memory = 0;
  Shape data{1, 3, 0, 0};
  double forward_flops = 0, images_per_second = 0;
};

double measured_rate(Registry& registry, const NetDefinition& definition, const ModelRow& row,
                     const std::string& devices) {
  SessionOptions options;
  options.devices = devices;
  options.batch = row.batch;
  options.data = row.data;
  options.testing = false;
  options.rule.states = 1;
  Session session(registry, definition, options);
  return measure(session, 1, 2).images_per_second;
}

ModelRow row_of(Registry& registry, const std::string& model, const ModelsArguments& a) {
  NetChoice choice;
  choice.net = model;
  choice.batch = a.batch;
  choice.size = a.image_size;
  const NetDefinition definition = choice.definition();
  ModelRow row;
  row.name = model;
  row.data = choice.data(definition);
  row.batch = choice.batch_of(definition);
  try {
    const DeviceSpec kernels = kernel_devices(registry, simulated_devices(1), TANDEM_FLOAT32);
    NetOptions options;
    options.batch = row.batch;
    options.data = row.data;
    options.device_kind = kernels.kind;
    const Net net = build_net(definition, registry, options);
    for (const LayerSummary& layer : summarize(net)) {
      row.weights += layer.weights;
      row.forward_flops += layer.forward_flops / static_cast<double>(row.batch);
    }
    std::string ignored;
    row.memory = training_memory(registry, definition, options, kernels, &ignored);
    if (a.measures) row.images_per_second = measured_rate(registry, definition, row, a.devices);
  } catch (const Error& failure) {
    row.refusal = failure.what();
  }
  return row;
}

void print_row(const ModelRow& row, size_t width, bool with_rate) {
  const std::string size = fmt::format("{}x{}", row.data.h, row.data.w);
  if (!row.refusal.empty()) {
    say("{:<{}}  {:>9}  {}\n", row.name, width, size, row.refusal);
    return;
  }
  say("{:<{}}  {:>9} {:>11} {:>11} {:>6} {:>10}", row.name, width, size,
      fmt::format("{:.2f} M", static_cast<double>(row.weights) / 1e6),
      flops_text(row.forward_flops), row.batch, human_bytes(row.memory));
  if (with_rate) say(" {:>9.1f}", row.images_per_second);
  say("\n");
}

int run_models(const ModelsArguments& a) {
  Registry registry = Registry::with_defaults();
  const std::vector<std::string> models = model_names();
  size_t width = 5;
  for (const std::string& model : models) width = std::max(width, model.size());
  if (!a.as_json) {
    say("{:<{}}  {:>9} {:>11} {:>11} {:>6} {:>10}{}\n", "model", width, "images", "weights",
        "operations", "batch", "memory", a.measures ? "  images/s" : "");
  }
  nlohmann::json list = nlohmann::json::array();
  for (const std::string& model : models) {
    const ModelRow row = row_of(registry, model, a);
    if (!a.as_json) {
      print_row(row, width, a.measures);
      std::fflush(stdout);
      continue;
    }
    list.push_back({{"model", row.name},
                    {"height", row.data.h},
                    {"width", row.data.w},
                    {"weights", row.weights},
                    {"forward_flops", row.forward_flops},
                    {"batch", row.batch},
                    {"training_bytes", row.memory}});
    if (a.measures) list.back()["images_per_second"] = row.images_per_second;
    if (!row.refusal.empty()) list.back()["refusal"] = row.refusal;
  }
  if (a.as_json) {
    print_json(list);
    return 0;
  }
  say("\noperations: floating-point operations of a forward pass of one image; memory: to train on "
      "one device with this batch{}\n",
      a.measures ? "; images/s: training steps on " + a.devices
                 : ". --measure adds the images/s of this machine");
  return 0;
}

}  // namespace

void add_models(CommandLine& line) {
  auto a = std::make_shared<ModelsArguments>();
  Command& command =
      line.add("models", "List the built-in models: image size, weights, work, memory, speed");
  command
      .option("--image-size N", &a->image_size,
              "Height and width of the images (default: the model's)")
      .range(1, 16384);
  command.option("--batch N", &a->batch, "Images in a batch (default: the model's)").range(1);
  command.flag("--measure", a->measures,
               "Run three training steps of each model, which may take minutes");
  add_devices_option(command, a->devices);
  add_json_option(command, a->as_json);
  command.action([a] { return run_models(*a); });
}

}  // namespace tandem::cli
