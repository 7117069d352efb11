#include "plugins/cuda/stream.h"

#include <algorithm>
#include <exception>

#include "plugins/cuda/arithmetic.h"
#include "plugins/cuda/libraries.h"
#include "plugins/random.h"

namespace tandem::cuda {

namespace {

// CUDA's priorities decrease from 0, the lowest.
int native_priority(int32_t priority) {
  int lowest = 0, highest = 0;
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange");
  return std::clamp(lowest - priority, std::min(highest, lowest), lowest);
}

}  // namespace

Stream::Stream(Machine& machine, int32_t device, int32_t priority, const std::string& name)
    : machine_(machine),
      device_(device),
      ordinal_(machine.ordinal(device)),
      number_(machine.next_stream_number()) {
  try {
    machine_.make_current(device_);
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, native_priority(priority)),
          "cudaStreamCreateWithPriority");
    void* sums = nullptr;
    check(cudaMalloc(&sums, max_partial_sums * sizeof(double)), "cudaMalloc");
    workspace_ = {stream_, static_cast<double*>(sums)};
  } catch (const sdk::Refusal& refusal) {
    destroy();
    throw sdk::Refusal(refusal.status(), sdk::text("stream '", name, "': ", refusal.what()));
  }
}

void Stream::create_handles() {
  if (dnn_ != nullptr) return;
  if (blas_ == nullptr) check(cublasCreate(&blas_), "cublasCreate");
  check(cublasSetStream(blas_, stream_), "cublasSetStream");
  give_blas_workspace();
  // No atomics in sums, so that every run has the same bits whatever other streams do.
  check(cublasSetAtomicsMode(blas_, CUBLAS_ATOMICS_NOT_ALLOWED), "cublasSetAtomicsMode");
  // Partial sums of 16-bit products are also added in float32.
  check(cublasSetMathMode(blas_, float32_sums), "cublasSetMathMode");
  check(cudnnCreate(&dnn_), "cudnnCreate");
  check(cudnnSetStream(dnn_, stream_), "cudnnSetStream");
}

// Our own workspace: in a capture cuBLAS would otherwise allocate one, and with another size it
// might choose other algorithms. The size is cuBLAS's own, from its documentation.
void Stream::give_blas_workspace() {
  constexpr int hopper = 9;
  const size_t bytes = size_t{compute_capability_major() >= hopper ? 32U : 4U} << 20;
  if (blas_workspace_ == nullptr) check(cudaMalloc(&blas_workspace_, bytes), "cudaMalloc");
  check(cublasSetWorkspace(blas_, blas_workspace_, bytes), "cublasSetWorkspace");
}

Stream::~Stream() {
  queue_.drain();
  static_cast<void>(cudaSetDevice(ordinal_));
  const cudaError_t error = cudaStreamSynchronize(stream_);
  if (error != cudaSuccess) machine_.fail(error, "cudaStreamSynchronize", nullptr, ordinal_);
  destroy();
}

void Stream::destroy() noexcept {
  if (dnn_ != nullptr) cudnnDestroy(dnn_);
  if (blas_ != nullptr) cublasDestroy(blas_);
  cudaFree(blas_workspace_);
  cudaFree(workspace_.partial_sums);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
  static_cast<void>(cudaGetLastError());
}

void Stream::submit(const tandem_work& work) {
  if (work.run == nullptr) throw sdk::invalid("a work without a function");
  if (work.kind != TANDEM_WORK_COMPUTE && Capture::current() != nullptr) {
    throw sdk::invalid("a work of kind ", work.kind == TANDEM_WORK_HOST ? "HOST" : "MESSAGE",
                       " cannot be captured: it waits for its stream");
  }
  if (work.kind == TANDEM_WORK_MESSAGE) return later([this, work] { run_message(work); });
  in_order([this, work] { run(work); });
}

bool Stream::is_idle() {
  if (Capture::current() != nullptr) queue_.drain();
  return queue_.is_idle();
}

void Stream::later(std::function<void()> issue) {
  queue_.push([this, issue = std::move(issue)] {
    try {
      issue();
    } catch (const sdk::Refusal& refusal) {
      machine_.failing().keep_whole(refusal.status(), refusal.what());
    } catch (const std::exception& failure) {
      machine_.failing().keep_whole(TANDEM_FAILED, failure.what());
    }
  });
}

void Stream::run_message(const tandem_work& work) {
  if (machine_.failing().happened()) return;
  machine_.make_current(device_);
  delay();
  if (reached_ == nullptr) reached_ = std::make_unique<Event>(machine_);
  reached_->record(device_, stream_);
  static_cast<void>(reached_->wait_for(-1));
  if (machine_.failing().happened()) return;
  machine_.failing().run(work, {sizeof(tandem_call), device_, 1, stream_, nullptr, nullptr});
}

void Stream::wait(const Event& event) {
  const std::shared_ptr<const Recording> recording = event.latest();
  if (recording == nullptr) return;
  if (is_idle() && recording->is_issued()) return recording->wait_on(machine_, device_, stream_);
  later([this, recording] {
    recording->await_issue();
    recording->wait_on(machine_, device_, stream_);
  });
}

void Stream::record(Event& event) {
  if (is_idle()) return event.record(device_, stream_);
  later([this, recording = event.renew(device_)] { recording->issue(machine_, device_, stream_); });
}

void Stream::run(const tandem_work& work) {
  if (machine_.failing().happened()) return;
  machine_.make_current(device_);
  delay();
  if (work.kind == TANDEM_WORK_HOST) {
    create_handles();
    const cudaError_t error = cudaStreamSynchronize(stream_);
    if (error != cudaSuccess) {
      return machine_.fail(error, "cudaStreamSynchronize", nullptr, ordinal_);
    }
  }
  {
    const WorkspaceScope scope(workspace_);
    machine_.failing().run(work, {sizeof(tandem_call), device_, 1, stream_, blas_, dnn_});
  }
  // Errors that a kernel did not check. A kernel that was being prepared may have tried something
  // that does not work.
  const cudaError_t error = cudaGetLastError();
  const bool is_error = error != cudaSuccess && error != cudaErrorNotReady;
  if (is_error && work.kind != TANDEM_WORK_HOST) {
    machine_.fail(error, "launch of a kernel", work.label == nullptr ? "" : work.label, ordinal_);
  }
}

void Stream::begin_capture() {
  queue_.drain();
  const tandem_status status = machine_.failure().report();
  if (status != TANDEM_OK) throw sdk::Refusal(status, sdk::explained());
  machine_.make_current(device_);
  Capture::begin(stream_);
}

std::unique_ptr<Graph> Stream::end_capture() {
  machine_.make_current(device_);
  return std::make_unique<Graph>(Capture::end(stream_), stream_);
}

void Stream::launch(const char* label, const Graph& graph) {
  if (Capture::current() != nullptr) throw sdk::invalid("a graph cannot be launched in a capture");
  in_order([this, label, &graph] { launch_now(label, graph); });
}

void Stream::launch_now(const char* label, const Graph& graph) {
  if (machine_.failure().happened()) return;
  machine_.make_current(device_);
  delay();
  machine_.note_launch();
  const cudaError_t error = cudaGraphLaunch(graph.get(), stream_);
  if (error != cudaSuccess) {
    machine_.fail(error, "cudaGraphLaunch", label == nullptr ? "" : label, ordinal_);
  }
}

void Stream::delay() {
  if (machine_.delay_seed() == 0 || machine_.delay_seconds() <= 0) return;
  const uint32_t bits =
      tandem_random_block(machine_.delay_seed(), 0, number_, 0, delays_++).value[0];
  pass_time(stream_, machine_.delay_seconds() * static_cast<double>(tandem_uniform(bits)));
}

}  // namespace tandem::cuda
