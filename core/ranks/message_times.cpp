#include "core/ranks/message_times.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/schedule/execution/watchdog.h"

namespace tandem {
namespace {

// Large enough that what a network lets through at once, as after a pause, hardly counts.
constexpr int64_t small_message = 4 << 10, large_message = int64_t{32} << 20;
constexpr int small_rounds = 7, large_rounds = 3;
constexpr const char* timed_message = "a message whose time is measured";

// Two channels of each pair: from the first rank, and to it.
int channel_of(size_t pair, bool from_first) {
  return 2 * static_cast<int>(pair) + (from_first ? 0 : 1);
}

DeviceLinks::Ends ends_of(const std::vector<MessageTimes::Pair>& pairs, int me) {
  DeviceLinks::Ends ends;
  for (size_t pair = 0; pair < pairs.size(); ++pair) {
    const auto [first, second] = pairs[pair];
    if (me != first && me != second) continue;
    const int peer = me == first ? second : first;
    ends[channel_of(pair, true)] = {peer, me == second, 0};
    ends[channel_of(pair, false)] = {peer, me == first, 0};
  }
  return ends;
}

}  // namespace

MessageTimes::MessageTimes(const Registry& registry, const Machine& machine,
                           const Communicator& ranks, std::vector<Pair> pairs)
    : machine_(machine), ranks_(ranks), pairs_(std::move(pairs)) {
  const DeviceLinks::Ends ends = ends_of(pairs_, ranks.rank());
  if (machine.is_host_addressable()) {
    if (!ends.empty()) plain_.resize(size_t(large_message));
    return;
  }
  stream_.emplace(machine, 0, 0, "messages");
  if (!ends.empty()) on_device_.emplace(machine, 0, TANDEM_MEMORY_DEVICE, large_message);
  links_.emplace(registry, machine, ranks, ends);
  if (ends.empty() || links_->are_open()) return;
  on_host_.emplace(machine, 0, TANDEM_MEMORY_PINNED, large_message);
}

std::string MessageTimes::path() const {
  return links_ ? links_->text() : "";
}

bool MessageTimes::begins(size_t pair) const {
  return pairs_[pair].first == ranks_.rank();
}

int MessageTimes::peer(size_t pair) const {
  return begins(pair) ? pairs_[pair].second : pairs_[pair].first;
}

// The small message takes no time of the bandwidth: a network lets it through at once.
LinkSpeed MessageTimes::measure(size_t pair) {
  LinkSpeed link;
  link.latency = one_way_seconds(pair, small_rounds, small_message);
  const double longest = one_way_seconds(pair, large_rounds, large_message);
  link.bandwidth = static_cast<double>(large_message) / std::max(longest - link.latency, 1e-9);
  return link;
}

// Half of the least time that a message to the other rank and back takes; a message that comes
// later than others was held up.
double MessageTimes::one_way_seconds(size_t pair, int rounds, int64_t bytes) {
  double least = -1;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    if (begins(pair)) send(pair, bytes);
    receive(pair, bytes);
    if (!begins(pair)) send(pair, bytes);
    finish(pair);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    if (round > 0 && (least < 0 || time.count() < least)) least = time.count();
  }
  return least / 2;
}

void MessageTimes::send(size_t pair, int64_t bytes) {
  std::byte* memory = plain_.data();
  if (links_ && links_->are_open()) return transfer(channel_of(pair, begins(pair)), bytes);
  if (on_host_) {
    memory = on_host_->data();
    stream_->copy("measure", TANDEM_HOST, memory, 0, on_device_->data(), bytes);
    stream_->synchronize();
  }
  ranks_.send(peer(pair), memory, bytes, timed_message);
}

void MessageTimes::receive(size_t pair, int64_t bytes) {
  if (links_ && links_->are_open()) return transfer(channel_of(pair, !begins(pair)), bytes);
  std::byte* memory = on_host_ ? on_host_->data() : plain_.data();
  ranks_.receive(peer(pair), memory, bytes, timed_message);
  if (on_host_) stream_->copy("measure", 0, on_device_->data(), TANDEM_HOST, memory, bytes);
}

tandem_status MessageTimes::Transfer::run(void* context, const tandem_call* call) {
  const Transfer& self = *static_cast<Transfer*>(context);
  return self.link->transfer(*call, self.memory, self.bytes);
}

void MessageTimes::transfer(int channel, int64_t bytes) {
  transfers_.push_back({links_->link(channel), on_device_->data(), bytes});
  stream_->submit({sizeof(tandem_work), TANDEM_WORK_COMPUTE, "measure", -1, &Transfer::run,
                   &transfers_.back()});
}

void MessageTimes::finish(size_t pair) {
  if (!stream_) return;
  const Event done(machine_);
  stream_->record(done);
  Timeout patience(ranks_.seconds(), [this] { links_->check(); });
  if (!patience.wait(done)) throw Error(ranks_.waited_text(peer(pair), "answer", timed_message));
  transfers_.clear();
}

}  // namespace tandem
