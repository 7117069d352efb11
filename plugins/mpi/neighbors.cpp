#include "plugins/mpi/neighbors.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "plugins/sdk.h"

namespace tandem::mpi {

namespace {

// Channels that fall together are counted together. Then a message may be thought to have begun
// when another one has, and the other way round, which costs time only.
constexpr int counted_channels = 64;

// Of the ranks of the host, in MPI_COMM_WORLD.
std::vector<int> ranks_of(MPI_Comm host) {
  int world_size = 0, size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  MPI_Comm_size(host, &size);
  std::vector<int> own(static_cast<size_t>(size)), result(own.size());
  for (int i = 0; i < size; ++i) own[static_cast<size_t>(i)] = i;
  MPI_Group of_host = MPI_GROUP_NULL, of_world = MPI_GROUP_NULL;
  MPI_Comm_group(host, &of_host);
  MPI_Comm_group(MPI_COMM_WORLD, &of_world);
  MPI_Group_translate_ranks(of_host, size, own.data(), of_world, result.data());
  MPI_Group_free(&of_host);
  MPI_Group_free(&of_world);
  return result;
}

// A file without a path, which ends with the processes that have it open.
struct SharedFile {
  int process = 0, file = -1;
  std::array<char, 64> name{};  // which no other one has
};

SharedFile make_shared_file() {
  SharedFile made;
  made.process = getpid();
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  std::snprintf(made.name.data(), made.name.size(), "tandem-%d-%lld", made.process,
                static_cast<long long>(now));
  made.file = memfd_create(made.name.data(), MFD_CLOEXEC);
  return made;
}

// -1: this process cannot open it. In a container of its own another process may have that number.
int open_shared_file(const SharedFile& shared) {
  const std::string path = sdk::text("/proc/", shared.process, "/fd/", shared.file);
  std::array<char, 128> target{};
  if (readlink(path.c_str(), target.data(), target.size() - 1) < 0) return -1;
  if (target.data() != sdk::text("/memfd:", shared.name.data(), " (deleted)")) return -1;
  return open(path.c_str(), O_RDWR | O_CLOEXEC);
}

}  // namespace

Neighbors::Neighbors(const Bell& bell) : bell_(bell) {
  int world_size = 0, world_rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  places_.assign(static_cast<size_t>(world_size), -1);
  MPI_Comm host = MPI_COMM_NULL;
  if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world_rank, MPI_INFO_NULL, &host) !=
      MPI_SUCCESS) {
    return;
  }
  join(host);
  MPI_Comm_free(&host);
}

void Neighbors::join(MPI_Comm host) {
  const std::vector<int> ranks = ranks_of(host);
  if (ranks.size() < 2) return;
  MPI_Comm_rank(host, &me_);
  bells_.resize(ranks.size());
  constexpr int address_bytes = static_cast<int>(sizeof(Bell::Address));
  MPI_Allgather(bell_.address().data(), address_bytes, MPI_BYTE, bells_.data(), address_bytes,
                MPI_BYTE, host);
  bool is_ok = std::all_of(bells_.begin(), bells_.end(),
                           [&](const Bell::Address& other) { return bell_.ring(other); });
  bytes_ = sizeof(Shared) + ranks.size() * ranks.size() * counted_channels * sizeof(Counts);
  SharedFile shared;
  if (me_ == 0) shared = make_shared_file();
  const int made = shared.file;
  MPI_Bcast(&shared, static_cast<int>(sizeof(shared)), MPI_BYTE, 0, host);
  const int file = me_ == 0 ? made : open_shared_file(shared);
  map(file, is_ok);
  int ok = is_ok ? 1 : 0, all_ok = 0;
  MPI_Allreduce(&ok, &all_ok, 1, MPI_INT, MPI_MIN, host);
  if (file >= 0) close(file);  // until now others opened that of rank 0 of the host
  if (all_ok == 0) return;
  watch(host, ranks);
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (static_cast<int>(i) != me_) places_[static_cast<size_t>(ranks[i])] = static_cast<int>(i);
  }
}

// New memory is 0, which is that of counters before they count.
void Neighbors::map(int file, bool& is_ok) {
  void* memory = MAP_FAILED;
  if (file >= 0 && (me_ != 0 || posix_fallocate(file, 0, static_cast<off_t>(bytes_)) == 0)) {
    memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (memory == MAP_FAILED) is_ok = false;
  if (memory != MAP_FAILED) all_ = static_cast<Shared*>(memory);
}

// A number of a process means something to those that count processes as it does.
void Neighbors::watch(MPI_Comm host, const std::vector<int>& ranks) {
  struct Process {
    uint64_t numbers;
    int64_t number;
  };
  struct stat numbers {};
  if (stat("/proc/self/ns/pid", &numbers) != 0) numbers.st_ino = 0;
  const Process mine{numbers.st_ino, getpid()};
  std::vector<Process> all(ranks.size());
  MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, all.data(), sizeof(mine), MPI_BYTE, host);
  processes_.assign(ranks.size(), -1);
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (static_cast<int>(i) == me_ || mine.numbers == 0 || all[i].numbers != mine.numbers) continue;
    processes_[i] = static_cast<int>(syscall(SYS_pidfd_open, all[i].number, 0));
    if (processes_[i] >= 0) bell_.hear_end(processes_[i]);
  }
}

Neighbors::~Neighbors() {
  for (const int process : processes_) {
    if (process >= 0) close(process);
  }
  if (all_ != nullptr) munmap(all_, bytes_);
}

Neighbors::Counts& Neighbors::counts(bool is_sent, int peer, int channel) const {
  const auto me = static_cast<size_t>(me_), other = static_cast<size_t>(place(peer)),
             size = bells_.size();
  const size_t pair = is_sent ? me * size + other : other * size + me;
  return reinterpret_cast<Counts*>(
      all_ + 1)[pair * counted_channels + static_cast<size_t>(channel % counted_channels)];
}

Neighbors::Message Neighbors::begin(bool is_sent, int peer, int channel) {
  Counts& both = counts(is_sent, peer, channel);
  std::atomic<uint32_t>& mine = is_sent ? both.sent : both.received;
  const uint32_t number = mine.fetch_add(1) + 1;
  ring(peer);
  return {is_sent, peer, channel, number};
}

bool Neighbors::has_begun_on_both_sides(const Message& message) const {
  const Counts& both = counts(message.is_sent, message.peer, message.channel);
  const uint32_t theirs = message.is_sent ? both.received.load() : both.sent.load();
  return static_cast<int32_t>(theirs - message.number) >= 0;
}

void Neighbors::ring(int peer) const {
  static_cast<void>(bell_.ring(bells_[static_cast<size_t>(place(peer))]));
}

int Neighbors::ended_rank() const {
  for (size_t rank = 0; rank < places_.size(); ++rank) {
    if (places_[rank] < 0) continue;
    pollfd process{processes_[static_cast<size_t>(places_[rank])], POLLIN, 0};
    if (process.fd >= 0 && poll(&process, 1, 0) > 0) return static_cast<int>(rank);
  }
  return -1;
}

bool Neighbors::is_first_to_fail() const {
  return all_ == nullptr || all_->has_failed.exchange(1) == 0;
}

}  // namespace tandem::mpi
