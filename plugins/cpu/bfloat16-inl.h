// Vectors of float32 from and to memory of float32 or bfloat16, for each of Highway's targets.
// Values are rounded as cpu::store() does. For sources that are compiled for all targets
// (plugins/cpu/highway.h).
#if defined(TANDEM_BFLOAT16_VECTORS) == defined(HWY_TARGET_TOGGLE)
#ifdef TANDEM_BFLOAT16_VECTORS
#undef TANDEM_BFLOAT16_VECTORS
#else
#define TANDEM_BFLOAT16_VECTORS
#endif

#include <hwy/highway.h>

#include "plugins/cpu/bfloat16.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const bfloat16* from) {
  const hn::RebindToUnsigned<D> wide;
  const hn::Rebind<uint16_t, D> narrow;
  const auto bits = hn::LoadU(narrow, reinterpret_cast<const uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(wide, bits)));
}

// The nearest values that T holds.
template <class T, class D>
HWY_INLINE hn::Vec<D> rounded(D d, hn::Vec<D> value) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return value;
  } else {
    const hn::RebindToUnsigned<D> wide;
    const auto bits = hn::BitCast(wide, value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(wide, 1U));
    const auto nearest = hn::Add(hn::Add(bits, hn::Set(wide, 0x7fffU)), odd);
    const auto quiet = hn::Or(bits, hn::Set(wide, 0x00400000U));
    const auto kept = hn::IfThenElse(hn::RebindMask(wide, hn::IsNaN(value)), quiet, nearest);
    return hn::BitCast(d, hn::And(kept, hn::Set(wide, 0xffff0000U)));
  }
}

// Of values that are rounded, or were loaded from such memory.
template <class D>
HWY_INLINE void store_rounded(D d, hn::Vec<D> value, float* to) {
  hn::StoreU(value, d, to);
}
template <class D>
HWY_INLINE void store_rounded(D, hn::Vec<D> value, bfloat16* to) {
  const hn::RebindToSigned<D> integers;
  const hn::Rebind<int16_t, D> narrow;
  // The shift keeps the sign, so that the upper half is what a saturating conversion gives.
  const auto upper = hn::ShiftRight<16>(hn::BitCast(integers, value));
  hn::StoreU(hn::DemoteTo(narrow, upper), narrow, reinterpret_cast<int16_t*>(to));
}

}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
