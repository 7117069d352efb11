// Google Highway for kernels on the cpu: one source is compiled for several instruction sets, and
// the best one that the CPU has is chosen when the program runs. ONEDNN_MAX_CPU_ISA in the
// environment caps Highway as it caps oneDNN, so that kernels fit the layouts of both.
// Include it before <hwy/foreach_target.h>.
#pragma once

// Sets that compute float32 no faster than a neighbor (SSSE3; AVX-512 with VNNI and the like), and
// those whose vectors have no fixed size (SVE), which cannot be elements of arrays.
#define HWY_DISABLED_TARGETS (0x10FFLL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
// CPUs without SSE4 and AES run emulated vectors of four floats. Highway would take single floats
// with g++ 12.2, which miscompiles products of emulated 16-bit integers; no kernel has any.
#define HWY_BROKEN_EMU128 0

#include <hwy/targets.h>

#include "plugins/cpu/onednn.h"

namespace tandem::cpu {

// To be called before a function is taken from a table of HWY_EXPORT.
inline void cap_highway() {
#if HWY_ARCH_X86
  [[maybe_unused]] static const bool done = [] {
    int64_t excluded = 0;
    if (!may_use(dnnl::cpu_isa::avx512_core)) excluded |= HWY_AVX2 - 1;  // all better ones
    if (!may_use(dnnl::cpu_isa::avx2)) excluded |= HWY_AVX2;
    if (excluded != 0) hwy::DisableTargets(excluded);
    return true;
  }();
#endif
}

}  // namespace tandem::cpu
