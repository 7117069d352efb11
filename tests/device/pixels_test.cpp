// Bytes of pictures as floats, by the cpu backend.
#include <gmock/gmock.h>

#include <vector>

#include "core/base/numbers/shape.h"
#include "core/plugin/host.h"
#include "tests/device/backends.h"

namespace tandem {
namespace {

using testing::HasSubstr;

struct Pictures {
  Shape shape;
  std::vector<uint8_t> bytes;
  std::vector<float> floats;

  explicit Pictures(const Shape& given) : shape(given) {
    const auto count = static_cast<size_t>(shape.n * shape.c * shape.h * shape.w);
    for (size_t i = 0; i < count; ++i) bytes.push_back(static_cast<uint8_t>(i * 37 + i / 256));
    floats.assign(count + 1, -5);
  }
  tandem_status convert(int threads) {
    const tandem_call call{sizeof(tandem_call), 0, threads, nullptr, nullptr, nullptr};
    tandem_pixels pixels{sizeof(tandem_pixels),           shape,  bytes.data(), floats.data(),
                         {104.25F, 117.5F, 123.7F, 0.3F}, 0.0173F};
    return test::backend("cpu").arithmetic->convert_pixels(&call, &pixels);
  }
  [[nodiscard]] float expected(size_t i) const {
    constexpr float means[]{104.25F, 117.5F, 123.7F, 0.3F};
    const size_t plane = static_cast<size_t>(shape.h * shape.w);
    const float difference =
        static_cast<float>(bytes[i]) - means[i / plane % static_cast<size_t>(shape.c)];
    return difference * 0.0173F;
  }
};

TEST(CpuPixels, BecomeADifferenceAndAProductByChannel) {
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{3, 3, 5, 7}, Shape{2, 4, 33, 31},
                             Shape{5, 3, 227, 227}, Shape{2, 1, 300, 300}}) {
    for (const int threads : {1, 2, 3}) {
      Pictures pictures(shape);
      ASSERT_EQ(pictures.convert(threads), TANDEM_OK);
      size_t wrong = 0;
      for (size_t i = 0; i < pictures.bytes.size(); ++i) {
        if (pictures.floats[i] != pictures.expected(i)) ++wrong;
      }
      EXPECT_EQ(wrong, 0U) << to_string(shape) << ", threads " << threads;
      EXPECT_EQ(pictures.floats.back(), -5) << "wrote past the end";
    }
  }
}

TEST(CpuPixels, OfNoPictureAreNothing) {
  Pictures none({0, 3, 8, 8});
  EXPECT_EQ(none.convert(2), TANDEM_OK);
}

TEST(CpuPixels, OfMoreChannelsThanThereAreMeansAreRefused) {
  Pictures five({1, 5, 2, 2});
  EXPECT_EQ(five.convert(1), TANDEM_INVALID);
  EXPECT_THAT(take_reason(), HasSubstr("pixels of 1x5x2x2: images have 1 to 4 channels"));
}

TEST(SimPixels, AreNotComputed) {
  Pictures one({1, 1, 2, 2});
  const tandem_call call{sizeof(tandem_call), 0, 1, nullptr, nullptr, nullptr};
  const tandem_pixels pixels{sizeof(tandem_pixels), one.shape, one.bytes.data(),
                             one.floats.data(),     {},        1};
  EXPECT_EQ(test::backend("sim").arithmetic->convert_pixels(&call, &pixels), TANDEM_UNSUPPORTED);
}

}  // namespace
}  // namespace tandem
