// RAII over a transport's table: this process as one rank of a job. Every failing call throws Error
// with the other rank and the reason. No call waits for another rank longer than the watchdog
// allows.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/device/message_watchdog.h"
#include "plugins/abi.h"

namespace tandem {

// Where the ranks of a job run.
struct RankHosts {
  std::vector<std::string> names;  // by rank; empty: not known yet
  int processors = 0;              // this rank's part of its machine's; 0: not known yet
  std::string limits{};            // why the ranks of a machine leave some unused; "": they do not
  // "2 ranks on host1, 1 rank on host2"
  [[nodiscard]] std::string text() const;
};

class Communicator {
 public:
  // A call that waits for another rank for `watchdog_seconds` is an Error, and this rank then gives
  // up. Ranks other than 0 wait a tenth longer: rank 0 may itself wait for another rank, which it
  // alone can name.
  explicit Communicator(const tandem_transport& transport, double watchdog_seconds = 600);
  // Waits for the other ranks to close theirs, unless this one has given up.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] const tandem_transport& transport() const { return transport_; }
  [[nodiscard]] tandem_communicator* handle() const { return communicator_; }
  [[nodiscard]] int rank() const { return transport_.rank(communicator_); }
  [[nodiscard]] int size() const { return transport_.size(communicator_); }
  [[nodiscard]] const RankHosts& hosts() const { return hosts_; }
  void set_hosts(RankHosts hosts) { hosts_ = std::move(hosts); }

  // Messages that no plan has. They use a channel of their own: one thread at a time. `what` is
  // what the message has, as "the setup", for the report of the watchdog.
  // `act` is what the peer must do for it.
  void send(int peer, const void* data, int64_t bytes, const char* what,
            const char* act = "receive") const;
  void receive(int peer, void* data, int64_t bytes, const char* what,
               const char* act = "send") const;
  void send_text(int peer, const std::string& text, const char* what) const;
  [[nodiscard]] std::string receive_text(int peer, const char* what) const;
  // Rank 0's, to all; called by all ranks.
  void broadcast(void* data, int64_t bytes, const char* what) const;
  [[nodiscard]] std::string broadcast_text(const std::string& text, const char* what) const;
  // Returns when all ranks have called it. `what` is what they do next, as "the end of the run".
  void meet(const char* what) const;

  // This rank gives up: calls that wait for a message, and later ones, fail.
  void abort() const;
  // What abort() does besides, on any thread; null: nothing any more.
  void when_aborted(const void* owner, std::function<void()> function) const;
  // That this rank waits for another one.
  [[nodiscard]] double seconds() const { return seconds_; }

  // "waited 600 seconds (--watchdog) for rank 1 (host b) to send the weights: it is stopped, stuck
  // or slow, or cannot be reached"; peer -1: of any of the others.
  [[nodiscard]] std::string waited_text(int peer, const char* act, const char* what) const;

  // The channel of a plan's channel.
  [[nodiscard]] static int channel_of(int channel) { return channel + 1; }

 private:
  // Makes the call, which waits for the peer to `act`; peer -1: for any of the others.
  void watch(const std::function<void()>& call, int peer, const char* act, const char* what) const;
  // Rank 0 waits for a word of each of the others. They wait for rank 0 to `act_of_root`.
  void gather_words(const char* act, const char* act_of_root, const char* what) const;
  void watched_broadcast(void* data, int64_t bytes, const char* act_of_root,
                         const char* what) const;

  const tandem_transport& transport_;
  tandem_communicator* communicator_ = nullptr;
  RankHosts hosts_;
  double seconds_;
  mutable std::mutex mutex_;  // of when_aborted_
  mutable std::map<const void*, std::function<void()>> when_aborted_;
  mutable MessageWatchdog watchdog_;  // a message changes nothing that callers see
};

}  // namespace tandem
