// Small CIFAR-10 files for tests: noise around a color of the class, so that a net can learn them
// and every byte of every image matters.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/numbers/random.h"

namespace tandem::test {

// Record i has class i % classes.
[[nodiscard]] inline std::string cifar_file(int count, int classes, uint64_t seed) {
  constexpr int plane = 32 * 32;
  Random random(seed, stream_of("cifar"));
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    const int label = i % classes;
    bytes += static_cast<char>(label);
    for (int c = 0; c < 3; ++c) {
      const int tint = c == label % 3 ? 90 : 0;
      for (int k = 0; k < plane; ++k) {
        bytes += static_cast<char>(std::min(255, tint + static_cast<int>(random.below(200))));
      }
    }
  }
  return bytes;
}

// Writes data_batch_1.bin and test_batch.bin to the folder.
inline void make_cifar(const std::filesystem::path& folder, int training, int testing,
                       int classes = 3) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "data_batch_1.bin", std::ios::binary) << cifar_file(training, classes, 1);
  std::ofstream(folder / "test_batch.bin", std::ios::binary) << cifar_file(testing, classes, 2);
}

}  // namespace tandem::test
