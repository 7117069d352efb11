// Compiles a function once for each instruction set and selects the best one at run time. Only for
// files that are built without fused multiply-add, so that every clone has the same bits.
#pragma once

// With baseline x86-64 instructions, one core reaches half of the memory's speed. Not with
// sanitizers: the resolvers of cloned functions run before a sanitizer has started, and g++ 12
// instruments them.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define TANDEM_CPU_VECTOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TANDEM_CPU_VECTOR
#endif
