// bench_layers: times the layers of AlexNet, convolutions and poolings of other nets, and
// element-wise layers at the size of ResNet's first block, each pass in every layout of its kernel,
// with Google Benchmark, whose options it takes
// (--benchmark_filter, --benchmark_out). Every time is printed next to the limits of this machine,
// measured in the same run. A list at the end has the passes that lose most time against them.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <thread>

#include "bench/layer_run.h"
#include "bench/peak.h"
#include "plugins/cpu/team.h"

namespace {

using namespace tandem;
using namespace tandem::bench;

// The fastest layout of a layer's pass.
struct Fastest {
  std::string layouts;
  double seconds = 0, flop_seconds = 0, byte_seconds = 0;  // the latter: at the two limits
  [[nodiscard]] double limit() const { return std::max(flop_seconds, byte_seconds); }
  [[nodiscard]] double lost() const { return seconds - limit(); }
};

Limits measure_limits(int32_t threads, int32_t dtype) {
  const Peak peak = measure_peak(threads);
  return {dtype == TANDEM_BFLOAT16 ? peak.bfloat16 : peak.float32, measure_bandwidth(threads)};
}

struct Measuring {
  int32_t dtype = TANDEM_FLOAT32;
  int32_t threads = 1;
  std::optional<Limits> limits;
  std::map<std::string, Fastest> fastest;  // "conv1 forward"
  bool failed = false;

  // The last case and layout that ran: its passes come one after the other.
  CaseType* type = nullptr;
  std::string layouts;
  std::unique_ptr<LayerRun> last;

  // Measured when the first pass runs; a listing needs no limits.
  const Limits& needed_limits() {
    if (!limits) {
      limits = measure_limits(threads, dtype);
      fmt::print(stderr, "limits, {} threads: {:.0f} GFLOP/s ({}), {:.1f} GB/s\n", threads,
                 limits->flops / 1e9, dtype_name(dtype), limits->bandwidth / 1e9);
    }
    if (limits->flops > 0) return *limits;
    throw error("this CPU has no {} multiply-adds whose rate could be measured", dtype_name(dtype));
  }

  LayerRun& prepared(CaseType& wanted, const tandem_layout_option& option,
                     const std::string& names) {
    if (type == &wanted && layouts == names && last != nullptr) return *last;
    last.reset();  // both at once might not fit
    last = std::make_unique<LayerRun>(wanted, option, threads);
    type = &wanted;
    layouts = names;
    return *last;
  }

  void note(const std::string& key, const Fastest& measured) {
    const auto [found, is_new] = fastest.try_emplace(key, measured);
    if (!is_new && measured.seconds < found->second.seconds) found->second = measured;
  }
};

void time_pass(benchmark::State& state, Measuring& measuring, CaseType& type,
               const tandem_layout_option& option, const std::string& layouts,
               const TimedPass& pass) try {
  using clock = std::chrono::steady_clock;
  const Limits& limits = measuring.needed_limits();
  LayerRun& run = measuring.prepared(type, option, layouts);
  run.run(pass);
  const auto begin = clock::now();
  for ([[maybe_unused]] auto _ : state) run.run(pass);
  const double seconds = std::chrono::duration<double>(clock::now() - begin).count() /
                         static_cast<double>(state.iterations());
  const Fastest measured{layouts, seconds, type.flops(pass.pass) / limits.flops,
                         type.bytes(pass.pass) / limits.bandwidth};
  state.counters["flop_limit_%"] = 100 * measured.flop_seconds / seconds;
  state.counters["byte_limit_%"] = 100 * measured.byte_seconds / seconds;
  state.SetLabel(run.description());
  measuring.note(fmt::format("{:<8} {}", type.layer().name, to_string(pass)), measured);
} catch (const std::exception& failure) {
  measuring.failed = true;
  state.SkipWithError(failure.what());
}

void add_benchmarks(CaseType& type, Measuring& measuring) {
  for (const tandem_layout_option& option : type.options()) {
    const std::string layouts = layout_name(option.input) + "-" + layout_name(option.output);
    for (const TimedPass& pass : type.passes()) {
      const std::string name = fmt::format("{}/{}/{}", type.layer().name, layouts, to_string(pass));
      benchmark::RegisterBenchmark(name.c_str(),
                                   [&, option, layouts, pass](benchmark::State& state) {
                                     time_pass(state, measuring, type, option, layouts, pass);
                                   })
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
}

// To stderr, since stdout may be JSON or CSV.
void print_losses(const Measuring& measuring) {
  std::vector<std::pair<std::string, Fastest>> rows(measuring.fastest.begin(),
                                                    measuring.fastest.end());
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.second.lost() > b.second.lost(); });
  fmt::print(stderr, "\nmost time lost first, each pass in its fastest layout:\n");
  fmt::print(stderr, "{:<26} {:<18} {:>9} {:>9} {:>9}  {:>9}\n", "layer and pass", "layout", "ms",
             "limit", "lost", "of limit");
  for (const auto& [name, row] : rows) {
    fmt::print(stderr, "{:<26} {:<18} {:>9.2f} {:>9.2f} {:>9.2f}  {:>9.2f} ({})\n", name,
               row.layouts, row.seconds * 1e3, row.limit() * 1e3, row.lost() * 1e3,
               row.limit() / row.seconds, row.flop_seconds > row.byte_seconds ? "FLOP" : "bytes");
  }
}

int run(int argc, char** argv) {
  CLI::App app("Times layers and passes against this machine's limits");
  int64_t batch = 128;
  auto threads = static_cast<int32_t>(std::max(1U, std::thread::hardware_concurrency()));
  std::string precision = "float32";
  app.add_option("--batch", batch, "Images per batch")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  app.add_option("--threads", threads, "Threads of a layer")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  app.add_option("--precision", precision, "float32 or bfloat16, of tensors")
      ->capture_default_str();
  app.footer(
      "--benchmark_filter=conv3/.*/forward, --benchmark_list_tests, --benchmark_out=FILE\n"
      "--benchmark_out_format=json|csv and the other options of Google Benchmark are its own.");
  app.allow_extras();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& failure) {
    return app.exit(failure) == 0 ? 0 : 1;
  }
  // Long enough for passes of milliseconds; a later option of the user replaces it.
  std::vector<std::string> rest{argv[0], "--benchmark_min_time=0.1"};
  for (const std::string& extra : app.remaining()) rest.push_back(extra);
  std::vector<char*> raw;
  for (std::string& argument : rest) raw.push_back(argument.data());
  int count = static_cast<int>(raw.size());
  benchmark::Initialize(&count, raw.data());
  if (benchmark::ReportUnrecognizedArguments(count, raw.data())) return 1;

  const int32_t dtype = parse_precision(precision);
  Registry registry;
  registry.scan(TANDEM_PLUGIN_DIR);
  Measuring measuring;
  measuring.dtype = dtype;
  measuring.threads = threads;
  cpu::set_team_size(threads);  // of oneDNN on this thread
  std::vector<std::unique_ptr<CaseType>> types;
  for (LayerCase& layer : layer_cases(batch)) {
    types.push_back(std::make_unique<CaseType>(registry, std::move(layer), dtype));
    if (types.back()->knows_dtype()) {
      add_benchmarks(*types.back(), measuring);
    } else {
      fmt::print(stderr, "{}: {} does not have {}\n", types.back()->layer().name,
                 types.back()->layer().type, precision);
    }
  }
  if (benchmark::RunSpecifiedBenchmarks() == 0) return 1;
  measuring.last.reset();
  if (!measuring.fastest.empty()) print_losses(measuring);
  return measuring.failed ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) try {
  return run(argc, argv);
} catch (const std::exception& failure) {
  fmt::print(stderr, "bench_layers: {}\n", failure.what());
  return 1;
}
