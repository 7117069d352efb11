// A stream: CUDA's, with cuBLAS and cuDNN handles of its own from the first kernel on that is
// prepared on it: streams that only move and add have none, which would take memory. A work is run
// by the thread that submits it, with the stream's GPU current, and only issues kernels. A failed
// work fails the machine: works and copies are left out from then on, records still happen.
#pragma once

#include <cublas_v2.h>
#include <cudnn.h>

#include <memory>
#include <string>

#include "plugins/cuda/capture.h"
#include "plugins/cuda/event.h"
#include "plugins/cuda/machine.h"
#include "plugins/cuda/workspace.h"

namespace tandem::cuda {

class Stream {
 public:
  // The higher the priority, the sooner the GPU takes its kernels. Throws Refusal. `machine`
  // outlives the stream.
  Stream(Machine& machine, int32_t device, int32_t priority, const std::string& name);
  // Waits until everything issued is done.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] Machine& machine() const { return machine_; }

  // A TANDEM_WORK_HOST work (a kernel is prepared, or released) finds the stream idle and its
  // handles made.
  void submit(const tandem_work& work);
  // Throws Refusal on unknown devices, null memory or a negative size.
  void copy(const char* label, int32_t target_device, void* target, int32_t source_device,
            const void* source, int64_t bytes);
  // Likewise, and on rows that would overlap.
  void copy_rows(const char* label, const tandem_rows& rows);
  void wait(Event& event) { event.wait_on(device_, stream_); }
  void record(Event& event) { event.record(device_, stream_); }
  // As abi.h says. Throw Refusal.
  void begin_capture();
  [[nodiscard]] std::unique_ptr<Graph> end_capture();
  void launch(const char* label, const Graph& graph);

 private:
  void create_handles();  // unless there are some; throws Refusal
  void give_blas_workspace();
  void destroy() noexcept;
  void delay();
  // A call of CUDA's and what it returned.
  struct Issued {
    const char* call;
    cudaError_t error;
  };
  void require_places(int32_t target_device, const void* target, int32_t source_device,
                      const void* source, int64_t bytes) const;
  [[nodiscard]] Issued issue_copy(int32_t target_device, void* target, int32_t source_device,
                                  const void* source, int64_t bytes) const;
  [[nodiscard]] Issued issue_rows(const tandem_rows& rows) const;
  [[nodiscard]] Issued issue_each(const tandem_rows& rows) const;
  void tell(const Issued& issued, const char* label);

  Machine& machine_;
  const int32_t device_;
  const int32_t ordinal_;
  const uint32_t number_;
  uint32_t delays_ = 0;
  cudaStream_t stream_ = nullptr;
  cublasHandle_t blas_ = nullptr;
  void* blas_workspace_ = nullptr;
  cudnnHandle_t dnn_ = nullptr;
  Workspace workspace_;
};

}  // namespace tandem::cuda
