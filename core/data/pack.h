// Writes a data set as one file, for data that are read many times: pictures are shrunk once and
// stored in shuffled order with check sums. The data set's own plugin writes and reads the file.
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
  int quality = 92;                                         // of the JPEGs that are encoded again
  uint64_t seed = 1;                                        // of split and order
  int threads = 0;                                          // 0: as many as there are cores
  const std::atomic<bool>* stop = nullptr;                  // becomes true: pack() writes no file
  std::function<void(int64_t done, int64_t all)> progress;  // may be empty
};

struct PackResult {
  std::string type;                                     // of the data set
  std::vector<std::pair<std::string, int64_t>> splits;  // with the packed samples of each
  std::vector<BadSample> left_out;                      // damaged
};

// Writes all splits of the data set. Error if something cannot be read or written, or if the data
// set cannot be packed.
PackResult pack(Registry& registry, const PackOptions& options);

}  // namespace tandem
