// The promises that a data set makes to the host by plugins/abi/datasets.h, each with a function
// that tries to break it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/check/promises/promises.h"

namespace tandem::checker {

// A data set, and what its user would give it.
struct DataSubject {
  Registry& registry;
  std::string name;
  std::string source;  // --data; "": the name, as of a data set that needs no file
  std::map<std::string, std::string> parameters;
  Shape shape{1, 0, 0, 0};               // that a net expects; 0: any
  std::vector<std::string> class_names;  // of the model; empty: the data set decides
  bool validates = true;                 // whether split 'val' is read
  // How many samples are read again and again, and how many once, spread over all.
  int64_t samples = 48, samples_once = 1000;
};

struct DataPromise {
  const char* name;
  const char* text;
  Outcome (*check)(const DataSubject&);
  // Tried before the first step of training, too.
  bool before_training = true;
};

// All, in the order of the checks.
[[nodiscard]] const std::vector<DataPromise>& data_promises();

// Lets the subject have as few samples as a check of some seconds has time for.
void limit_time(DataSubject& subject, double seconds);

}  // namespace tandem::checker
