#include "core/formats/arrays.h"

#include <bit>
#include <cstring>

namespace tandem {
namespace {

float float_of_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16;
  const uint32_t exponent = (half >> 10) & 0x1FU, fraction = half & 0x3FFU;
  if (exponent == 0) {  // zero and subnormals
    const float value = static_cast<float>(fraction) * 0x1p-24F;
    return sign == 0 ? value : -value;
  }
  const uint32_t rebased = exponent == 0x1F ? 0xFF : exponent + 112;
  return std::bit_cast<float>(sign | rebased << 23 | fraction << 13);
}

float float_of_bfloat16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

template <class T, class Convert>
std::vector<float> converted(std::span<const char> bytes, Convert convert) {
  std::vector<float> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value{};
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = convert(value);
  }
  return values;
}

}  // namespace

uint64_t size_of(ElementType type) {
  switch (type) {
    case ElementType::f16:
    case ElementType::bf16:
      return 2;
    case ElementType::f64:
      return 8;
    case ElementType::f32:
      break;
  }
  return 4;
}

std::vector<float> floats_of(std::span<const char> bytes, ElementType type) {
  switch (type) {
    case ElementType::f16:
      return converted<uint16_t>(bytes, float_of_half);
    case ElementType::bf16:
      return converted<uint16_t>(bytes, float_of_bfloat16);
    case ElementType::f64:
      return converted<double>(bytes, [](double value) { return static_cast<float>(value); });
    case ElementType::f32:
      break;
  }
  return converted<float>(bytes, [](float value) { return value; });
}

}  // namespace tandem
