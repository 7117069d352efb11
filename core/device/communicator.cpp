#include "core/device/communicator.h"

#include <fmt/format.h>

#include "core/plugin/host.h"

namespace tandem {

namespace {

constexpr int own_channel = 0;  // see channel_of()

}  // namespace

Communicator::Communicator(const tandem_transport& transport) : transport_(transport) {
  check(transport_.open(&communicator_), fmt::format("transport '{}'", transport_.name));
}

Communicator::~Communicator() {
  if (communicator_ != nullptr) transport_.close(communicator_);
}

void Communicator::send(int peer, const void* data, int64_t bytes) const {
  const tandem_part part{const_cast<void*>(data), bytes};  // a send only reads it
  check(transport_.send(communicator_, peer, own_channel, &part, 1),
        fmt::format("a message to rank {}", peer));
}

void Communicator::receive(int peer, void* data, int64_t bytes) const {
  const tandem_part part{data, bytes};
  check(transport_.receive(communicator_, peer, own_channel, &part, 1),
        fmt::format("a message from rank {}", peer));
}

void Communicator::send_text(int peer, const std::string& text) const {
  const auto bytes = static_cast<int64_t>(text.size());
  send(peer, &bytes, sizeof(bytes));
  send(peer, text.data(), bytes);
}

std::string Communicator::receive_text(int peer) const {
  int64_t bytes = 0;
  receive(peer, &bytes, sizeof(bytes));
  std::string text(static_cast<size_t>(bytes), '\0');
  receive(peer, text.data(), bytes);
  return text;
}

void Communicator::broadcast(void* data, int64_t bytes) const {
  check(transport_.broadcast(communicator_, 0, data, bytes), "a message from rank 0 to all");
}

std::string Communicator::broadcast_text(const std::string& text) const {
  auto bytes = static_cast<int64_t>(text.size());
  broadcast(&bytes, sizeof(bytes));
  std::string result = text;
  result.resize(static_cast<size_t>(bytes));
  broadcast(result.data(), bytes);
  return result;
}

}  // namespace tandem
