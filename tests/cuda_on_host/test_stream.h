// What a call's native stream is to the kernels of tests/cuda_on_host: it opens "device memory"
// while a kernel's body runs, and only then.
#pragma once

namespace tandem::cuda {

// Given by the test that calls a kernel.
struct TestStream {
  void (*open_memory)(void* context);
  void (*close_memory)(void* context);
  void* context;
};

}  // namespace tandem::cuda
