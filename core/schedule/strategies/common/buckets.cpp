#include "core/schedule/strategies/common/buckets.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/schedule/builder/weight_ranges.h"
#include "core/schedule/plan/buffers.h"

namespace tandem {
namespace {

// Small arrays that are not trained (running means) lie between others; to leave them out would
// cost a message of its own for what is on either side.
constexpr int64_t max_gap = 64 << 10;
constexpr int64_t alignment = 64;

// Whether the array lies next to the bucket, on either side.
bool is_neighbor(const Bucket& bucket, const WeightArray& array) {
  const Interval bytes = buffers::bytes_of(array);
  const int64_t gap = std::max(bucket.range.begin - bytes.end, bytes.begin - bucket.range.end);
  return gap <= max_gap;
}

void add(Bucket& bucket, const Net& net, int weight, int layer) {
  const Interval bytes = buffers::bytes_of(net.weight(weight));
  bucket.range = bucket.weights.empty() ? bytes
                                        : Interval{std::min(bucket.range.begin, bytes.begin),
                                                   std::max(bucket.range.end, bytes.end)};
  bucket.layer = layer;
  bucket.weights.push_back(weight);
}

void finish(Bucket& bucket, const Net& net, const std::vector<int>& users) {
  std::sort(bucket.weights.begin(), bucket.weights.end(),
            [&](int a, int b) { return net.weight(a).offset < net.weight(b).offset; });
  int last = bucket.layer;
  for (const int weight : bucket.weights) last = std::max(last, users[size_t(weight)]);
  bucket.name = net.layer(bucket.layer).name;
  if (last != bucket.layer) bucket.name += ".." + net.layer(last).name;
}

}  // namespace

std::vector<Bucket> make_buckets(const Net& net, int64_t bytes, const std::set<int>& without) {
  const std::vector<int> users = first_users(net);
  std::vector<int> trained;
  for (size_t i = 0; i < net.weights.size(); ++i) {
    if (net.weights[i].trained() && users[i] >= 0) trained.push_back(static_cast<int>(i));
  }
  if (trained.empty()) {
    throw error(
        "net '{}' has no weights to train: every lr_mult is 0, or no layer before the loss has any",
        net.name);
  }
  std::stable_sort(trained.begin(), trained.end(), [&](int a, int b) {
    if (users[size_t(a)] != users[size_t(b)]) return users[size_t(a)] > users[size_t(b)];
    return net.weight(a).offset > net.weight(b).offset;
  });
  std::vector<Bucket> buckets;
  bool is_next = false;  // nothing that is left out lies between the bucket and the array
  for (const int weight : trained) {
    const int layer = users[size_t(weight)];
    if (without.contains(layer)) {
      is_next = false;
      continue;
    }
    // A layer's arrays are complete together, so they never make a bucket too large.
    const bool fits = std::exchange(is_next, true) && !buckets.empty() &&
                      (buckets.back().range.count() < bytes || buckets.back().layer == layer) &&
                      is_neighbor(buckets.back(), net.weight(weight));
    if (!fits) buckets.emplace_back();
    add(buckets.back(), net, weight, layer);
  }
  std::set<std::string> names;
  for (Bucket& bucket : buckets) {
    finish(bucket, net, users);
    const std::string plain = bucket.name;
    for (int i = 2; !names.insert(bucket.name).second; ++i) {
      bucket.name = fmt::format("{} ({})", plain, i);
    }
  }
  return buckets;
}

Interval slice_of(Interval range, int index, int count) {
  const int64_t units = (range.count() + alignment - 1) / alignment;
  const Interval slice = share(units, count, index);
  return {std::min(range.begin + slice.begin * alignment, range.end),
          std::min(range.begin + slice.end * alignment, range.end)};
}

std::vector<BucketTransfer> order_transfers(const std::vector<Bucket>& buckets,
                                            const TransferTimes& times, bool duplex,
                                            bool broadcasts_last) {
  constexpr double never = std::numeric_limits<double>::infinity();
  std::vector<BucketTransfer> transfers;
  std::vector<double> reduced(buckets.size(), never);
  std::vector<bool> is_sent(buckets.size(), false);
  double now = 0, gradients_free = 0;  // `now` is of the links that weights travel on
  size_t next = 0;
  const auto reduce_next = [&] {
    const double begin = std::max({gradients_free, times.ready[next], duplex ? 0.0 : now});
    gradients_free = reduced[next] = begin + times.reduction[next];
    if (!times.update.empty()) reduced[next] += times.update[next];
    if (!duplex) now = gradients_free;
    transfers.push_back({static_cast<int>(next++), false});
  };
  while (transfers.size() < 2 * buckets.size()) {
    const bool has_ready = next < buckets.size() && times.ready[next] <= now;
    int chosen = -1;
    for (size_t i = 0; i < buckets.size(); ++i) {
      if (is_sent[i] || reduced[i] > now) continue;
      if (chosen < 0 || buckets[i].layer < buckets[size_t(chosen)].layer) {
        chosen = static_cast<int>(i);
      }
    }
    const bool all_in = next == buckets.size() && (buckets.empty() || gradients_free <= now);
    const bool may_broadcast = chosen >= 0 && (!broadcasts_last || all_in);
    if (next < buckets.size() && (has_ready || !may_broadcast)) {
      reduce_next();
    } else if (may_broadcast) {
      now += times.broadcast[size_t(chosen)];
      is_sent[size_t(chosen)] = true;
      transfers.push_back({chosen, true});
    } else {
      const double next_reduced = *std::min_element(
          reduced.begin(), reduced.end(),
          [&](double a, double b) { return (a > now ? a : never) < (b > now ? b : never); });
      now = broadcasts_last ? std::max(gradients_free, next_reduced > now ? next_reduced : now)
                            : next_reduced;
    }
  }
  return transfers;
}

}  // namespace tandem
