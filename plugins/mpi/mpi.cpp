// The transport "mpi". All calls of MPI are made by one thread, which any MPI library allows; it
// starts the messages that the program's threads hand to it, and asks for their ends. Between two
// questions it sleeps, because threads that compute need the cores: in a virtual machine, waking
// every 50 us took them a third of their time, every 250 us a tenth. What is worth a question wakes
// it (bell.h, neighbors.h); where nothing does, it asks at intervals that double.

#include <mpi.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plugins/abi.h"
#include "plugins/mpi/bell.h"
#include "plugins/mpi/neighbors.h"
#include "plugins/mpi/requests.h"
#include "plugins/mpi/versions.h"
#include "plugins/sdk.h"

namespace {

using std::chrono::microseconds;
using tandem::mpi::Bell;
using tandem::mpi::Kind;
using tandem::mpi::Neighbors;
using tandem::mpi::Requests;
using tandem::mpi::require_same_version;
using tandem::mpi::require_success;
using tandem::mpi::Transfer;
using tandem::sdk::guarded;
using tandem::sdk::Refusal;

constexpr const char* module_version = "0.1.0";
constexpr int64_t max_bytes = int64_t{1} << 30;  // in one block: MPI counts in int

// Short turns let this thread in as soon as it wakes, though others compute on every core: from
// Linux 6.12 on; others take no notice. The C library has no call for it.
void ask_for_short_turns() {
  const struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t turn_ns, deadline, period;
  } attributes{48, SCHED_OTHER, 0, getpriority(PRIO_PROCESS, 0), 0, 100'000, 0, 0};
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

std::vector<tandem_part> blocks_of(const tandem_part* parts, uint32_t count) {
  std::vector<tandem_part> result;
  for (uint32_t i = 0; i < count; ++i) {
    auto* address = static_cast<char*>(parts[i].address);
    for (int64_t done = 0; done < parts[i].bytes; done += max_bytes) {
      result.push_back({address + done, std::min(max_bytes, parts[i].bytes - done)});
    }
  }
  return result;
}

// Settings of Open MPI. One of the environment or of mpirun stays.
// - Over TCP it writes a large message as one piece, and its answer to a message of the other
//   direction waits behind it: then the two directions of a link take turns.
// - A message that the other process cannot read by itself (of several parts, or where the system
//   forbids it) has 3 pieces of 32 KiB under way, and a rank that waits for a message asks once a
//   millisecond: that is 100 MB/s.
void set_up_open_mpi() {
  constexpr int keep = 0;
  setenv("OMPI_MCA_btl_tcp_rdma_pipeline_frag_size", "131072", keep);
  setenv("OMPI_MCA_pml_ob1_send_pipeline_depth", "32", keep);
}

// How long the thread may sleep: long, where the messages of ranks of this host are heard; for
// those of other hosts up to a millisecond, or until something wakes it.
class Pauses {
 public:
  void begin() { pause_ = shortest; }
  void wake(Bell::Woken why) {
    if (why == Bell::Woken::by_bell) pause_ = shortest;
    if (why == Bell::Woken::by_connection) has_heard_connection_ = true;
  }

  // A message of another host has ended: did its connection say so? Messages may go another way.
  void end_remote() { hears_remote_ = std::exchange(has_heard_connection_, false); }

  [[nodiscard]] microseconds next(const std::vector<Transfer*>& transfers,
                                  const Neighbors& neighbors) {
    microseconds pause = unheard;
    for (const Transfer* transfer : transfers) {
      pause = std::min(pause, longest(*transfer, neighbors));
    }
    pause_ = std::min(2 * pause_, unheard);
    return pause;
  }

 private:
  static constexpr auto shortest = microseconds(1), of_sends = microseconds(100),
                        of_receives = microseconds(1000), unheard = microseconds(50'000);

  // A receive may wait for long for what is not computed yet, and a broadcast on a rank that is not
  // its root, too; what sends moves its data at each question. What a connection brings is often a
  // part of a message, of which a question may leave something.
  [[nodiscard]] microseconds longest(const Transfer& transfer, const Neighbors& neighbors) const {
    if (const auto& message = transfer.to_neighbor) {
      return neighbors.has_begun_on_both_sides(*message) ? std::min(pause_, of_sends) : unheard;
    }
    if (hears_remote_ && transfer.kind != Kind::broadcast) {
      return std::clamp(pause_, of_sends, of_receives);
    }
    return std::min(pause_, transfer.sends ? of_sends : of_receives);
  }

  microseconds pause_ = shortest;
  bool has_heard_connection_ = false, hears_remote_ = false;
};

class World {
 public:
  World() : thread_([this] { run(); }) {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return is_open_ || !failure_.empty(); });
    if (failure_.empty()) return;
    lock.unlock();
    thread_.join();
    throw Refusal(TANDEM_FAILED, failure_);
  }
  ~World() {
    {
      const std::lock_guard lock(mutex_);
      is_closing_ = true;
    }
    bell_.ring();
    thread_.join();
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }

  // Hands the transfer to the thread and waits for its end.
  void transfer(Transfer transfer) {
    if (transfer.peer < 0 || transfer.peer >= size_) {
      throw tandem::sdk::invalid("rank ", transfer.peer, " is not one of the ", size_, " ranks");
    }
    if (transfer.channel < 0 || transfer.channel > last_channel_) {
      throw tandem::sdk::invalid("channel ", transfer.channel, " is not one from 0 to ",
                                 last_channel_, ", which this MPI has");
    }
    if (transfer.parts.empty()) return;
    transfer.sends =
        transfer.kind == Kind::send || (transfer.kind == Kind::broadcast && transfer.peer == rank_);
    std::unique_lock lock(mutex_);
    if (!is_aborted_) {
      waiting_.push_back(&transfer);
      bell_.ring();
      // Also after abort(): until the thread has stopped, it may use the transfer.
      ended_.wait(lock, [&] { return transfer.is_done || has_stopped_; });
    }
    if (!transfer.failure.empty()) throw Refusal(TANDEM_FAILED, transfer.failure);
    if (!transfer.is_done) throw Refusal(TANDEM_FAILED, given_up_);
  }

  // The thread makes no call of MPI from here on: what it would do is to memory that may be gone.
  void abort() {
    static_cast<void>(neighbors_->is_first_to_fail());
    {
      const std::lock_guard lock(mutex_);
      is_aborted_ = true;
    }
    bell_.ring();
    ended_.notify_all();
    // Only when the thread has stopped may the caller's memory go.
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return has_stopped_; });
  }

 private:
  void open() {
    set_up_open_mpi();
    int given = 0;
    require_success(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given),
                    "MPI_Init_thread");
    if (given < MPI_THREAD_FUNNELED) {
      throw Refusal(TANDEM_UNSUPPORTED, "this MPI does not support programs with threads");
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    require_success(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    require_success(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
    void* value = nullptr;
    int found = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found);
    if (found != 0) last_channel_ = *static_cast<int*>(value);
    require_same_version(module_version);
    neighbors_.emplace(bell_);
  }

  void run() {
    prctl(PR_SET_NAME, "mpi");
    prctl(PR_SET_TIMERSLACK, 1000UL);  // ns
    ask_for_short_turns();
    const tandem_status opened = guarded([&] { open(); });
    {
      const std::lock_guard lock(mutex_);
      if (opened == TANDEM_OK) is_open_ = true;
      if (opened != TANDEM_OK) failure_ = tandem::sdk::host->explained();
      if (opened != TANDEM_OK && failure_.empty()) failure_ = "MPI cannot be started";
    }
    ended_.notify_all();
    if (opened != TANDEM_OK) return;
    serve();
    const std::lock_guard lock(mutex_);
    if (!is_aborted_) MPI_Finalize();
    has_stopped_ = true;
    ended_.notify_all();
  }

  // Until it closes with nothing under way, or gives up.
  void serve() {
    constexpr auto idle = microseconds(1'000'000);  // a bell may not ring for want of memory
    Requests requests;
    Pauses pauses;
    for (std::vector<Transfer*> fresh; take(fresh, requests);) {
      const std::vector<Transfer*> ended = proceed(requests, fresh);
      for (const Transfer* transfer : ended) note_end(*transfer, pauses);
      if (!fresh.empty() || !ended.empty()) pauses.begin();
      {
        const std::lock_guard lock(mutex_);
        if (requests.have_failed()) {
          is_aborted_ = true;
          given_up_ = requests.reason();  // also of those that never begin
        }
        for (Transfer* transfer : ended) transfer->is_done = true;
      }
      if (!ended.empty()) ended_.notify_all();
      const microseconds pause =
          requests.is_empty() ? idle : pauses.next(requests.transfers(), *neighbors_);
      if (requests.have_failed()) continue;
      const Bell::Woken why = bell_.wait(pause);
      pauses.wake(why);
      if (why == Bell::Woken::by_end) gone_rank_ = neighbors_->ended_rank();
    }
  }

  // What is to be started. False: the thread has to stop.
  bool take(std::vector<Transfer*>& fresh, const Requests& requests) {
    const std::lock_guard lock(mutex_);
    fresh.clear();
    fresh.swap(waiting_);
    const bool is_idle = fresh.empty() && requests.is_empty();
    return !is_aborted_ && !(is_closing_ && is_idle);
  }

  // Starts the fresh transfers; those that have ended, by success or failure.
  std::vector<Transfer*> proceed(Requests& requests, const std::vector<Transfer*>& fresh) {
    std::vector<Transfer*> ended;
    for (Transfer* transfer : fresh) {
      if (guarded([&] { start(*transfer, requests); }) == TANDEM_OK) continue;
      transfer->failure = tandem::sdk::host->explained();
      if (transfer->under_way == 0) ended.push_back(transfer);
    }
    if (waits_for_gone_rank(requests)) {
      if (neighbors_->is_first_to_fail()) {
        requests.give_up(tandem::sdk::text("the process of rank ", gone_rank_, " has ended"),
                         ended);
        return ended;
      }
      gone_rank_ = -1;  // the launcher ends this process, too
    }
    // Open MPI looks at its requests first, and receives only then: the second question finds what
    // the first one has received.
    for (int time = 0; time < 2 && ended.empty(); ++time) {
      if (guarded([&] { requests.ask(ended); }) == TANDEM_OK) continue;
      requests.give_up(tandem::sdk::host->explained(), ended);
    }
    return ended;
  }

  [[nodiscard]] bool waits_for_gone_rank(const Requests& requests) const {
    const std::vector<Transfer*>& all = requests.transfers();
    return gone_rank_ >= 0 && std::any_of(all.begin(), all.end(), [&](const Transfer* transfer) {
             return transfer->kind == Kind::broadcast || transfer->peer == gone_rank_;
           });
  }

  void start(Transfer& transfer, Requests& requests) {
    requests.start(transfer);
    if (transfer.kind == Kind::broadcast || !neighbors_->have(transfer.peer)) return;
    transfer.to_neighbor =
        neighbors_->begin(transfer.kind == Kind::send, transfer.peer, transfer.channel);
  }

  void note_end(const Transfer& transfer, Pauses& pauses) {
    // The sender waits for what the receiver says now.
    if (transfer.to_neighbor && transfer.kind == Kind::receive) neighbors_->ring(transfer.peer);
    if (!transfer.to_neighbor) pauses.end_remote();
    // MPI connects two ranks when they first need it.
    if (std::has_single_bit(++ends_)) bell_.hear_connections();
  }

  int rank_ = 0, size_ = 1, last_channel_ = 32767;
  std::mutex mutex_;
  std::condition_variable ended_;
  Bell bell_;
  std::optional<Neighbors> neighbors_;
  uint64_t ends_ = 0;
  int gone_rank_ = -1;              // a neighbor whose process has ended
  std::vector<Transfer*> waiting_;  // to be started
  bool is_open_ = false, is_closing_ = false, is_aborted_ = false, has_stopped_ = false;
  std::string failure_, given_up_ = "this rank has given up";
  std::thread thread_;  // last: it uses the others
};

World& of(tandem_communicator* communicator) {
  return *reinterpret_cast<World*>(communicator);
}

tandem_status open(tandem_communicator** communicator) {
  return guarded([&] { *communicator = reinterpret_cast<tandem_communicator*>(new World); });
}

void close(tandem_communicator* communicator) {
  delete &of(communicator);
}

int32_t rank(tandem_communicator* communicator) {
  return of(communicator).rank();
}

int32_t size(tandem_communicator* communicator) {
  return of(communicator).size();
}

tandem_status send(tandem_communicator* communicator, int32_t peer, int32_t channel,
                   const tandem_part* parts, uint32_t part_count) {
  return guarded([&] {
    of(communicator).transfer({Kind::send, peer, channel, blocks_of(parts, part_count)});
  });
}

tandem_status receive(tandem_communicator* communicator, int32_t peer, int32_t channel,
                      const tandem_part* parts, uint32_t part_count) {
  return guarded([&] {
    of(communicator).transfer({Kind::receive, peer, channel, blocks_of(parts, part_count)});
  });
}

tandem_status broadcast(tandem_communicator* communicator, int32_t root, void* data,
                        int64_t bytes) {
  return guarded([&] {
    const tandem_part part{data, bytes};
    of(communicator).transfer({Kind::broadcast, root, 0, blocks_of(&part, 1)});
  });
}

void abort(tandem_communicator* communicator) {
  of(communicator).abort();
}

constexpr tandem_transport transport{sizeof(tandem_transport),
                                     "mpi",
                                     "processes that mpirun or srun starts, on one or more hosts",
                                     &open,
                                     &close,
                                     &rank,
                                     &size,
                                     &send,
                                     &receive,
                                     &broadcast,
                                     &abort};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return tandem::sdk::Plugin(host, "tandem-transport-mpi", module_version)
      .transport(&transport)
      .table();
}
