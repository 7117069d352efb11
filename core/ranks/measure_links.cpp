#include "core/ranks/measure_links.h"

#include <algorithm>
#include <memory>

#include "core/base/error.h"

namespace tandem {
namespace {

constexpr int64_t large = int64_t{16} << 20, small = 4 << 10;
constexpr int rounds = 5;

// The buffers and the stream of one device.
struct End {
  End(const Machine& machine, int device)
      : sent(machine, device, TANDEM_MEMORY_DEVICE, large),
        received(machine, device, TANDEM_MEMORY_DEVICE, large),
        stream(machine, device, 0, fmt::format("measure {}", device)) {}
  Memory sent, received;
  Stream stream;  // receives
};

struct Pair {
  int source = 0, target = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Bench {
 public:
  explicit Bench(const Machine& machine) : machine_(machine) {
    for (int d = 0; d < machine.device_count(); ++d) {
      ends_.push_back(std::make_unique<End>(machine, d));
    }
  }

  // Median seconds of the first pair's copy while all of them copy at once.
  [[nodiscard]] double seconds(const std::vector<Pair>& pairs, int64_t bytes) {
    std::vector<double> times;
    for (int round = 0; round <= rounds; ++round) {
      const double time = once(pairs, bytes);
      if (round > 0) times.push_back(time);  // the first touches memory for the first time
    }
    return median(std::move(times));
  }

 private:
  double once(const std::vector<Pair>& pairs, int64_t bytes) {
    std::vector<Event> begins, finishes;
    for (size_t i = 0; i < pairs.size(); ++i) {
      begins.emplace_back(machine_);
      finishes.emplace_back(machine_);
    }
    for (size_t i = 0; i < pairs.size(); ++i) {
      const End &source = *ends_[size_t(pairs[i].source)],
                &target = *ends_[size_t(pairs[i].target)];
      target.stream.record(begins[i]);
      target.stream.copy("measure", pairs[i].target, target.received.data(), pairs[i].source,
                         source.sent.data(), bytes);
      target.stream.record(finishes[i]);
    }
    for (const Event& finish : finishes) finish.synchronize(-1);
    return finishes[0].time() - begins[0].time();
  }

  const Machine& machine_;
  std::vector<std::unique_ptr<End>> ends_;
};

LinkMeasurement measure_pair(Bench& bench, const Pair& pair, int devices) {
  LinkMeasurement link;
  const double shortest = bench.seconds({pair}, small);
  // A copy without measurable time is below the resolution of the clock.
  const auto speed = [&](double seconds) {
    return static_cast<double>(large - small) / std::max(seconds - shortest, 1e-9);
  };
  const double alone = speed(bench.seconds({pair}, large));
  const double latency = std::max(0.0, shortest - static_cast<double>(small) / alone);
  link.alone = {pair.source, pair.target, alone, latency};
  link.both_ways = speed(bench.seconds({pair, {pair.target, pair.source}}, large));
  if (devices > 2) {
    std::vector<Pair> all{pair};
    for (int d = 0; d < devices; ++d) {
      const Pair next{d, (d + 1) % devices};
      if (next.target != pair.target) all.push_back(next);
    }
    link.contended = speed(bench.seconds(all, large));
  }
  return link;
}

}  // namespace

LinkMeasurement measure_link(const Machine& machine, int source, int target) {
  Bench bench(machine);
  return measure_pair(bench, {source, target}, machine.device_count());
}

std::vector<LinkMeasurement> measure_links(const Machine& machine) {
  const int devices = machine.device_count();
  Bench bench(machine);
  std::vector<LinkMeasurement> result;
  for (int source = 0; source < devices; ++source) {
    for (int target = 0; target < devices; ++target) {
      if (source != target) result.push_back(measure_pair(bench, {source, target}, devices));
    }
  }
  return result;
}

}  // namespace tandem
