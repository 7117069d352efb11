// Writing a data set as one file, for data that are read many times: shrunk once, in a shuffled
// order, with check sums. The data set's own plugin writes and reads it.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/data/bad_samples.h"
#include "core/data/dataset.h"

namespace tandem {

struct PackOptions {
  std::string source, file;                                 // `file` must not exist
  std::map<std::string, std::string> parameters;            // of the data set
  int64_t shorter_side = 256;                               // 0: pictures stay as they are
  int quality = 92;                                         // of the JPEGs that are written anew
  uint64_t seed = 1;                                        // of split and order
  int threads = 0;                                          // 0: as many as there are cores
  const std::atomic<bool>* stop = nullptr;                  // becomes true: nothing is left behind
  std::function<void(int64_t done, int64_t all)> progress;  // may be empty
};

struct PackResult {
  std::string type;                                     // of the data set
  std::vector<std::pair<std::string, int64_t>> splits;  // with how many samples were asked for
  std::vector<BadSample> left_out;                      // damaged
};

// Every split that the data set has. Throws Error for what cannot be read or written, and where the
// data set has no such file.
PackResult pack(Registry& registry, const PackOptions& options);

// The splits a source has, opened as they are stored: train, val, and test where it is one of its
// own. `shape`: as in DatasetOptions. What a net would make of the pictures is left aside.
struct NamedSplit {
  std::string name;
  std::unique_ptr<Dataset> dataset;
};
[[nodiscard]] std::vector<NamedSplit> open_splits(
    Registry& registry, const std::string& source,
    const std::map<std::string, std::string>& parameters, uint64_t seed, const Shape& shape);

}  // namespace tandem
