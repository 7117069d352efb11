/* Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011):
 * counter-based random numbers, the same on host and device. A value depends on (seed, step),
 * (layer, global row, element) and nothing else: never on a thread, a device or a slice. C and CUDA
 * compatible. */
#pragma once

#include <stdint.h>

#ifdef __CUDACC__
#define TANDEM_HOST_DEVICE __host__ __device__
#else
#define TANDEM_HOST_DEVICE
#endif

typedef struct tandem_random4 {
  uint32_t value[4];
} tandem_random4;

/* The raw function: 128-bit counter, 64-bit key. */
TANDEM_HOST_DEVICE static inline tandem_random4 tandem_philox(uint32_t c0, uint32_t c1, uint32_t c2,
                                                              uint32_t c3, uint32_t k0,
                                                              uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = (uint64_t)0xD2511F53u * c0;
    const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
    const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    const uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)p1;
    c3 = (uint32_t)p0;
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  tandem_random4 r;
  r.value[0] = c0;
  r.value[1] = c1;
  r.value[2] = c2;
  r.value[3] = c3;
  return r;
}

/* Four values for elements 4*block .. 4*block+3 of row `row` (position in the global batch) of
 * layer `layer`; element = position in the row's logical C,H,W order (below 2^34). Key: the seed,
 * mixed with the step. */
TANDEM_HOST_DEVICE static inline tandem_random4 tandem_random_block(uint64_t seed, uint64_t step,
                                                                    uint32_t layer, uint64_t row,
                                                                    uint32_t block) {
  const tandem_random4 key = tandem_philox((uint32_t)step, (uint32_t)(step >> 32), 0x74616e64u,
                                           0x656d0001u, (uint32_t)seed, (uint32_t)(seed >> 32));
  return tandem_philox(block, layer, (uint32_t)row, (uint32_t)(row >> 32), key.value[0],
                       key.value[1]);
}

/* [0, 1) with 24 bits. */
TANDEM_HOST_DEVICE static inline float tandem_uniform(uint32_t bits) {
  return (float)(bits >> 8) * (1.0f / 16777216.0f);
}
