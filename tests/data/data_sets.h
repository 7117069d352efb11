// Data sets for the tests in tests/data: the scripted one of tests/data/plugin, and those of the
// build.
#pragma once

#include <gmock/gmock.h>

#include <map>
#include <string>

#include "core/data/dataset.h"
#include "core/plugin/registry.h"
#include "tests/support/folders.h"
#include "tests/support/message_of.h"

namespace tandem::test {

inline Registry& data_registry() {
  static Registry registry = [] {
    Registry made;
    made.scan(test::test_plugin_folder() / "data");
    made.scan(test::plugin_folder());
    return made;
  }();
  return registry;
}

using Parameters = std::map<std::string, std::string>;

// The scripted data set: sample i has pixels (i, its seed's bits, 7, 7).
inline DatasetOptions scripted_options(const Parameters& parameters) {
  DatasetOptions options;
  options.source = "scripted";
  options.shape = {1, 0, 0, 0};
  options.parameters = parameters;
  return options;
}
inline Dataset scripted(const Parameters& parameters = {}) {
  return {data_registry(), scripted_options(parameters)};
}

}  // namespace tandem::test
