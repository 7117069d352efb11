// Compiles a function once for each instruction set; the program uses the best one at run time.
// Only for files built without fused multiply-adds, where every clone gives the same bits.
#pragma once

// The resolvers of cloned functions run before a sanitizer has started, and g++ 12 instruments
// them.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define TANDEM_TARGET_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TANDEM_TARGET_CLONES
#endif
