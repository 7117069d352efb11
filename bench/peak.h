// What this machine's cores reach in multiply-adds that need no memory: the limit that training is
// held against.
#pragma once

namespace tandem::bench {

struct Peak {
  double float32 = 0;   // multiplications and additions a second, all threads together
  double bfloat16 = 0;  // of products of bfloat16 summed in float32; 0: this CPU has none
};

// Runs for some tenths of a second on so many threads; the best of a few tries.
[[nodiscard]] Peak measure_peak(int threads);

// Bytes a second of a sum of two arrays into a third that no cache holds (the fetch of what is
// overwritten not counted), all threads together; the best of a few tries.
[[nodiscard]] double measure_bandwidth(int threads);

// Both for one dtype.
struct Limits {
  double flops = 0, bandwidth = 0;
};

}  // namespace tandem::bench
