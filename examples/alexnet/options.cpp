#include "examples/alexnet/options.h"

#include <CLI/CLI.hpp>

#include "core/base/error.h"
#include "core/base/shape.h"
#include "core/schedule/strategies/strategies.h"

namespace alexnet {
namespace {

using tandem::error;

void declare_strategy_options(CLI::App& app, tandem::StrategyOptions& options) {
  for (const tandem::KnownOption& known : tandem::built_in_strategies().options()) {
    const tandem::StrategyOption& option = known.option;
    if (option.is_flag) {
      app.add_flag_callback(
          option.name, [&options, &option] { options[option.key] = option.parse(""); },
          known.help_text());
    } else {
      app.add_option_function<std::string>(
          option.name,
          [&options, &option](const std::string& text) {
            options[option.key] = option.parse(text);
          },
          known.help_text());
    }
  }
}

void declare(CLI::App& app, Options& o, std::string& link, bool& synthetic) {
  CLI::Option* data = app.add_option("--data", o.data, "Train on this folder of images");
  app.add_flag("--synthetic", synthetic, "Measure on synthetic input (default)")->excludes(data);
  app.add_option("--devices", o.devices, "cpu, cpu:2, ...")->capture_default_str();
  app.add_option("--strategy", o.strategy,
                 tandem::built_in_strategies().names() + "; all: one after the other")
      ->capture_default_str();
  app.add_option("--precision", o.precision,
                 "float32 or bfloat16: of activations and their gradients; weights stay float32")
      ->capture_default_str();
  app.add_option("--batch", o.batch, "Images in the global batch, however many devices share it")
      ->capture_default_str();
  app.add_option("--steps", o.steps, "Steps to measure (default: 5); with --data: to train");
  app.add_option("--epochs", o.epochs, "With --data: passes over the images (default: 1)");
  app.add_option("--warm-up", o.warm_up, "Steps before the measured ones")->capture_default_str();
  app.add_option("--classes", o.classes, "Classes of synthetic input (default: 1000)");
  app.add_option("--size", o.size, "Height and width of synthetic input (default: 227)");
  app.add_option("--link", link,
                 "Speed of copies between devices, e.g. bandwidth=4GB/s,latency=10us");
  app.add_option("--threads", o.machine.threads, "Cores the devices share (default: all)");
  CLI::Option* paced = app.add_option(
      "--paced", o.paced, "Compute takes the time this cost file says, without being done");
  app.add_option("--costs", o.write_costs, "Write the measured costs to this file")
      ->excludes(paced);
  app.add_option("--timeline", o.timeline, "Where the timeline goes (Chrome trace JSON)")
      ->capture_default_str();
  app.add_option("--svg", o.svg, "Draw the timeline in this file");
  declare_strategy_options(app, o.strategy_options);
  app.add_option("--lr", o.rate, "With --data: base learning rate (default: the model's)");
  app.add_option("--seed", o.seed, "With --data: of weights, order, augmentation and dropout");
  app.add_option("--out", o.out, "With --data: run folder (default: runs/alexnet-<number>)");
}

void check(const Options& o) {
  (void)tandem::parse_precision(o.precision);
  if (o.batch < 1) throw error("--batch {}: the batch must have at least 1 image", o.batch);
  if (o.steps < 0) throw error("--steps {}: there must be at least 1 step", o.steps);
  if (o.epochs < 0) throw error("--epochs {}: there must be at least 1 epoch", o.epochs);
  if (o.warm_up < 1) throw error("--warm-up {}: there must be at least 1 step", o.warm_up);
  if (o.classes < 0 || o.classes == 1)
    throw error("--classes {}: there must be at least 2", o.classes);
  if (o.size < 0) throw error("--size {}: images have at least 1 pixel a side", o.size);
  if (o.machine.threads < 0)
    throw error("--threads {}: there must be at least 1 (or 0 for all cores)", o.machine.threads);
  if (!o.data.empty() && (o.classes > 0 || o.size > 0))
    throw error("--classes and --size are of synthetic input; with --data {} both follow the data",
                o.data);
  if (o.strategy == "all" && (!o.data.empty() || !o.write_costs.empty())) {
    throw error(
        "--strategy all measures on synthetic input and writes no costs: name one strategy with "
        "--data or --costs");
  }
  if (o.data.empty() && (o.epochs > 0 || o.rate || o.seed || !o.out.empty()))
    throw error("--epochs, --lr, --seed and --out are of a training: name the images with --data");
}

}  // namespace

std::optional<Options> read_options(int argc, char** argv, int* exit_code) {
  Options options;
  std::string link;
  bool synthetic = false;
  CLI::App app{
      "Trains AlexNet through the eight-stage pipeline and shows where every step's time goes.\n"
      "Without --data it measures on synthetic input; with --data it measures, then trains."};
  app.name("tandem-alexnet");
  declare(app, options, link, synthetic);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    *exit_code = app.exit(asked);
    return std::nullopt;
  } catch (const CLI::ParseError& failure) {
    throw error("{} (see 'tandem-alexnet --help')", failure.what());
  }
  if (!link.empty()) options.machine.link = tandem::parse_link(link);
  for (const tandem::KnownOption& known : tandem::built_in_strategies().options()) {
    if (app.count(known.option.name) == 0) continue;
    tandem::built_in_strategies().require_option_of(options.strategy, known);
  }
  check(options);
  return options;
}

}  // namespace alexnet
