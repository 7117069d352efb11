// What the formula of an element-wise layer says of its slope.
//
// A formula is made from a binding's attributes, is trivially copyable, runs on host and device,
// and has
//   static constexpr SlopeFrom slope_from;
//   float value(float x) const;
//   float slope(float v) const;   dy/dx, from x or from y
// or, in place of slope, where a product would not do: float gradient(float v, float dy) const.
#pragma once

namespace tandem::layers {

// Whence a formula tells its slope: which trait its layer type has.
enum class SlopeFrom { input, output };

}  // namespace tandem::layers
