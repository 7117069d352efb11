// A transport whose ranks are threads of one process, for tests.
#pragma once

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "core/plugin/host.h"
#include "plugins/abi.h"

namespace tandem::test {

class ThreadWorld {
 public:
  explicit ThreadWorld(int size) : size_(size) {}

  // The thread that opens the transport next is this rank.
  void join(int rank) { joining() = {this, rank}; }

  [[nodiscard]] static const tandem_transport& transport() {
    static constexpr tandem_transport table{sizeof(tandem_transport),
                                            "threads",
                                            "threads of one process",
                                            &open,
                                            &close,
                                            &rank,
                                            &size,
                                            &send,
                                            &receive,
                                            &broadcast,
                                            &abort};
    return table;
  }

 private:
  struct Rank {
    ThreadWorld* world = nullptr;
    int number = 0;
    bool is_aborted = false;
  };
  struct Joining {
    ThreadWorld* world = nullptr;
    int rank = 0;
  };
  static Joining& joining() {
    static thread_local Joining now;
    return now;
  }
  static Rank& of(tandem_communicator* communicator) {
    return *reinterpret_cast<Rank*>(communicator);
  }

  static tandem_status open(tandem_communicator** communicator) {
    *communicator =
        reinterpret_cast<tandem_communicator*>(new Rank{joining().world, joining().rank});
    return TANDEM_OK;
  }
  static void close(tandem_communicator* communicator) { delete &of(communicator); }
  static int32_t rank(tandem_communicator* communicator) { return of(communicator).number; }
  static int32_t size(tandem_communicator* communicator) { return of(communicator).world->size_; }
  static tandem_status send(tandem_communicator* communicator, int32_t peer, int32_t channel,
                            const tandem_part* parts, uint32_t part_count) {
    Rank& mine = of(communicator);
    std::string message;
    for (uint32_t i = 0; i < part_count; ++i) {
      message.append(static_cast<const char*>(parts[i].address),
                     static_cast<size_t>(parts[i].bytes));
    }
    const std::lock_guard lock(mine.world->mutex_);
    mine.world->sent_[{mine.number, peer, channel}].push_back(std::move(message));
    mine.world->changed_.notify_all();
    return TANDEM_OK;
  }
  static tandem_status receive(tandem_communicator* communicator, int32_t peer, int32_t channel,
                               const tandem_part* parts, uint32_t part_count) {
    Rank& mine = of(communicator);
    std::unique_lock lock(mine.world->mutex_);
    std::deque<std::string>& queue = mine.world->sent_[{peer, mine.number, channel}];
    mine.world->changed_.wait(lock, [&] { return !queue.empty() || mine.is_aborted; });
    if (mine.is_aborted) return failed("this rank has given up");
    const std::string message = std::move(queue.front());
    queue.pop_front();
    size_t at = 0;
    for (uint32_t i = 0; i < part_count; ++i) {
      const auto bytes = static_cast<size_t>(parts[i].bytes);
      if (at + bytes > message.size()) return failed("the message is too short");
      std::memcpy(parts[i].address, message.data() + at, bytes);
      at += bytes;
    }
    return at == message.size() ? TANDEM_OK : failed("the message is too long");
  }
  static tandem_status broadcast(tandem_communicator* communicator, int32_t root, void* data,
                                 int64_t bytes) {
    constexpr int32_t own_channel = -1;
    const tandem_part part{data, bytes};
    if (of(communicator).number != root) return receive(communicator, root, own_channel, &part, 1);
    for (int32_t peer = 0; peer < size(communicator); ++peer) {
      if (peer != root) send(communicator, peer, own_channel, &part, 1);
    }
    return TANDEM_OK;
  }
  static void abort(tandem_communicator* communicator) {
    Rank& mine = of(communicator);
    const std::lock_guard lock(mine.world->mutex_);
    mine.is_aborted = true;
    mine.world->changed_.notify_all();
  }
  static tandem_status failed(const char* reason) {
    host_table().explain(reason);
    return TANDEM_FAILED;
  }

  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::tuple<int, int, int>, std::deque<std::string>> sent_;  // from, to, channel
};

}  // namespace tandem::test
