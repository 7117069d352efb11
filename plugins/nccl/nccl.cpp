// The transport between GPUs of two ranks: NCCL's ncclSend and ncclRecv. Every link is a
// communicator of two ranks of its own, so that messages on two streams never wait for each other.
// All are non-blocking: NCCL answers at once, and what waits for the other rank can be given up.

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

#include "plugins/cuda/status.h"
#include "plugins/sdk.h"

namespace {

using tandem::cuda::check;
using tandem::sdk::guarded;
using tandem::sdk::Refusal;
using Clock = std::chrono::steady_clock;

static_assert(NCCL_UNIQUE_ID_BYTES <= TANDEM_LINK_KEY_BYTES);
constexpr int sender = 0, receiver = 1;

// NCCL's last error is of the whole process where there is no communicator.
[[noreturn]] void refuse(ncclResult_t result, const char* call, ncclComm_t communicator) {
  const char* more = ncclGetLastError(communicator);
  const bool has_more = more != nullptr && *more != '\0';
  throw Refusal(TANDEM_FAILED, tandem::sdk::text("NCCL: ", call, ": ", ncclGetErrorString(result),
                                                 has_more ? ": " : "", has_more ? more : ""));
}

// Until when a call waits for the other rank.
class Deadline {
 public:
  explicit Deadline(double seconds)
      : seconds_(seconds),
        end_(Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}
  void require_time(const char* call) const {
    if (Clock::now() < end_) return;
    throw Refusal(TANDEM_TIMEOUT, tandem::sdk::text("NCCL: ", call, ": waited ", seconds_,
                                                    " seconds for the other rank"));
  }

 private:
  double seconds_;
  Clock::time_point end_;
};

class Link {
 public:
  Link(const tandem_call& call, const void* key, bool receives, double seconds)
      : receives_(receives) {
    ncclUniqueId id;
    std::memcpy(&id, key, sizeof(id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const Deadline deadline(seconds);
    try {
      const ncclResult_t begun =
          ncclCommInitRankConfig(&communicator_, 2, id, receives ? receiver : sender, &config);
      settle(begun, "ncclCommInitRankConfig", &deadline);
      connect(static_cast<cudaStream_t>(call.native_stream), deadline);
    } catch (...) {
      abort();
      static_cast<void>(cudaGetLastError());  // it is not the next launch's
      throw;
    }
    static_cast<void>(cudaGetLastError());
  }
  ~Link() { abort(); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  void transfer(cudaStream_t stream, void* memory, int64_t bytes) {
    const std::lock_guard lock(mutex_);
    require_alive();
    issue(stream, memory, static_cast<size_t>(bytes), nullptr);
  }

  // A link that is busy with a transfer works, as far as anyone can say without waiting for it.
  void require_working() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    require_alive();
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &state);
    if (asked != ncclSuccess) refuse(asked, "ncclCommGetAsyncError", communicator_);
    if (state != ncclSuccess && state != ncclInProgress) refuse(state, name(), communicator_);
  }

  void abort() {
    is_aborted_ = true;  // a call that waits lets go of the mutex
    const std::lock_guard lock(mutex_);
    if (communicator_ != nullptr) static_cast<void>(ncclCommAbort(communicator_));
    communicator_ = nullptr;
  }

  // What was sent has arrived when both ends have come here.
  void close(double seconds) {
    const std::lock_guard lock(mutex_);
    if (communicator_ == nullptr) return;
    const Deadline deadline(seconds);
    settle(ncclCommFinalize(communicator_), "ncclCommFinalize", &deadline);
    static_cast<void>(ncclCommDestroy(communicator_));
    communicator_ = nullptr;
  }

 private:
  [[nodiscard]] const char* name() const { return receives_ ? "ncclRecv" : "ncclSend"; }

  void require_alive() const {
    if (is_aborted_) throw Refusal(TANDEM_FAILED, "this rank has given up");
  }

  // Until NCCL has done what it has begun.
  void settle(ncclResult_t result, const char* call, const Deadline* deadline) {
    while (result == ncclInProgress) {
      require_alive();
      if (deadline != nullptr) deadline->require_time(call);
      const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &result);
      if (asked != ncclSuccess) refuse(asked, "ncclCommGetAsyncError", communicator_);
      if (result == ncclInProgress) std::this_thread::yield();
    }
    if (result != ncclSuccess) refuse(result, call, communicator_);
  }

  void issue(cudaStream_t stream, void* memory, size_t bytes, const Deadline* deadline) {
    settle(receives_ ? ncclRecv(memory, bytes, ncclUint8, sender, communicator_, stream)
                     : ncclSend(memory, bytes, ncclUint8, receiver, communicator_, stream),
           name(), deadline);
  }

  // The first message makes NCCL connect the two GPUs, which waits for the other rank and allocates
  // memory. So it is exchanged now, and later ones are only put on their streams.
  void connect(cudaStream_t stream, const Deadline& deadline) {
    struct DeviceByte {
      DeviceByte() { check(cudaMalloc(&address, 1), "cudaMalloc"); }
      ~DeviceByte() { cudaFree(address); }
      void* address = nullptr;
    };
    const DeviceByte byte;
    check(cudaMemsetAsync(byte.address, 0, 1, stream), "cudaMemsetAsync");
    try {
      issue(stream, byte.address, 1, &deadline);
      for (cudaError_t state = cudaErrorNotReady; state == cudaErrorNotReady;) {
        require_working();
        deadline.require_time(name());
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        state = cudaStreamQuery(stream);
        if (state != cudaErrorNotReady) check(state, "cudaStreamQuery");
      }
    } catch (...) {
      abort();  // before the memory goes, for which CUDA waits until the message has ended
      throw;
    }
  }

  const bool receives_;
  std::mutex mutex_;  // of the communicator
  ncclComm_t communicator_ = nullptr;
  std::atomic<bool> is_aborted_{false};
};

Link& of(tandem_device_link* link) {
  return *reinterpret_cast<Link*>(link);
}

std::string help() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return "NCCL";
  return tandem::sdk::text("NCCL ", version / 10000, ".", version / 100 % 100, ".", version % 100);
}

tandem_device_transport make_transport() {
  static const std::string name = help();
  tandem_device_transport table{};
  table.struct_size = sizeof table;
  table.device_kind = "cuda";
  table.help = name.c_str();
  table.make_key = [](void* key) {
    return guarded([&] {
      ncclUniqueId id;
      const ncclResult_t result = ncclGetUniqueId(&id);
      if (result != ncclSuccess) refuse(result, "ncclGetUniqueId", nullptr);
      std::memcpy(key, &id, sizeof(id));
    });
  };
  table.open = [](const tandem_call* call, const void* key, int32_t receives, double seconds,
                  tandem_device_link** link) {
    return guarded([&] {
      *link = reinterpret_cast<tandem_device_link*>(new Link(*call, key, receives != 0, seconds));
    });
  };
  table.transfer = [](tandem_device_link* link, const tandem_call* call, void* memory,
                      int64_t bytes) {
    return guarded(
        [&] { of(link).transfer(static_cast<cudaStream_t>(call->native_stream), memory, bytes); });
  };
  table.check = [](tandem_device_link* link) {
    return guarded([&] { of(link).require_working(); });
  };
  table.abort = [](tandem_device_link* link) { of(link).abort(); };
  table.close = [](tandem_device_link* link, double seconds) {
    static_cast<void>(guarded([&] { of(link).close(seconds); }));
    delete &of(link);
  };
  return table;
}

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static const tandem_device_transport transport = make_transport();
  return tandem::sdk::Plugin(host, "tandem-messages-cuda", "0.1.0")
      .device_transport(&transport)
      .table();
}
