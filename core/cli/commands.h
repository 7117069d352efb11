// The commands of the `tandem` program: each adds itself to the command line and sets what to run.
// Everything they do goes through the library; here are only words and tables.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/device/machine.h"
#include "core/model/definition.h"
#include "core/schedule/execution/capture.h"
#include "core/schedule/strategies/strategies.h"

namespace tandem {
struct SessionOptions;
}

namespace tandem::cli {

using Action = std::function<int()>;

void add_train(CLI::App& app, Action& action);
void add_test(CLI::App& app, Action& action);
void add_predict(CLI::App& app, Action& action);
void add_profile(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_layers(CLI::App& app, Action& action);
void add_plugins(CLI::App& app, Action& action);
void add_devices(CLI::App& app, Action& action);
void add_net(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
void add_data(CLI::App& app, Action& action);
void add_pack(CLI::App& app, Action& action);

// Options that several commands share.
struct MachineArguments {
  std::string link, topology;
  int threads = 0;
  uint64_t delay_seed = 0;
  double delay_milliseconds = 1;
  [[nodiscard]] MachineOptions options() const;
};
// A net's state, for the rules of its layers: `--level 1 --stage a,b`, with a prefix "test-" for
// the testing phase where a command has both.
struct StateArguments {
  int64_t level = 0;
  std::vector<std::string> stages;
  [[nodiscard]] NetState state() const { return {level, stages}; }
};
void add_state_options(CLI::App& command, const std::string& prefix, const std::string& what,
                       StateArguments& arguments);
// Of an option's value: a whole number of at least 1.
CLI::Validator at_least_one();
// name=value, as often as it is given.
[[nodiscard]] std::map<std::string, std::string> read_pairs(const std::vector<std::string>& texts,
                                                            const char* option,
                                                            const char* example);
// A drawing or a timeline. Error if `path` is there and begins as no such file: then it is the
// user's.
void write_output(const std::string& path, const std::string& text);
// What stands in for costs that were never measured: `--flops 4.3e12 --memory-bandwidth 200GB/s`.
struct RooflineArguments {
  double flops = 0;
  std::string bandwidth;
  // Replaces what is given; Error for what is not above 0.
  void apply(Roofline& roofline) const;
};
void add_roofline_options(CLI::App& command, RooflineArguments& arguments);
// --precision; a wrong word is refused when the command line is read.
void add_precision_option(CLI::App& command, std::string& precision,
                          const std::string& fallback = "float32");
// --pixels; a wrong word is refused when the command line is read. `standard`: what auto does.
void add_pixels_option(CLI::App& command, std::string& pixels, const std::string& standard);
// For made-up data of that shape; `prefers_bytes`: by default. Error if they cannot be bytes.
void choose_made_up_pixels(const std::string& pixels, bool prefers_bytes, SessionOptions& options);
// What travels to the devices: "bytes" or "floats"; and as a line of a report.
[[nodiscard]] std::string pixels_word(const SessionOptions& options);
[[nodiscard]] std::string pixels_text(const std::string& pixels, const SessionOptions& options);
void add_tune_option(CLI::App& command, bool& tune);
// --graphs
void add_graphs_option(CLI::App& command, GraphUse& graphs);
void add_machine_options(CLI::App& command, MachineArguments& arguments);
// "sequential, two_phase, ... (default: two_phase)": all strategies, and what `standard` adds.
[[nodiscard]] std::string strategy_help(const std::string& standard = "");
// All strategies' options; those that are given come into `options`.
void add_strategy_options(CLI::App& command, StrategyOptions& options);
// Error for one that was given and that `strategy` does not take, and for two that contradict each
// other; `shown` are those that the command itself uses.
void require_strategy_options(const CLI::App& command, const std::string& strategy,
                              const std::vector<StrategyOption>& shown = {});
// Where a net comes from when there is nothing to train on: a model's name or a file, input size
// and classes.
struct NetArguments {
  std::string net = "alexnet";
  int64_t batch = 0, classes = 0, size = 0;
  StateArguments state;
  [[nodiscard]] NetDefinition definition() const;
  [[nodiscard]] Shape data(const NetDefinition& net) const;
  [[nodiscard]] int64_t batch_of(const NetDefinition& net) const;
};
void add_net_options(CLI::App& command, NetArguments& arguments);
void add_net_size_options(CLI::App& command, NetArguments& arguments);  // without --net

}  // namespace tandem::cli
