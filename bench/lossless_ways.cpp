#include "bench/lossless_ways.h"

#include <fmt/format.h>

namespace tandem::bench {
namespace {

class Ways {
 public:
  Ways(std::string strategy, int devices) : strategy_(std::move(strategy)), devices_(devices) {}

  std::vector<Way> take() {
    if (strategy_ == "two_phase") add_two_phase();
    if (strategy_ == "layerwise") add_layerwise();
    if (strategy_ == "hybrid") add_hybrid();
    if (strategy_ == "asymmetric") add_asymmetric();
    if (strategy_ == "fc_parallel") add_fc_parallel();
    if (ways_.empty()) add("", {});
    return std::move(ways_);
  }

 private:
  void add(const std::string& label, const StrategyOptions& options) {
    ways_.push_back({strategy_, label, options});
  }

  void add_two_phase() {
    StrategyOptions plain;
    plain.hidden_broadcast = false;
    add("", {});
    add("--plain-broadcast", plain);
  }

  void add_layerwise() {
    for (const char* reduce : {"serial", "tree", "ring"}) {
      for (const int64_t bucket : {int64_t{0}, int64_t{1} << 16}) {
        StrategyOptions options;
        options.reduce = reduce;
        options.bucket = bucket;
        add(fmt::format("--reduce {}{}", reduce, bucket > 0 ? " --bucket 64KiB" : ""), options);
      }
    }
  }

  void add_hybrid() {
    for (int fc = 1; 2 * fc <= devices_; ++fc) {
      if ((devices_ - fc) % fc != 0) continue;
      for (const char* memory : {"", "extended"}) {
        StrategyOptions options;
        options.roles.conv_devices = devices_ - fc;
        options.roles.fc_devices = fc;
        options.roles.fc_memory = memory;
        const std::string pair =
            fmt::format("--conv-devices {} --fc-devices {}", devices_ - fc, fc);
        add(*memory == 0 ? pair : pair + " --fc-memory extended", options);
      }
    }
  }

  void add_asymmetric() {
    for (int mask = 1; mask + 1 < 1 << devices_; ++mask) {
      std::string errors, weights;
      for (int device = 0; device < devices_; ++device) {
        std::string& group = (mask >> device & 1) != 0 ? errors : weights;
        group += fmt::format("{}{}", group.empty() ? "" : ",", device);
      }
      StrategyOptions options;
      options.roles.groups = fmt::format("E={}/W={}", errors, weights);
      add("--groups " + options.roles.groups, options);
    }
    if (devices_ < 3) return;  // with one device of W nothing is divided
    for (const char* slices : {"all", "large", "none"}) {
      StrategyOptions options;
      options.roles.slices = slices;
      add(fmt::format("--slices {}", slices), options);
    }
  }

  void add_fc_parallel() {
    for (int quota = 1; quota <= devices_; ++quota) {
      for (const bool eager : {false, true}) {
        if (eager && quota == devices_) continue;
        StrategyOptions options;
        options.roles.quota = quota;
        options.roles.eager = eager;
        add(fmt::format("--quota {}{}", quota, eager ? " --eager" : ""), options);
      }
    }
  }

  std::string strategy_;
  int devices_;
  std::vector<Way> ways_;
};

}  // namespace

std::vector<Way> ways_of(const std::string& strategy, int devices) {
  return Ways(strategy, devices).take();
}

}  // namespace tandem::bench
