// The promises that a data set makes to the host by plugins/abi/datasets.h, each with a function
// that tries to break it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/check/promises.h"

namespace tandem::checker {

// A data set, and what its user would give it.
struct DataSubject {
  Registry& registry;
  std::string name;
  std::string source;  // --data; "": the name, as of a data set that needs no file
  std::map<std::string, std::string> parameters;
};

struct DataPromise {
  const char* name;
  const char* text;
  Outcome (*check)(const DataSubject&);
};

// All, in the order of the checks.
[[nodiscard]] const std::vector<DataPromise>& data_promises();

}  // namespace tandem::checker
