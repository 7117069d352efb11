// Data sets of uncompressed pictures: IDX, and CIFAR-10's binary form. Every sample that is there
// can be read or is skipped.
#include <algorithm>

#include "core/data/dataset.h"
#include "tests/fuzz/targets.h"

namespace tandem::fuzz {
namespace {

constexpr int side = 4;

void read_all(const std::filesystem::path& source, int channels) {
  accepts([&] {
    DatasetOptions options;
    options.source = source.string();
    options.shape = {1, channels, side, side};
    const Dataset dataset(registry(), options);
    std::vector<float> pixels(static_cast<size_t>(channels) * side * side);
    float label = 0;
    std::string reason;
    for (int64_t i = 0; i < std::min<int64_t>(dataset.size(), 3); ++i) {
      (void)dataset.sample_name(i);
      (void)dataset.get(i, 1, pixels.data(), &label, &reason);
      (void)dataset.describe(i, &reason);
    }
  });
}

}  // namespace

// The first byte tells how many bytes the file of labels has, which come first.
void idx(std::string_view bytes) {
  if (bytes.empty()) return;
  const auto labels = static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  const std::string_view label_bytes = bytes.substr(0, labels);
  (void)file_of("train-labels-idx1-ubyte", label_bytes);
  read_all(file_of("train-images-idx3-ubyte", bytes.substr(label_bytes.size())), 1);
}

// The first byte tells how many bytes the file of class names has, which come first; the rest is
// repeated to fill records.
void cifar(std::string_view bytes) {
  if (bytes.empty()) return;
  const auto names = static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  const std::string_view name_bytes = bytes.substr(0, names);
  bytes.remove_prefix(name_bytes.size());
  (void)file_of("batches.meta.txt", name_bytes);
  std::string records(bytes);
  constexpr size_t record = 3073;
  if (!records.empty() && records.size() < record) {
    while (records.size() < 2 * record) records.append(bytes);
    records.resize(2 * record);
  }
  read_all(file_of("data_batch_1.bin", records), 3);
}

}  // namespace tandem::fuzz
