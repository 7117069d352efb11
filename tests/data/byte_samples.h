// A sample as floats, and as bytes converted to floats.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/data/dataset.h"
#include "tests/data/data_sets.h"

namespace tandem::test {

struct BothForms {
  std::vector<float> floats, of_bytes;
  std::vector<uint8_t> bytes;
  float label = -7, byte_label = -7;
  SampleStatus status = SampleStatus::good, byte_status = SampleStatus::good;
  std::string reason, byte_reason;

  // The largest distance, in steps of a byte.
  [[nodiscard]] double distance(const Dataset& data) const {
    double largest = 0;
    for (size_t i = 0; i < floats.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(floats[i]) - of_bytes[i]));
    }
    return largest / std::abs(static_cast<double>(data.pixel_scale().scale));
  }
};

[[nodiscard]] inline BothForms both_forms(const Dataset& data, int64_t index, uint64_t seed) {
  BothForms result;
  const auto count = static_cast<size_t>(element_count(data.shape()));
  result.floats.resize(count);
  result.of_bytes.resize(count);
  result.bytes.resize(count);
  result.status = data.get(index, seed, result.floats.data(), &result.label, &result.reason);
  result.byte_status =
      data.get_bytes(index, seed, result.bytes.data(), &result.byte_label, &result.byte_reason);
  to_floats(result.bytes.data(), data.shape(), data.pixel_scale(), result.of_bytes.data());
  return result;
}

// Every sample under some seeds: the same labels, and floats that differ by at most `steps` of a
// byte; 0: by no bit.
inline void expect_alike(const Dataset& data, double steps, const std::string& what) {
  ASSERT_TRUE(data.has_bytes()) << what << ": " << data.why_no_bytes();
  for (int64_t i = 0; i < std::min<int64_t>(data.size(), 12); ++i) {
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const BothForms both = both_forms(data, i, seed);
      ASSERT_EQ(both.byte_status, both.status) << what;
      EXPECT_EQ(both.byte_label, both.label) << what;
      if (steps == 0) {
        EXPECT_TRUE(both.of_bytes == both.floats) << what << ", sample " << i << ", seed " << seed;
      } else {
        EXPECT_LE(both.distance(data), steps) << what << ", sample " << i << ", seed " << seed;
      }
    }
  }
}

// Half of a step, plus the rounding of floats of a byte's size.
constexpr double half_a_step = 0.5 + 1e-4;

}  // namespace tandem::test
