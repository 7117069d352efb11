// Runs of the program with the plugins of tests/bad_plugins.
#pragma once

#include <string>

#include "tests/cli/program.h"
#include "tests/support/folders.h"

namespace tandem::test {

inline std::string with_plugins(const std::string& folder) {
  return "TANDEM_PLUGIN_PATH='" + folder + "'";
}

inline std::string bad_plugin(const std::string& name) {
  return test_plugin_folder().string() + "/" + name;
}

// Trains on a data set of mistakes_of_data.
inline Outcome train_on_mistake(const Desk& desk, const std::string& slip,
                                const std::string& options, const std::string& environment = "") {
  desk.write("plain.prototxt", replaced(replaced(tiny_net(), " scale: 0.01 mean_value: 128", ""),
                                        "num_output: 2", "num_output: 8"));
  return desk.tandem(
      "train --net plain.prototxt --data bad_data_" + slip + " --batch 8 --out run " + options,
      "rm -rf run; exec env " + environment + " " + with_plugins(bad_plugin("mistakes_of_data")));
}

}  // namespace tandem::test
