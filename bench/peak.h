// The peak of this machine's cores in multiply-adds without memory access, and of its memory: the
// limits that training is compared with. ONEDNN_MAX_CPU_ISA caps their instructions as it caps
// those of the kernels.
#pragma once

namespace tandem::bench {

struct Peak {
  double float32 = 0;   // multiplications and additions per second, all threads together
  double bfloat16 = 0;  // of products of bfloat16 summed in float32; 0: this CPU has none
};

// Runs for some tenths of a second on this number of threads; the best of a few tries.
[[nodiscard]] Peak measure_peak(int threads);

// Bytes per second of adding two arrays into a third, larger than the caches; reading the
// overwritten array is not counted. All threads together; the best of a few tries.
[[nodiscard]] double measure_bandwidth(int threads);

// Both for one dtype.
struct Limits {
  double flops = 0, bandwidth = 0;
};

}  // namespace tandem::bench
