// Options that several commands share: each group of them as a struct of what was given, and the
// function that declares them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/cli/command_line.h"
#include "core/run/setup/program_options.h"
#include "core/schedule/cost/cost_table.h"
#include "include/tandem/devices.h"

namespace tandem {
struct SessionOptions;
}

namespace tandem::cli {

void add_device_options(Command& command, DeviceOptions& options);

// A net's state, for the include and exclude rules of its layers: `--level 1 --stage a,b`. `prefix`
// "test-": --test-level and --test-stage. `what`: "net", for the help text.
void add_state_options(Command& command, const std::string& prefix, const std::string& what,
                       NetState& state);

// What stands in for costs that were never measured: `--flops 4.3e12 --memory-bandwidth 200GB/s`.
struct RooflineArguments {
  std::optional<double> flops;
  std::string bandwidth;
  // Replaces what was given. Throws Error for a value that is not a finite number above 0.
  void apply(Roofline& roofline) const;
};
void add_roofline_options(Command& command, RooflineArguments& arguments);

void add_net_options(Command& command, NetChoice& choice);
void add_net_size_options(Command& command, NetChoice& choice);  // without --net

// --precision; a wrong word is refused when the command line is read.
void add_precision_option(Command& command, std::string& precision,
                          const std::string& standard = "float32");
// --pixels; a wrong word is refused when the command line is read. `standard`: what auto does.
void add_pixels_option(Command& command, std::string& pixels, const std::string& standard);
// Chooses the form of synthetic pixels: bytes if --pixels or `prefers_bytes` asks for them. Throws
// Error if the net's input cannot be bytes.
void choose_made_up_pixels(const std::string& pixels, bool prefers_bytes, SessionOptions& options);
// The form in which pixels travel to the devices, "bytes" or "floats"; and as a line of a report.
[[nodiscard]] std::string pixels_word(const SessionOptions& options);
[[nodiscard]] std::string pixels_text(const std::string& pixels, const SessionOptions& options);

void add_tune_option(Command& command, bool& tune);
void add_recompute_option(Command& command, std::function<void()> given);
void add_graphs_option(Command& command, GraphUse& graphs);
// --watchdog, with its default shown. `what`: "step", what has to finish within the time.
void add_watchdog_option(Command& command, const std::string& what, double& seconds);
// --devices, of commands that compute.
void add_devices_option(Command& command, std::string& devices);
void add_json_option(Command& command, bool& as_json);
// To standard output. Names in it may be in Latin-1: U+FFFD replaces what is no UTF-8.
void print_json(const nlohmann::json& tree);

// Splits name=value texts. Throws Error, with `example`, for one without '='.
[[nodiscard]] std::map<std::string, std::string> read_pairs(const std::vector<std::string>& texts,
                                                            const char* option,
                                                            const char* example);
// Writes a drawing or a timeline. Throws Error if `path` is a file of another kind, which is then
// the user's.
void write_output(const std::string& path, const std::string& text);

}  // namespace tandem::cli
