// The command line of `tandem-alexnet`, checked as far as that is possible without a net.
#pragma once

#include <tandem/devices.h>
#include <tandem/strategies.h>

#include <cstdint>
#include <optional>
#include <string>

namespace alexnet {

struct Options {
  std::string data;  // a folder of images; "": synthetic input
  std::string devices = "cpu:2", strategy = "two_phase";
  std::string precision = "float32";  // of activations and their gradients; or bfloat16
  tandem::StrategyOptions strategy_options;
  tandem::DeviceOptions machine;
  int64_t batch = 128;            // global
  int64_t classes = 0, size = 0;  // of synthetic input; 0: as the net's file has them
  int64_t steps = 0;              // measured; with images: trained. 0: not given
  int64_t epochs = 0;             // with images. 0: not given
  int warm_up = 2;
  std::optional<double> rate;
  std::optional<uint64_t> seed;
  std::string out;          // the run folder of a training; "": a free name
  std::string paced;        // cost file; "": compute is done, not paced
  std::string write_costs;  // cost file to write; "": none
  std::string timeline = "alexnet_timeline.json";
  std::string svg;  // the timeline as a picture; "": none

  [[nodiscard]] int measured_steps() const {
    return data.empty() && steps > 0 ? static_cast<int>(steps) : 5;
  }
  [[nodiscard]] bool hides_broadcast() const {
    const auto found = strategy_options.find("hidden_broadcast");
    return found == strategy_options.end() || std::get<bool>(found->second);
  }
};

// Reads the command line. Without a value the program is done and exits with `exit_code` (--help).
// Throws tandem::Error with one message for what is wrong.
[[nodiscard]] std::optional<Options> read_options(int argc, char** argv, int* exit_code);

}  // namespace alexnet
