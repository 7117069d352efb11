#include "core/device/device_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "core/base/error.h"
#include "core/plugin/host.h"
#include "core/plugin/registry.h"

namespace tandem {
namespace {

// Rank 0's reason not to have links, or that of the first rank with one; called by all ranks.
std::string first_refusal(const Communicator& ranks, const std::string& mine) {
  constexpr const char* what = "whether its devices have links to other ranks";
  std::string first = mine;
  if (ranks.rank() > 0) ranks.send_text(0, mine, what);
  for (int peer = 1; ranks.rank() == 0 && peer < ranks.size(); ++peer) {
    const std::string of_peer = ranks.receive_text(peer, what);
    if (first.empty() && !of_peer.empty()) first = fmt::format("rank {}: {}", peer, of_peer);
  }
  return ranks.broadcast_text(first, what);
}

const tandem_device_transport* transport_of(const Registry& registry, const std::string& kind,
                                            std::string& refusal) {
  const char* chosen = std::getenv("TANDEM_MESSAGES");
  if (chosen != nullptr && std::string_view(chosen) == "host") {
    refusal = "TANDEM_MESSAGES is host";
    return nullptr;
  }
  const std::vector<std::string> known = registry.device_transports();
  if (std::find(known.begin(), known.end(), kind) == known.end()) {
    refusal = fmt::format("there is no module for messages between devices '{}'", kind);
    return nullptr;
  }
  try {
    return &registry.device_transport(kind);
  } catch (const Error& failure) {
    refusal = failure.what();
    return nullptr;
  }
}

// What one end tells the other before both open a link.
struct Greeting {
  int64_t is_ready = 0;
  std::array<char, TANDEM_LINK_KEY_BYTES> key{};
};

// An opening of a link, as the context of a work. The work itself never fails: a failed one would
// fail its machine.
struct Opening {
  const tandem_device_transport& transport;
  const Greeting& greeting;
  bool receives;
  double seconds;
  tandem_device_link* link = nullptr;
  std::string failure{};

  static tandem_status run(void* context, const tandem_call* call) {
    Opening& self = *static_cast<Opening*>(context);
    const tandem_status status = self.transport.open(
        call, self.greeting.key.data(), self.receives ? 1 : 0, self.seconds, &self.link);
    if (status != TANDEM_OK) self.failure = reason_of(status);
    return TANDEM_OK;
  }
  static std::string reason_of(tandem_status status) {
    const std::string reason = take_reason();
    return reason.empty() ? fmt::format("it failed with status {}", status) : reason;
  }
};

}  // namespace

DeviceLinks::DeviceLinks(const Registry& registry, const Machine& machine,
                         const Communicator& ranks, const Ends& ends)
    : machine_(machine), ranks_(ranks) {
  transport_ = transport_of(registry, machine.kind(), refusal_);
  refusal_ = first_refusal(ranks, refusal_);
  if (!refusal_.empty()) return;
  ranks_.when_aborted(this, [this] { abort(); });
  try {
    open_all(ends);
    if (are_open() && !links_.empty()) watching_ = std::thread([this] { watch(); });
  } catch (...) {
    abort();
    close_all();
    throw;
  }
}

void DeviceLinks::open_all(const Ends& ends) {
  std::string failure;
  for (const auto& [channel, end] : ends) {
    const std::string reason = open(channel, end, failure);
    if (failure.empty()) failure = reason;
  }
  refusal_ = first_refusal(ranks_, failure);
  if (!refusal_.empty()) abort();
}

// With a `failure` of this end the other one does not wait for it in the transport.
std::string DeviceLinks::open(int channel, const End& end, const std::string& failure) {
  constexpr const char* what = "whether it can open a link between devices";
  Greeting mine, theirs;
  std::string reason = failure;
  if (reason.empty() && !end.receives) {
    const tandem_status status = transport_->make_key(mine.key.data());
    if (status != TANDEM_OK) reason = Opening::reason_of(status);
  }
  mine.is_ready = reason.empty() ? 1 : 0;
  if (!end.receives) ranks_.send(end.peer, &mine, sizeof(mine), what);
  ranks_.receive(end.peer, &theirs, sizeof(theirs), what);
  if (end.receives) ranks_.send(end.peer, &mine, sizeof(mine), what);
  if (mine.is_ready == 0 || theirs.is_ready == 0) return reason;  // the peer has its own

  // The others of the job wait meanwhile, no longer than the watchdog allows.
  const double seconds = ranks_.seconds() / 4;
  Opening opening{*transport_, end.receives ? theirs : mine, end.receives, seconds};
  const Stream stream(machine_, end.device, 0, "links");
  stream.submit(
      {sizeof(tandem_work), TANDEM_WORK_COMPUTE, "opening a link", -1, &Opening::run, &opening});
  stream.synchronize();
  if (opening.link != nullptr) {
    const std::string expired = ranks_.waited_text(end.peer, end.receives ? "send" : "receive",
                                                   "a message between devices");
    const auto link = std::make_shared<DeviceLink>(*transport_, opening.link, expired);
    const std::lock_guard lock(mutex_);
    links_[channel] = {end, link};
    if (is_aborted_) link->abort();
  }
  return opening.failure;
}

DeviceLinks::~DeviceLinks() {
  if (std::uncaught_exceptions() > 0) abort();
  close_all();
}

// In parts, so that time in which this process itself was stopped does not count.
void DeviceLinks::watch() {
  constexpr int parts = 20;
  const std::chrono::duration<double> part(ranks_.seconds() / parts);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, part, [&] { return is_closing_; })) {
    for (const auto& [channel, link] : links_) link.open->look(parts);
  }
}

void DeviceLinks::close_all() {
  ranks_.when_aborted(this, nullptr);
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& [channel, link] : links_) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    link.open->close(std::max(0.0, ranks_.seconds() - passed.count()));
  }
  if (!watching_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  changed_.notify_all();
  watching_.join();
}

void DeviceLinks::abort() {
  const std::lock_guard lock(mutex_);
  is_aborted_ = true;
  for (const auto& [channel, link] : links_) link.open->abort();
}

std::string DeviceLinks::text() const {
  if (are_open()) return fmt::format("messages between devices: {}", transport_->help);
  return fmt::format("messages between devices go through the host's memory: {}", refusal_);
}

std::shared_ptr<DeviceLink> DeviceLinks::link(int channel) const {
  return links_.at(channel).open;
}

void DeviceLinks::check() const {
  const std::lock_guard lock(mutex_);
  if (is_aborted_) return;
  for (const auto& [channel, link] : links_) {
    tandem::check(
        link.open->check(),
        fmt::format("the link {} rank {}", link.end.receives ? "from" : "to", link.end.peer));
  }
}

}  // namespace tandem
