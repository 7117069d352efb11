// Loops of C++ with the widest vectors of the CPU. They are compiled for baseline x86-64, for AVX2
// and for AVX-512, and the best set that ONEDNN_MAX_CPU_ISA allows is taken when they run. Only for
// files that are built without fused multiply-add, so that every set computes the same bits.
#pragma once

#include "plugins/cpu/onednn.h"

namespace tandem::cpu {

namespace detail {

#if defined(__x86_64__)
// The body is inlined with all that it calls, and then is compiled for the function's instructions.
template <class Body, class... Arguments>
__attribute__((target("avx2"), flatten, noinline)) void run_avx2(const Body& body,
                                                                 Arguments... arguments) {
  body(arguments...);
}
template <class Body, class... Arguments>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"), flatten, noinline)) void run_avx512(
    const Body& body, Arguments... arguments) {
  body(arguments...);
}
#endif

}  // namespace detail

// The body as a function of the same arguments (ranges of for_ranges() and its like) that computes
// with the widest vectors. What it calls must be inline.
template <class Body>
auto vectorized(const Body& body) {
  return [body](auto... arguments) {
#if defined(__x86_64__)
    static const bool has_avx512 = may_use(dnnl::cpu_isa::avx512_core);
    static const bool has_avx2 = may_use(dnnl::cpu_isa::avx2);
    if (has_avx512) return detail::run_avx512(body, arguments...);
    if (has_avx2) return detail::run_avx2(body, arguments...);
#endif
    body(arguments...);
  };
}

}  // namespace tandem::cpu
