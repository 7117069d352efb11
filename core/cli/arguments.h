// Options that several commands have, each declared once: one alone as an Option for a command's
// table, and groups of them as functions that add them to a command.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/cli/command_line.h"
#include "core/run/setup/program_options.h"
#include "core/schedule/cost/cost_table.h"
#include "core/schedule/strategies/strategies.h"
#include "include/tandem/devices.h"

namespace tandem {
struct SessionOptions;
}

namespace tandem::cli {

constexpr int64_t max_image_size = 16384;  // of --image-size

[[nodiscard]] Option run_option(std::filesystem::path& run);
[[nodiscard]] Option weights_option(std::string& weights);  // of a run: best or last
[[nodiscard]] Option devices_option(std::string& devices);  // of commands that compute
[[nodiscard]] Option ranks_option(int& ranks);
[[nodiscard]] Option json_option(bool& as_json);
[[nodiscard]] Option task_option(Target task);
[[nodiscard]] Option threads_option(int& threads);         // of commands that read images only
[[nodiscard]] Option decode_threads_option(int& threads);  // of those that compute meanwhile
[[nodiscard]] Option tune_option(bool& tune);
[[nodiscard]] Option recompute_option(std::function<void()> given);
[[nodiscard]] Option graphs_option(GraphUse& graphs);
// `what`: "step", what has to finish within the time.
[[nodiscard]] Option watchdog_option(const std::string& what, double& seconds);
// A wrong word is refused when the command line is read. `standard`: the default, in words.
[[nodiscard]] Option precision_option(std::string& precision,
                                      const std::string& standard = "float32");
[[nodiscard]] Option pixels_option(std::string& pixels, const std::string& standard);
// All strategies, and `more` ("auto"); the default is shown.
[[nodiscard]] Option strategy_option(const std::vector<std::string>& more, std::string& strategy,
                                     const std::string& help);

void add_device_options(Command& command, DeviceOptions& options);

// A net's state, for the include and exclude rules of its layers: `--level 1 --stage a,b`. `prefix`
// "test-": --test-level and --test-stage. `what`: "net", for the help text.
void add_state_options(Command& command, const std::string& prefix, const std::string& what,
                       NetState& state);

void add_net_options(Command& command, NetChoice& choice);
void add_net_size_options(Command& command, NetChoice& choice);  // without --net

// The options of all strategies, made from the strategies' own descriptions; those that are given
// are set in `options`.
void add_strategy_options(Command& command, StrategyOptions& options);
// Throws Error for an option that was given and that `strategy` does not take, and for two that
// contradict each other; `shown` are those that the command itself uses.
void require_strategy_options(const Command& command, const std::string& strategy,
                              const std::vector<StrategyOption>& shown = {});

// Chooses the form of synthetic pixels: bytes if --pixels or `prefers_bytes` asks for them. Throws
// Error if the net's input cannot be bytes.
void choose_made_up_pixels(const std::string& pixels, bool prefers_bytes, SessionOptions& options);
// The form in which pixels travel to the devices, "bytes" or "floats"; and as a line of a report.
[[nodiscard]] std::string pixels_word(const SessionOptions& options);
[[nodiscard]] std::string pixels_text(const std::string& pixels, const SessionOptions& options);

// Splits name=value texts. Throws Error, with `example`, for one without '='.
[[nodiscard]] std::map<std::string, std::string> read_pairs(const std::vector<std::string>& texts,
                                                            const char* option,
                                                            const char* example);
// Writes a drawing or a timeline. Throws Error if `path` is a file of another kind, which is then
// the user's.
void write_output(const std::string& path, const std::string& text);

}  // namespace tandem::cli
