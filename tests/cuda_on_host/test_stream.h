// The native stream of a call to the kernels of tests/cuda_on_host: it makes "device memory"
// accessible while the body of a kernel runs, and only then.
#pragma once

namespace tandem::cuda {

// Set by the test that calls a kernel.
struct TestStream {
  void (*open_memory)(void* context);
  void (*close_memory)(void* context);
  void* context;
};

}  // namespace tandem::cuda
