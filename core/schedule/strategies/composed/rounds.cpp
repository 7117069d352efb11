#include "core/schedule/strategies/composed/rounds.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"

namespace tandem {
namespace {

// Where a layer sends gradients after each of its rounds, rounds multiply from layer to layer.
void require_few_rounds(const Layer& first, size_t linear_layers, int devices,
                        const FcParallelOptions& options) {
  constexpr int64_t most = 256, enough = int64_t{1} << 40;
  const int64_t each = (devices + options.quota - 1) / options.quota;
  int64_t rounds = each;
  for (size_t i = 1; i < linear_layers && options.eager; ++i) {
    rounds = std::min(enough, rounds * each);
  }
  if (rounds <= most) return;
  throw error(
      "{}: with --eager and {} of {} gradient parts a round its backward pass would take {} "
      "rounds, at "
      "most {} are allowed: use a larger --quota, or no --eager{}",
      first.title(), options.quota, devices, rounds, most, in_file(first.location));
}

}  // namespace

std::vector<Interval> shares_of(int64_t batch, int devices) {
  std::vector<Interval> rows;
  for (int device = 0; device < devices; ++device) rows.push_back(share(batch, devices, device));
  return rows;
}

FcParallelOptions completed(FcParallelOptions options, int devices) {
  if (options.quota > devices) {
    throw error(
        "--quota {}: a round waits for at least 1 and at most {} gradient parts, one of each "
        "device",
        options.quota, devices);
  }
  if (options.eager && options.quota == devices) {
    throw error(
        "--eager with --quota {} on {} devices: there is one round only, whose gradients are sent "
        "at once anyway; use a --quota of at most {}",
        options.quota, devices, devices - 1);
  }
  if (options.quota == 0) options.quota = options.eager ? (devices + 1) / 2 : devices;
  return options;
}

BackwardRounds::BackwardRounds(const Net& net, const FcChain& chain,
                               const std::vector<Interval>& rows, FcParallelOptions options)
    : options_(completed(options, static_cast<int>(rows.size()))) {
  const int devices = static_cast<int>(rows.size());
  require_few_rounds(net.layer(chain.linear.front()), chain.linear.size(), devices, options_);
  const Interval batch{rows.front().begin, rows.back().end};
  std::vector<ReduceScatter> received{{0, batch, ""}};  // the gradients of the loss
  for (auto layer = chain.linear.rbegin(); layer != chain.linear.rend(); ++layer) {
    const bool is_last = *layer == chain.linear.back();
    std::vector<Round>& rounds = rounds_[*layer];
    for (const ReduceScatter& scatter : received) {
      for (int first = 0; first < devices; first += options_.quota) {
        Round& round = rounds.emplace_back();
        round.received = scatter;
        round.parts = {first, std::min(devices, first + options_.quota)};
        round.rows =
            is_last ? Interval{rows[size_t(first)].begin, rows[size_t(round.parts.end) - 1].end}
                    : scatter.rows;
      }
    }
    repetitions_[*layer] = is_last ? 1 : int(rounds.size() / received.size());
    received = number_and_send(rounds, batch);
    if (!is_last) continue;
    for (const ReduceScatter& scatter : received) row_blocks_.push_back(scatter.rows);
  }
}

// Sets the rest of a layer's rounds. Returns what it sends: here alone eager differs.
std::vector<ReduceScatter> BackwardRounds::number_and_send(std::vector<Round>& rounds,
                                                           Interval batch) const {
  std::vector<ReduceScatter> sent;
  for (size_t i = 0; i < rounds.size(); ++i) {
    Round& round = rounds[i];
    round.number = static_cast<int>(i);
    round.name = fmt::format("round {}", i);
    round.sent = options_.eager ? ReduceScatter{round.number, round.rows, round.name}
                                : ReduceScatter{0, batch, ""};
    const bool has_earlier =
        std::any_of(rounds.begin(), rounds.begin() + round.number,
                    [&](const Round& earlier) { return earlier.rows == round.rows; });
    (options_.eager ? round.sent.adds : round.adds_to_sent) = has_earlier;
    round.completes_sent = options_.eager || i + 1 == rounds.size();
    if (round.completes_sent) sent.push_back(round.sent);
  }
  return sent;
}

}  // namespace tandem
