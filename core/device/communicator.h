// RAII over a transport's table: this process as one rank of a job. Every failing call throws Error
// with the other rank and the reason.
#pragma once

#include <cstdint>
#include <string>

#include "plugins/abi.h"

namespace tandem {

class Communicator {
 public:
  explicit Communicator(const tandem_transport& transport);
  // Waits for the other ranks to close theirs, unless this one has given up.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] const tandem_transport& transport() const { return transport_; }
  [[nodiscard]] tandem_communicator* handle() const { return communicator_; }
  [[nodiscard]] int rank() const { return transport_.rank(communicator_); }
  [[nodiscard]] int size() const { return transport_.size(communicator_); }

  // Messages that no plan has. They use a channel of their own: one thread at a time.
  void send(int peer, const void* data, int64_t bytes) const;
  void receive(int peer, void* data, int64_t bytes) const;
  void send_text(int peer, const std::string& text) const;
  [[nodiscard]] std::string receive_text(int peer) const;
  // Rank 0's, to all; called by all ranks.
  void broadcast(void* data, int64_t bytes) const;
  [[nodiscard]] std::string broadcast_text(const std::string& text) const;

  // This rank gives up: calls that wait for a message, and later ones, fail.
  void abort() const { transport_.abort(communicator_); }

  // The channel of a plan's channel.
  [[nodiscard]] static int channel_of(int channel) { return channel + 1; }

 private:
  const tandem_transport& transport_;
  tandem_communicator* communicator_ = nullptr;
};

}  // namespace tandem
