// Small image folders for tests, written as PPM without an image library. Every class has its own
// color and stripe direction in noise, so that a net can learn them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/numbers/random.h"

namespace tandem::test {

inline void write_ppm(const std::filesystem::path& path, int size, int label, uint64_t seed) {
  Random random(seed, stream_of(path.filename().c_str()));
  std::ofstream stream(path, std::ios::binary);
  stream << "P6\n" << size << " " << size << "\n255\n";
  for (int y = 0; y < size; ++y) {
    for (int x = 0; x < size; ++x) {
      const int stripe = ((label % 2 == 0 ? x : y) / 3) % 2 * 60;
      for (int c = 0; c < 3; ++c) {
        const int tint = c == label % 3 ? 90 : 30;
        stream.put(static_cast<char>(tint + stripe + static_cast<int>(random.below(60))));
      }
    }
  }
}

// root/<split>/<class>/<n>.ppm; classes "a", "b", ...
inline void make_image_folder(const std::filesystem::path& root, const std::string& split,
                              int classes, int per_class, int size = 24) {
  for (int label = 0; label < classes; ++label) {
    const auto folder = root / split / std::string(1, static_cast<char>('a' + label));
    std::filesystem::create_directories(folder);
    for (int i = 0; i < per_class; ++i) {
      const std::string name = split + std::to_string(label) + "_" + std::to_string(i) + ".ppm";
      write_ppm(folder / name, size, label, static_cast<uint64_t>(i) + 1);
    }
  }
}

}  // namespace tandem::test
