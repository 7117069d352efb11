// A stand-in for the functions of NCCL that Tandem calls: a communicator is a socket between two
// processes of this machine, or within one, and a message an item of its stream. What NCCL's
// documentation forbids ends the program or returns NCCL's error.
// TANDEM_FAKE_NCCL_FAILS: the message, counted from 1, with which the process gets the signal
// TANDEM_FAKE_NCCL_SIGNAL, or loses that connection if this is 0.
// TANDEM_FAKE_NCCL_STAYS: the message that stays in progress instead of going on its stream.
#include <nccl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <map>
#include <string>

#include "tests/cuda/fake/stream.h"

using tandem::fake::current_device;
using tandem::fake::give_up;
using tandem::fake::is_device_memory;
using tandem::fake::Stream;

struct ncclComm {
  int device = 0;
  int peer = 0;
  std::atomic<int> socket{-1};
  std::atomic<ncclResult_t> state{ncclInProgress};
  std::atomic<bool> is_aborted{false};
  std::atomic<int> under_way{0};
  std::thread opening;
};

namespace {

// Sockets that wait for the other rank, by the text of their id.
std::mutex mutex;
std::map<std::string, int> listening;
std::atomic<int> messages{0}, issued{0};

sockaddr_un address_of(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path + 1, name.c_str());  // in no folder
  return address;
}

int socket_of(const std::string& name, int rank) {
  const sockaddr_un address = address_of(name);
  if (rank == 0) {
    const std::lock_guard lock(mutex);
    const int server = listening.at(name);
    const int result = accept(server, nullptr, nullptr);
    close(server);
    return result;
  }
  const int result = socket(AF_UNIX, SOCK_STREAM, 0);
  return connect(result, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? result
                                                                                           : -1;
}

bool exchange(int socket, bool sends, char* memory, size_t bytes) {
  while (bytes > 0) {
    const ssize_t done =
        sends ? send(socket, memory, bytes, MSG_NOSIGNAL) : recv(socket, memory, bytes, 0);
    if (done <= 0) return false;
    memory += done;
    bytes -= static_cast<size_t>(done);
  }
  return true;
}

// NCCL refuses a communicator with one GPU twice.
std::string gpu(int device) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  std::string text = std::string(visible == nullptr ? "" : visible) + ":" + std::to_string(device);
  text.resize(64);
  return text;
}

void open(ncclComm& comm, const std::string& name, int rank) {
  const int socket = socket_of(name, rank);
  const std::string mine = gpu(comm.device);
  std::string sent = mine, other(mine.size(), ' ');
  const bool is_connected = exchange(socket, true, sent.data(), sent.size()) &&
                            exchange(socket, false, other.data(), other.size());
  comm.socket = socket;
  comm.state = !is_connected ? ncclRemoteError : mine == other ? ncclInvalidUsage : ncclSuccess;
}

void fail_if_due(ncclComm& comm) {
  const char* failing = std::getenv("TANDEM_FAKE_NCCL_FAILS");
  if (failing == nullptr || ++messages != std::atoi(failing)) return;
  const int signal = std::atoi(std::getenv("TANDEM_FAKE_NCCL_SIGNAL"));
  if (signal == 0) shutdown(comm.socket, SHUT_RDWR);
  if (signal != 0) raise(signal);
}

ncclResult_t issue(ncclComm& comm, bool sends, void* memory, size_t count, ncclDataType_t type,
                   int peer, cudaStream_t stream) {
  if (type != ncclUint8 || peer != comm.peer) return ncclInvalidArgument;
  const ncclResult_t state = comm.state;
  if (state == ncclInProgress) give_up("NCCL: a message on a communicator that is not ready");
  if (state != ncclSuccess) return state;
  if (comm.device != current_device || Stream::of(stream).device() != comm.device) {
    give_up("NCCL: a message on a stream of another GPU");
  }
  if (!is_device_memory(memory, count)) give_up("NCCL: a message of memory of the host");
  const char* staying = std::getenv("TANDEM_FAKE_NCCL_STAYS");
  if (staying != nullptr && ++issued == std::atoi(staying)) {
    comm.state = ncclInProgress;
    return ncclInProgress;
  }
  ++comm.under_way;
  Stream::of(stream).issue([&comm, sends, memory, count] {
    fail_if_due(comm);
    if (!exchange(comm.socket, sends, static_cast<char*>(memory), count)) {
      comm.state = ncclRemoteError;
      while (!comm.is_aborted) usleep(1000);  // as a kernel that waits for its peer
    }
    --comm.under_way;
  });
  return ncclInProgress;
}

void release(ncclComm& comm) {
  if (comm.opening.joinable()) comm.opening.join();
  while (comm.under_way > 0) usleep(1000);
  close(comm.socket);
  delete &comm;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclInvalidUsage ? "invalid usage" : "remote error";
}
const char* ncclGetLastError(ncclComm_t) {
  return "";
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(mutex);
  static int count = 0;
  const std::string name =
      "tandem-fake-nccl-" + std::to_string(getpid()) + "-" + std::to_string(count++);
  const int server = socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un address = address_of(name);
  if (bind(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(server, 1) != 0) {
    return ncclSystemError;
  }
  listening[name] = server;
  *id = {};
  std::strcpy(id->internal, name.c_str());
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* result, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (ranks != 2 || config->blocking != 0) return ncclInvalidArgument;
  auto* comm = new ncclComm;
  comm->device = current_device;
  comm->peer = 1 - rank;
  comm->opening =
      std::thread([comm, name = std::string(id.internal), rank] { open(*comm, name, rank); });
  *result = comm;
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  *state = comm->state;
  return ncclSuccess;
}
ncclResult_t ncclSend(const void* memory, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return issue(*comm, true, const_cast<void*>(memory), count, type, peer, stream);
}
ncclResult_t ncclRecv(void* memory, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return issue(*comm, false, memory, count, type, peer, stream);
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (comm->under_way > 0) give_up("NCCL: a communicator is finalized before its messages end");
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  release(*comm);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->is_aborted = true;
  shutdown(comm->socket, SHUT_RDWR);
  release(*comm);
  return ncclSuccess;
}

}  // extern "C"
