// The transport "mpi". All calls of MPI are made by one thread, which any MPI library allows; it
// starts the messages that the program's threads hand to it, and asks for their ends. Between two
// questions it sleeps, longer and longer, because threads that compute need the cores: in a virtual
// machine, waking every 50 us took them a third of their time.

#include <mpi.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plugins/abi.h"
#include "plugins/sdk.h"

namespace {

using tandem::sdk::guarded;
using tandem::sdk::Refusal;

constexpr int64_t most_bytes = int64_t{1} << 30;  // in one block: MPI counts in int

void require_success(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Refusal(TANDEM_FAILED, tandem::sdk::text(what, ": ", text));
}

enum class Kind { send, receive, broadcast };

// A call of send, receive or broadcast, on the stack of the thread that waits for it.
struct Transfer {
  Transfer(Kind what, int rank, int number, std::vector<tandem_part> blocks)
      : kind(what), peer(rank), channel(number), parts(std::move(blocks)) {}

  Kind kind;
  int peer;  // of a broadcast: its root
  int channel;
  std::vector<tandem_part> parts;
  std::vector<MPI_Request> requests;
  bool is_done = false;
  std::string failure;

  void start(MPI_Comm world) {
    if (kind == Kind::broadcast) {
      for (const tandem_part& part : parts) {
        require_success(MPI_Ibcast(part.address, static_cast<int>(part.bytes), MPI_BYTE, peer,
                                   world, &requests.emplace_back()),
                        "MPI_Ibcast");
      }
      return;
    }
    if (parts.size() == 1) {
      return post(parts[0].address, static_cast<int>(parts[0].bytes), MPI_BYTE, world);
    }
    std::vector<int> lengths;
    std::vector<MPI_Aint> addresses;
    for (const tandem_part& part : parts) {
      lengths.push_back(static_cast<int>(part.bytes));
      MPI_Get_address(part.address, &addresses.emplace_back());
    }
    MPI_Datatype type = MPI_DATATYPE_NULL;
    require_success(MPI_Type_create_hindexed(static_cast<int>(parts.size()), lengths.data(),
                                             addresses.data(), MPI_BYTE, &type),
                    "MPI_Type_create_hindexed");
    require_success(MPI_Type_commit(&type), "MPI_Type_commit");
    post(MPI_BOTTOM, 1, type, world);
    MPI_Type_free(&type);  // when the message is done
  }

  // Whether it has ended.
  bool test() {
    int flag = 0;
    require_success(
        MPI_Testall(static_cast<int>(requests.size()), requests.data(), &flag, MPI_STATUSES_IGNORE),
        "MPI_Testall");
    return flag != 0;
  }

 private:
  void post(void* address, int count, MPI_Datatype type, MPI_Comm world) {
    MPI_Request& request = requests.emplace_back();
    if (kind == Kind::send) {
      require_success(MPI_Isend(address, count, type, peer, channel, world, &request), "MPI_Isend");
    } else {
      require_success(MPI_Irecv(address, count, type, peer, channel, world, &request), "MPI_Irecv");
    }
  }
};

std::vector<tandem_part> blocks_of(const tandem_part* parts, uint32_t count) {
  std::vector<tandem_part> result;
  for (uint32_t i = 0; i < count; ++i) {
    auto* address = static_cast<char*>(parts[i].address);
    for (int64_t done = 0; done < parts[i].bytes; done += most_bytes) {
      result.push_back({address + done, std::min(most_bytes, parts[i].bytes - done)});
    }
  }
  return result;
}

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
    posted_.notify_all();
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
    std::unique_lock lock(mutex_);
    if (!is_aborted_) {
      waiting_.push_back(&transfer);
      posted_.notify_all();
      // Also after abort(): until the thread has stopped, it may use the transfer.
      ended_.wait(lock, [&] { return transfer.is_done || has_stopped_; });
    }
    if (!transfer.failure.empty()) throw Refusal(TANDEM_FAILED, transfer.failure);
    if (!transfer.is_done) throw Refusal(TANDEM_FAILED, "this rank has given up");
  }

  // The thread makes no call of MPI from here on: what it would do is to memory that may be gone.
  void abort() {
    {
      const std::lock_guard lock(mutex_);
      is_aborted_ = true;
    }
    posted_.notify_all();
    ended_.notify_all();
    // Only when the thread has stopped may the caller's memory go.
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return has_stopped_; });
  }

 private:
  void open() {
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
  }

  void run() {
    prctl(PR_SET_NAME, "mpi");
    prctl(PR_SET_TIMERSLACK, 1000UL);  // ns
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
    constexpr auto shortest = std::chrono::microseconds(1),
                   longest = std::chrono::microseconds(250);
    auto pause = shortest;
    std::list<Transfer*> active;
    std::unique_lock lock(mutex_);
    while (!is_aborted_) {
      if (waiting_.empty() && active.empty()) {
        if (is_closing_) return;
        posted_.wait(lock);
        continue;
      }
      std::vector<Transfer*> fresh;
      fresh.swap(waiting_);
      lock.unlock();
      std::vector<Transfer*> ended;
      for (Transfer* transfer : fresh) {
        if (attempt(*transfer, [](Transfer& t) { return t.start(MPI_COMM_WORLD), false; })) {
          ended.push_back(transfer);
        } else {
          active.push_back(transfer);
        }
      }
      for (auto at = active.begin(); at != active.end();) {
        if (attempt(**at, [](Transfer& t) { return t.test(); })) {
          ended.push_back(*at);
          at = active.erase(at);
        } else {
          ++at;
        }
      }
      pause = ended.empty() && fresh.empty() ? std::min(2 * pause, longest) : shortest;
      lock.lock();
      for (Transfer* transfer : ended) transfer->is_done = true;
      if (!ended.empty()) ended_.notify_all();
      if (!active.empty() && waiting_.empty() && !is_aborted_) posted_.wait_for(lock, pause);
    }
  }

  // Whether the transfer has ended, by success or failure.
  template <class Function>
  static bool attempt(Transfer& transfer, const Function& function) {
    bool has_ended = false;
    const tandem_status status = guarded([&] { has_ended = function(transfer); });
    if (status == TANDEM_OK) return has_ended;
    transfer.failure = tandem::sdk::host->explained();
    return true;
  }

  int rank_ = 0, size_ = 1, last_channel_ = 32767;
  std::mutex mutex_;
  std::condition_variable posted_, ended_;
  std::vector<Transfer*> waiting_;  // to be started
  bool is_open_ = false, is_closing_ = false, is_aborted_ = false, has_stopped_ = false;
  std::string failure_;
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
  return tandem::sdk::Plugin(host, "tandem-transport-mpi", "0.1.0").transport(&transport).table();
}
