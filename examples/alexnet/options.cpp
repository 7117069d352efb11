#include "options.h"

#include <fmt/format.h>
#include <tandem/error.h>
#include <tandem/strategies.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "text.h"

namespace alexnet {
namespace {

template <class... Arguments>
tandem::Error error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return tandem::Error(fmt::format(format, std::forward<Arguments>(arguments)...));
}

std::string strategy_names() {
  std::string names;
  for (const tandem::StrategyInfo& strategy : tandem::list_strategies()) {
    names += (names.empty() ? "" : ", ") + strategy.name;
  }
  return names;
}

void declare_strategy_options(CLI::App& app, tandem::StrategyOptions& options) {
  for (const tandem::StrategyOptionInfo& option : tandem::list_strategy_options()) {
    const auto set = [&options, name = option.name](const std::string& value) {
      tandem::set_strategy_option(options, name, value);
    };
    if (option.is_flag) {
      app.add_flag_callback(
          option.name, [set] { set(""); }, option.help);
    } else {
      app.add_option_function<std::string>(option.name, set, option.help);
    }
  }
}

void declare(CLI::App& app, Options& o, bool& synthetic) {
  CLI::Option* data = app.add_option("--data", o.data, "Train on this folder of images");
  app.add_flag("--synthetic", synthetic, "Measure on synthetic input (default)")->excludes(data);
  app.add_option("--devices", o.devices, "cpu, cpu:2, ...")->capture_default_str();
  app.add_option("--strategy", o.strategy, strategy_names() + "; all: one after the other")
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
  app.add_option("--link", o.machine.link,
                 "Speed of copies between devices, e.g. bandwidth=4GB/s,latency=10us");
  app.add_option("--threads", o.machine.threads, "Cores the devices share (default: all)");
  CLI::Option* paced =
      app.add_option("--paced", o.paced,
                     "Pace the run: compute takes the times of this cost file and is not done");
  app.add_option("--costs", o.write_costs, "Write the measured costs to this file")
      ->excludes(paced);
  app.add_option("--timeline", o.timeline, "Where the timeline goes (Chrome trace JSON)")
      ->capture_default_str();
  app.add_option("--svg", o.svg, "Draw the timeline in this file");
  declare_strategy_options(app, o.strategy_options);
  app.add_option("--lr", o.rate, "With --data: base learning rate (default: the model's)");
  app.add_option("--seed", o.seed, "With --data: seed of weights, order, augmentation and dropout");
  app.add_option("--out", o.out, "With --data: run folder (default: runs/alexnet-<number>)");
}

void check(const Options& o) {
  if (o.batch < 1) throw error("--batch {}: the batch must have at least 1 image", o.batch);
  if (o.steps < 0) throw error("--steps {}: there must be at least 1 step", o.steps);
  if (o.epochs < 0) throw error("--epochs {}: there must be at least 1 epoch", o.epochs);
  if (o.warm_up < 1) throw error("--warm-up {}: there must be at least 1 step", o.warm_up);
  if (o.classes < 0 || o.classes == 1) {
    throw error("--classes {}: there must be at least 2", o.classes);
  }
  if (o.size < 0) throw error("--size {}: images have at least 1 pixel a side", o.size);
  if (!o.data.empty() && (o.classes > 0 || o.size > 0)) {
    throw error("--classes and --size are of synthetic input; with --data {} both follow the data",
                o.data);
  }
  if (o.strategy == "all" && (!o.data.empty() || !o.write_costs.empty())) {
    throw error(
        "--strategy all measures on synthetic input and writes no costs: name one strategy with "
        "--data or --costs");
  }
  if (o.data.empty() && (o.epochs > 0 || o.rate || o.seed || !o.out.empty())) {
    throw error("--epochs, --lr, --seed and --out are of a training: name the images with --data");
  }
}

}  // namespace

std::optional<Options> read_options(int argc, char** argv, int* exit_code) {
  Options options;
  bool synthetic = false;
  CLI::App app{
      "Trains AlexNet through the eight-stage pipeline and shows where every step's time goes.\n"
      "Without --data it measures on synthetic input; with --data it measures, then trains."};
  app.name("tandem-alexnet");
  declare(app, options, synthetic);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    std::ostringstream text;
    *exit_code = app.exit(asked, text);
    say("{}", text.str());
    return std::nullopt;
  } catch (const CLI::ParseError& failure) {
    throw error("{} (see 'tandem-alexnet --help')", failure.what());
  }
  check(options);
  return options;
}

}  // namespace alexnet
