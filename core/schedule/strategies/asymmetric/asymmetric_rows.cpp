#include "core/schedule/strategies/asymmetric/asymmetric_rows.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "core/schedule/strategies/common/collectives.h"

namespace tandem {
namespace {

// Hands out the rows of W.
class Remaining {
 public:
  Remaining(const StrategyInputs& inputs, const std::vector<int>& devices) : inputs_(inputs) {
    for (const int device : devices) {
      left_.push_back({device, share(inputs.net->batch, inputs.devices, device), device});
    }
  }

  // At most `count` of one device, of that which reaches `to` fastest; none: there are none left.
  BackwardRows take(int to, int64_t count) {
    constexpr int64_t message = int64_t{1} << 20;
    BackwardRows* nearest = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (BackwardRows& rows : left_) {
      const double seconds = transfer_seconds(inputs_, rows.device, to, message);
      if (rows.rows.count() == 0 || seconds >= least) continue;
      least = seconds;
      nearest = &rows;
    }
    if (nearest == nullptr) return {to, {}, -1};
    const int64_t end = std::min(nearest->rows.begin + count, nearest->rows.end);
    const BackwardRows taken{to, {nearest->rows.begin, end}, nearest->device};
    nearest->rows.begin = end;
    return taken;
  }

 private:
  const StrategyInputs& inputs_;
  std::vector<BackwardRows> left_;
};

}  // namespace

std::string AsymmetricGroups::to_text() const {
  return fmt::format("E={}/W={}", fmt::join(activations, ","), fmt::join(weights, ","));
}

std::vector<BackwardRows> backward_rows(const StrategyInputs& inputs,
                                        const AsymmetricGroups& groups) {
  const auto devices = static_cast<int>(groups.activations.size());
  Remaining remaining(inputs, groups.weights);
  std::vector<BackwardRows> result;
  for (int i = 0; i < devices; ++i) {
    const int device = groups.activations[size_t(i)];
    const Interval own = share(inputs.net->batch, inputs.devices, device);
    result.push_back({device, own, device});
    const bool is_last = i == devices - 1;
    int64_t wanted =
        is_last ? inputs.net->batch : share(inputs.net->batch, devices, i).count() - own.count();
    while (wanted > 0) {
      const BackwardRows taken = remaining.take(device, wanted);
      if (taken.rows.count() == 0) break;
      wanted -= taken.rows.count();
      result.push_back(taken);
    }
  }
  return result;
}

std::vector<GradientMessage> gradient_messages(const std::vector<BackwardRows>& parts,
                                               size_t targets, int64_t row_bytes) {
  constexpr int64_t message_bytes = int64_t{4} << 20, max_messages = 8;
  std::vector<std::vector<GradientMessage>> by_device;  // in the order in which they are computed
  for (size_t part = 0; part < parts.size(); ++part) {
    if (part == 0 || parts[part].device != parts[part - 1].device) by_device.emplace_back();
    const int64_t count = parts[part].rows.count();
    const int64_t messages =
        std::min({(count * row_bytes + message_bytes - 1) / message_bytes, max_messages, count});
    for (int64_t i = 0; i < std::max(messages, int64_t{1}); ++i) {
      const Interval some =
          share(count, static_cast<int>(std::max(messages, int64_t{1})), static_cast<int>(i));
      const int64_t begin = parts[part].rows.begin;
      by_device.back().push_back({part, 0, {begin + some.begin, begin + some.end}});
    }
  }
  size_t most = 0;
  for (const auto& messages : by_device) most = std::max(most, messages.size());
  std::vector<GradientMessage> result;
  for (size_t number = 0; number < most; ++number) {
    for (size_t round = 0; round < targets; ++round) {
      for (size_t device = 0; device < by_device.size(); ++device) {
        if (number >= by_device[device].size()) continue;
        GradientMessage message = by_device[device][number];
        message.target = (device + round) % targets;
        result.push_back(message);
      }
    }
  }
  return result;
}

std::vector<Interval> pass_rows(const std::vector<BackwardRows>& parts, size_t part,
                                const std::vector<GradientMessage>& messages) {
  constexpr int64_t least = 64;
  std::vector<Interval> result;
  for (const GradientMessage& message : messages) {
    if (message.part != part || message.target != messages.front().target) continue;
    if (!result.empty() && result.back().count() < least) {
      result.back().end = message.rows.end;
    } else {
      result.push_back(message.rows);
    }
  }
  if (result.empty()) return {parts[part].rows};
  if (result.size() > 1 && result.back().count() < least) {
    const int64_t end = result.back().end;
    result.pop_back();
    result.back().end = end;
  }
  return result;
}

bool passes_some_rows(const Net& net, int layer, int above) {
  const auto takes = [](const Layer& l) {
    return !l.has(TANDEM_LOSS) && (!l.wants_backward_data || l.has(TANDEM_SAVES_NOTHING));
  };
  return std::all_of(net.layers.begin() + layer + 1, net.layers.begin() + above, takes);
}

std::vector<Interval> message_rows(Interval rows, int64_t row_bytes) {
  constexpr int64_t message_bytes = int64_t{2} << 20, most = 8;
  const int64_t wanted = (rows.count() * row_bytes + message_bytes - 1) / message_bytes;
  const auto count = static_cast<int>(std::max(std::min({wanted, most, rows.count()}), int64_t{1}));
  std::vector<Interval> result;
  for (int i = 0; i < count; ++i) {
    const Interval some = share(rows.count(), count, i);
    result.push_back({rows.begin + some.begin, rows.begin + some.end});
  }
  return result;
}

}  // namespace tandem
