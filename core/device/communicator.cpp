#include "core/device/communicator.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/plugin/host.h"

namespace tandem {
namespace {

constexpr int own_channel = 0;  // see channel_of()

tandem_communicator* opened(const tandem_transport& transport) {
  tandem_communicator* communicator = nullptr;
  check(transport.open(&communicator), fmt::format("transport '{}'", transport.name));
  return communicator;
}

}  // namespace

std::string RankHosts::text() const {
  std::map<std::string, int> counts;
  for (const std::string& name : names) ++counts[name];
  std::string text;
  for (const auto& [name, count] : counts) {
    text += fmt::format("{}{} rank{} on {}", text.empty() ? "" : ", ", count, count == 1 ? "" : "s",
                        name);
  }
  return text;
}

Communicator::Communicator(const tandem_transport& transport, double watchdog_seconds)
    : transport_(transport),
      communicator_(opened(transport)),
      seconds_(rank() == 0 ? watchdog_seconds : 1.1 * watchdog_seconds),
      watchdog_(seconds_, [this] { abort(); }) {}

Communicator::~Communicator() {
  transport_.close(communicator_);
}

void Communicator::abort() const {
  transport_.abort(communicator_);
  const std::lock_guard lock(mutex_);
  for (const auto& [owner, function] : when_aborted_) function();
}

void Communicator::when_aborted(const void* owner, std::function<void()> function) const {
  const std::lock_guard lock(mutex_);
  if (function) {
    when_aborted_[owner] = std::move(function);
  } else {
    when_aborted_.erase(owner);
  }
}

std::string Communicator::waited_text(int peer, const char* act, const char* what) const {
  const auto at = size_t(peer);
  const std::string host =
      peer >= 0 && at < hosts_.names.size() ? fmt::format(" (host {})", hosts_.names[at]) : "";
  const std::string whom = peer < 0 ? "the other ranks" : fmt::format("rank {}{}", peer, host);
  return fmt::format(
      "waited {:.6g} seconds (--watchdog) for {} to {} {}: {} stopped, stuck or slow, or cannot be "
      "reached",
      seconds_, whom, act, what, peer < 0 ? "one is" : "it is");
}

void Communicator::watch(const std::function<void()>& call, int peer, const char* act,
                         const char* what) const {
  if (watchdog_.expires(call)) throw Error(waited_text(peer, act, what));
}

void Communicator::send(int peer, const void* data, int64_t bytes, const char* what,
                        const char* act) const {
  const tandem_part part{const_cast<void*>(data), bytes};  // a send only reads it
  const auto call = [&] {
    check(transport_.send(communicator_, peer, own_channel, &part, 1),
          fmt::format("a message to rank {}", peer));
  };
  watch(call, peer, act, what);
}

void Communicator::receive(int peer, void* data, int64_t bytes, const char* what,
                           const char* act) const {
  const tandem_part part{data, bytes};
  const auto call = [&] {
    check(transport_.receive(communicator_, peer, own_channel, &part, 1),
          fmt::format("a message from rank {}", peer));
  };
  watch(call, peer, act, what);
}

void Communicator::send_text(int peer, const std::string& text, const char* what) const {
  const auto bytes = static_cast<int64_t>(text.size());
  send(peer, &bytes, sizeof(bytes), what);
  send(peer, text.data(), bytes, what);
}

std::string Communicator::receive_text(int peer, const char* what) const {
  int64_t bytes = 0;
  receive(peer, &bytes, sizeof(bytes), what);
  std::string text(size_t(bytes), '\0');
  receive(peer, text.data(), bytes, what);
  return text;
}

void Communicator::gather_words(const char* act, const char* act_of_root, const char* what) const {
  int64_t word = 0;
  if (rank() != 0) return send(0, &word, sizeof(word), what, act_of_root);
  for (int peer = 1; peer < size(); ++peer) receive(peer, &word, sizeof(word), what, act);
}

void Communicator::watched_broadcast(void* data, int64_t bytes, const char* act_of_root,
                                     const char* what) const {
  const auto call = [&] {
    check(transport_.broadcast(communicator_, 0, data, bytes), "a message from rank 0 to all");
  };
  if (rank() == 0) return watch(call, -1, "receive", what);
  watch(call, 0, act_of_root, what);
}

// A large message makes rank 0 wait for the others, and the transport does not say for whom. So
// rank 0 first hears from each that it is there.
void Communicator::broadcast(void* data, int64_t bytes, const char* what) const {
  constexpr int64_t large = 1024;  // smaller ones no transport holds back
  if (bytes > large) gather_words("be ready for", "send", what);
  watched_broadcast(data, bytes, "send", what);
}

std::string Communicator::broadcast_text(const std::string& text, const char* what) const {
  auto bytes = static_cast<int64_t>(text.size());
  broadcast(&bytes, sizeof(bytes), what);
  std::string result = text;
  result.resize(size_t(bytes));
  broadcast(result.data(), bytes, what);
  return result;
}

void Communicator::meet(const char* what) const {
  gather_words("come to", "come to", what);
  int64_t word = 0;
  watched_broadcast(&word, sizeof(word), "come to", what);
}

}  // namespace tandem
