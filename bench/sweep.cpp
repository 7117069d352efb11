// bench_sweep: looks for convolutions that are far slower than this machine can compute them. Draws
// extents from a grid, the same ones for the same seed on every machine, times every pass in the
// layout that a net alone would choose, and prints the passes below a share of the limit: the
// larger of the times that the FLOP limit and the byte limit allow, both measured in the same run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <thread>

#include "bench/layer_run.h"
#include "bench/peak.h"
#include "core/base/numbers/shape.h"
#include "plugins/cpu/team.h"

namespace {

using namespace tandem;
using namespace tandem::bench;
using Clock = std::chrono::steady_clock;

struct Options {
  int64_t cases = 300, first = 0;
  uint64_t seed = 1;
  int32_t threads = static_cast<int32_t>(std::max(1U, std::thread::hardware_concurrency()));
  double share = 0.3, min_milliseconds = 0.5;
  std::string precision = "float32";
  bool all = false;
};

struct Extents {
  int64_t batch, image, inputs, outputs, kernel, stride, pad, dilation, group;

  [[nodiscard]] int64_t output_image() const {
    return (image + 2 * pad - ((kernel - 1) * dilation + 1)) / stride + 1;
  }
  [[nodiscard]] double flops() const {
    return 2.0 * static_cast<double>(batch * output_image() * output_image() * outputs) *
           static_cast<double>(inputs / group * kernel * kernel);
  }
  [[nodiscard]] double floats() const {
    return static_cast<double>(batch) *
               static_cast<double>(inputs * image * image +
                                   outputs * output_image() * output_image()) +
           static_cast<double>(outputs * inputs / group * kernel * kernel);
  }
  [[nodiscard]] std::string text() const {
    return fmt::format("{}x{}x{}x{} to {}, kernel {}, stride {}, pad {}, dilation {}, group {}",
                       batch, inputs, image, image, outputs, kernel, stride, pad, dilation, group);
  }
  [[nodiscard]] LayerCase layer() const {
    const auto number = [](int64_t value) {
      return std::vector<std::string>{std::to_string(value)};
    };
    return {"sweep",
            "Convolution",
            {batch, inputs, image, image},
            {{"num_output", number(outputs)},
             {"kernel_size", number(kernel)},
             {"stride", number(stride)},
             {"pad", number(pad)},
             {"dilation", number(dilation)},
             {"group", number(group)}}};
  }
};

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}

  // Extents that a case of a few seconds has: at most 20 GFLOP a pass and 128 Mi floats.
  Extents next() {
    constexpr double max_flops = 2e10, max_floats = 128 << 20;
    for (;;) {
      const Extents e = any();
      const bool fits = e.image + 2 * e.pad >= (e.kernel - 1) * e.dilation + 1;
      const bool divides = e.inputs % e.group == 0 && e.outputs % e.group == 0;
      if (fits && divides && e.flops() <= max_flops && e.floats() <= max_floats) return e;
    }
  }

 private:
  Extents any() {
    Extents e{};
    e.batch = of({1, 2, 8, 32, 128, 256});
    e.image = of({1, 2, 3, 4, 5, 7, 8, 10, 13, 14, 16, 20, 27, 28, 32, 56, 64, 112, 224});
    const std::initializer_list<int64_t> channels{1,  2,  3,   4,   8,   12,  16,  20,  24,   32,
                                                  48, 64, 100, 128, 192, 256, 384, 512, 1024, 2048};
    e.inputs = of(channels);
    e.kernel = of({1, 1, 2, 3, 3, 3, 4, 5, 7, 9, 11});
    e.stride = of({1, 1, 1, 2, 2, 3, 4});
    e.dilation = of({1, 1, 1, 1, 2, 4});
    e.pad = of({0, 1}) * (e.kernel - 1) / 2 * e.dilation;
    const bool is_depthwise = of({0, 0, 0, 0, 0, 1}) == 1;
    e.group = is_depthwise ? e.inputs : of({1, 1, 1, 1, 2, 4, 32});
    e.outputs = is_depthwise ? e.inputs : of(channels);
    return e;
  }
  int64_t of(std::initializer_list<int64_t> values) {
    return values.begin()[random_() % values.size()];
  }
  std::mt19937_64 random_;
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The fastest of three runs or more; of one, if it takes seconds.
double seconds_of(LayerRun& run, const TimedPass& pass) {
  constexpr double enough = 0.03, too_long = 2;
  double best = 0, all = 0;
  for (int runs = 0; runs < 3 || all < enough; ++runs) {
    const Clock::time_point begin = Clock::now();
    run.run(pass);
    const double seconds = seconds_since(begin);
    best = runs == 0 ? seconds : std::min(best, seconds);
    all += seconds;
    if (all >= too_long) break;
  }
  return best;
}

struct Tally {
  int64_t passes = 0, slow = 0, refused = 0;
};

tandem_layout_option best_option(CaseType& type) {
  const std::vector<tandem_layout_option> options = type.options();
  return *std::min_element(options.begin(), options.end(), [](const auto& a, const auto& b) {
    return a.extra_bytes < b.extra_bytes;
  });
}

void measure(const Registry& registry, const Options& options, const Limits& limits, int64_t number,
             const Extents& extents, Tally& tally) try {
  CaseType type(registry, extents.layer(), parse_precision(options.precision));
  const tandem_layout_option option = best_option(type);
  LayerRun run(type, option, options.threads);
  for (const TimedPass& pass : type.passes()) {
    if (pass.adds) continue;
    const double limit =
        std::max(type.flops(pass.pass) / limits.flops, type.bytes(pass.pass) / limits.bandwidth);
    const double seconds = seconds_of(run, pass), share = limit / seconds;
    ++tally.passes;
    const bool is_slow = share < options.share && seconds * 1e3 >= options.min_milliseconds;
    tally.slow += is_slow ? 1 : 0;
    if (!is_slow && !options.all) continue;
    fmt::print("{:>5} {:<17} {:>9.2f} ms, limit {:>8.3f}, share {:.3f}  {}; {}-{}; {}\n", number,
               to_string(pass), seconds * 1e3, limit * 1e3, share, extents.text(),
               layout_name(option.input), layout_name(option.output), run.description());
  }
} catch (const Error& refusal) {
  ++tally.refused;
  fmt::print("{:>5} refused: {}: {}\n", number, extents.text(), refusal.what());
}

int run(const Options& options) {
  Registry registry;
  registry.scan(TANDEM_PLUGIN_DIR);
  const Peak peak = measure_peak(options.threads);
  const Limits limits{options.precision == "float32" ? peak.float32 : peak.bfloat16,
                      measure_bandwidth(options.threads)};
  if (limits.flops <= 0) {
    throw error("this CPU has no multiply-adds in {} whose rate could be measured",
                options.precision);
  }
  fmt::print("limits, {} threads: {:.0f} GFLOP/s, {:.1f} GB/s\n", options.threads,
             limits.flops / 1e9, limits.bandwidth / 1e9);
  cpu::set_team_size(options.threads);  // of oneDNN on this thread
  Draw draw(options.seed);
  Tally tally;
  for (int64_t i = 0; i < options.first + options.cases; ++i) {
    const Extents extents = draw.next();
    if (i >= options.first) measure(registry, options, limits, i, extents, tally);
    std::fflush(stdout);
  }
  fmt::print("{} cases, {} passes: {} of {:g} ms or more are below {:g} of the limit; {} refused\n",
             options.cases, tally.passes, tally.slow, options.min_milliseconds, options.share,
             tally.refused);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Finds convolutions that are far slower than this machine's limits");
  Options options;
  app.add_option("--cases", options.cases, "Number of cases")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  app.add_option("--first", options.first, "The number of the first one, as it is printed")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000000));
  app.add_option("--seed", options.seed, "Of the draw")->capture_default_str();
  app.add_option("--threads", options.threads, "Threads of a layer")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  app.add_option("--precision", options.precision, "Of tensors and of the limit")
      ->capture_default_str()
      ->check(CLI::IsMember({"float32", "bfloat16"}));
  app.add_option("--share", options.share, "Print passes below this share of the limit")
      ->capture_default_str();
  app.add_option("--least-ms", options.min_milliseconds,
                 "Of passes that take at least so long: shorter ones are mostly overhead")
      ->capture_default_str();
  app.add_flag("--all", options.all, "Print every pass");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const std::exception& failure) {
    fmt::print(stderr, "bench_sweep: {}\n", failure.what());
    return 1;
  }
}
