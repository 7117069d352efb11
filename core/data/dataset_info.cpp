#include "core/data/dataset_info.h"

#include <cmath>
#include <type_traits>

#include "core/base/error.h"

namespace tandem {
namespace {

constexpr int64_t most_byte_channels = std::extent_v<decltype(tandem_dataset_info::byte_means)>;

bool fits(int64_t given, int64_t expected) {
  return given > 0 && (expected == 0 || given == expected);
}

// What a plugin says of its bytes: floats are made of them far from here, where nobody can ask.
void check_bytes(const tandem_dataset_type& type, const tandem_dataset_info& info,
                 const std::string& what) {
  if (info.has_bytes == 0) return;
  const auto wrong = [&](const std::string& problem) {
    return error("{}: data set '{}' says that it has bytes (has_bytes), but {}", what, type.name,
                 problem);
  };
  if (type.get_bytes == nullptr) throw wrong("has no get_bytes() to give them");
  if (info.shape.c > most_byte_channels) {
    throw wrong(fmt::format("its samples have {} channels; bytes have 1 to {}", info.shape.c,
                            most_byte_channels));
  }
  if (!std::isfinite(info.byte_scale) || info.byte_scale == 0) {
    throw wrong(fmt::format("their scale (byte_scale) is {}; it must be finite and not 0",
                            info.byte_scale));
  }
  for (int64_t channel = 0; channel < info.shape.c; ++channel) {
    if (std::isfinite(info.byte_means[channel])) continue;
    throw wrong(fmt::format("the mean of channel {} (byte_means) is {}; it must be finite", channel,
                            info.byte_means[channel]));
  }
}

}  // namespace

void check_info(const tandem_dataset_type& type, const tandem_dataset_info& info,
                const Shape& expected, const std::string& what) {
  if (info.size < 1) throw error("{}: holds no sample", what);
  if (info.class_count < 1) throw error("{}: has no classes", what);
  const Shape& given = info.shape;
  if (!fits(given.c, expected.c) || !fits(given.h, expected.h) || !fits(given.w, expected.w)) {
    throw error("{}: gives samples of {}x{}x{}, but the net expects {}x{}x{} (0: any)", what,
                given.c, given.h, given.w, expected.c, expected.h, expected.w);
  }
  check_bytes(type, info, what);
}

}  // namespace tandem
