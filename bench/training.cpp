// bench_training NET [--batch N] [--precision float32|bfloat16] [--steps 5] [--warm-up 3]
//                [--devices cpu] [--strategy sequential] [--recompute] [--weights FILE]
//                [--write FOLDER]
// mpirun -n 2 bench_training NET --devices cpu:1 --threads 1 --strategy auto ...
// bench_training --peak [--threads N]
// Tandem's half of training.py: trains on one batch and prints JSON: images per second by the
// host's clock (median over the steps), the loss of every step, the peak memory of the process.
// --write writes the initial weights and the batch for the other half, and runs nothing. As ranks
// of a launcher's job, --devices and --threads are each rank's, the batch is that of all, and rank
// 0 prints; --strategy auto chooses as `tandem train` does.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/peak.h"
#include "core/base/error.h"
#include "core/base/numbers/random.h"
#include "core/formats/safetensors.h"
#include "core/model/adapted/models.h"
#include "core/model/net/initial_weights.h"
#include "core/model/passes/build_net.h"
#include "core/ranks/rank_links.h"
#include "core/ranks/ranks.h"
#include "core/run/folder/run_record.h"
#include "core/run/weights/pretrained.h"
#include "core/session/choose_strategy.h"
#include "core/session/measure.h"
#include "core/use/export_weights.h"

namespace {

using namespace tandem;
using nlohmann::json;

struct Arguments {
  std::string net, precision = "float32", devices = "cpu", strategy = "sequential", write, weights;
  int64_t batch = 0;
  int steps = 5, warm_up = 3, threads = 0;
  bool peak = false, recomputes = false;
};

constexpr float rate = 1e-2F;  // momentum 0.9, decay 0.0005, as in the other half
constexpr double watchdog_seconds = 120;

// Noise as pixels, every class in turn, in the memory layout of a batch on the host.
class Batch {
 public:
  Batch(const Net& net, int64_t classes) {
    sample_ = net.tensors[size_t(net.data)].shape;
    sample_.n = 1;
    layout_ = make_batch_layout(net.batch, sample_, {});
    Random random(1, stream_of("bench batch"));
    for (int64_t i = 0; i < net.batch; ++i) labels_.push_back(static_cast<float>(i % classes));
    pixels_.resize(size_t(net.batch * element_count(sample_)));
    for (float& pixel : pixels_) {
      pixel = (static_cast<float>(random.bits() >> 24) - 127.5F) / 64.0F;
    }
  }

  [[nodiscard]] const BatchLayout& layout() const { return layout_; }
  void fill(std::byte* memory) const {
    std::memset(memory, 0, size_t(layout_.bytes));
    std::memcpy(memory + layout_.label_offset, labels_.data(), labels_.size() * sizeof(float));
    std::memcpy(memory + layout_.data_offset, pixels_.data(), pixels_.size() * sizeof(float));
  }
  void write(const std::filesystem::path& file) const {
    const int64_t rows = layout_.rows;
    write_safetensors(file,
                      {{"data", {rows, sample_.c, sample_.h, sample_.w}, pixels_.data()},
                       {"label", {rows}, labels_.data()}},
                      {});
  }

 private:
  Shape sample_;
  BatchLayout layout_;
  std::vector<float> labels_, pixels_;
};

int64_t classes_of(const Net& net) {
  return net.prediction < 0 ? 2 : net.tensors[size_t(net.prediction)].shape.c;
}

// Multiply-adds of convolutions and inner products, each two operations, of the passes that run.
double product_operations(const Net& net) {
  double sum = 0;
  for (size_t i = 0; i < net.layers.size(); ++i) {
    const Layer& layer = net.layers[i];
    const std::string type = layer.type->name;
    if (type != "Convolution" && type != "InnerProduct") continue;
    const tandem_layer_cost cost = net.cost(static_cast<int>(i), net.batch);
    const double one = cost.backward_data_flops;  // forward's, without the bias
    sum += one * (1 + (layer.wants_backward_data ? 1 : 0) + (layer.wants_backward_weights ? 1 : 0));
  }
  return sum;
}

int64_t trained_weights(const Net& net) {
  int64_t count = 0;
  for (const WeightArray& weight : net.weights) count += weight.trained() ? weight.count : 0;
  return count;
}

double total_loss(const Net& net, const std::vector<float>& scalars) {
  double sum = 0;
  for (size_t i = 0; i < scalars.size(); ++i) {
    sum += net.scalars[i].loss_weight * static_cast<double>(scalars[i]);
  }
  return sum;
}

SessionOptions session_options(const Arguments& a, const NetDefinition& definition) {
  SessionOptions options;
  options.devices = a.devices;
  options.strategy = a.strategy;
  options.batch = a.batch > 0 ? a.batch : definition.batch_size(TANDEM_TRAIN).value_or(32);
  options.data = definition.input_shape();
  options.data.n = 1;
  options.precision = parse_precision(a.precision);
  options.machine.threads = a.threads;
  options.testing = false;
  options.recomputes = a.recomputes;
  options.rule.momentum = 0.9F;
  options.rule.weight_decay = 0.0005F;
  options.executor.trace = false;
  return options;
}

// Of one rank's share of the batch, and what is the fastest with such costs and links.
void choose_with_costs(Registry& registry, const NetDefinition& definition,
                       SessionOptions& options) {
  const int64_t count = options.ranks->size();
  SessionOptions alone = options;
  alone.ranks = nullptr;
  alone.strategy = "sequential";
  alone.batch = (options.batch + count - 1) / count;
  SessionOptions measured = alone;
  measure_costs(registry, definition, alone, 3, measured);
  SessionOptions whole = options;
  whole.ranks = nullptr;
  whole.devices = fmt::format("cpu:{}", count);
  whole.machine.topology = options.rank_topology;
  whole.costs = options.costs = measured.costs;
  whole.tuning = options.tuning = measured.tuning;
  fmt::print(stderr, "{}\n", choose_strategy(registry, definition, whole));
  options.strategy = whole.strategy;
  options.strategy_options = whole.strategy_options;
}

void choose_for_ranks(Registry& registry, const NetDefinition& definition,
                      const Communicator& ranks, SessionOptions& options) {
  const DeviceSpec spec = parse_devices(options.devices, registry);
  if (spec.count() != 1) {
    throw error("--devices {}: each rank has one device here, e.g. cpu:1", options.devices);
  }
  options.ranks = &ranks;
  options.finds_links = false;
  if (!is_auto(options)) return;
  options.rank_topology = measured_topology(ranks, registry, spec, options.machine.threads);
  if (ranks.rank() == 0) choose_with_costs(registry, definition, options);
  RunRecord record;
  record.options.strategy = options.strategy;
  record.options.strategy_options = options.strategy_options;
  const std::string text = ranks.broadcast_text(to_json(record), "the strategy");
  record = run_record_from_json(text, "of rank 0");
  options.strategy = record.options.strategy;
  options.strategy_options = record.options.strategy_options;
}

// "layerwise --reduce ring"
std::string strategy_text(const SessionOptions& options) {
  const std::string more =
      to_text(built_in_strategies().at(options.strategy), options.strategy_options);
  return more.empty() ? options.strategy : options.strategy + " " + more;
}

std::vector<float> first_weights(const Arguments& a, const Net& net) {
  std::vector<float> values = initial_weights(net, 1);
  if (a.weights.empty()) return values;
  const Pretrained report = read_pretrained(a.weights, net, &values);
  if (!report.missing.empty()) {
    throw error("'{}' has no weights for layer '{}'", a.weights, report.missing.front());
  }
  return values;
}

void write_shared(const Arguments& a, const Net& net) {
  const std::filesystem::path folder(a.write);
  std::filesystem::create_directories(folder);
  for (const char* name : {"weights.safetensors", "batch.safetensors"}) {
    std::filesystem::remove(folder / name);
  }
  write_weights(folder / "weights.safetensors", net, first_weights(a, net));
  Batch(net, classes_of(net)).write(folder / "batch.safetensors");
}

json run(const Arguments& a, Session& session) {
  using Clock = std::chrono::steady_clock;
  Phase& phase = session.training();
  const Loader::Allocator allocator = session.allocator();
  std::byte* memory = nullptr;
  {
    const Batch batch(phase.net, classes_of(phase.net));
    memory = static_cast<std::byte*>(allocator.allocate(batch.layout().bytes));
    batch.fill(memory);
  }
  session.set_weights(first_weights(a, phase.net));
  const int all = a.warm_up + a.steps;
  std::vector<double> losses, seconds;
  Clock::time_point last = Clock::now();
  const auto finish = [&](int step) {
    phase.executor->wait(step);
    const Clock::time_point now = Clock::now();
    losses.push_back(total_loss(phase.net, phase.scalars(step)));
    if (step >= a.warm_up) seconds.push_back(std::chrono::duration<double>(now - last).count());
    last = now;
  };
  for (int step = 0; step < all; ++step) {
    if (step >= 2) finish(step - 2);
    const tandem_step control{
        1, static_cast<uint64_t>(step), rate, static_cast<float>(phase.net.batch), 0, 0};
    std::memcpy(memory, &control, sizeof control);
    phase.executor->issue(step, {{phase.batch_buffer, memory}});
    for (const int task : phase.input_tasks) phase.executor->wait_task(step, task);
  }
  for (int step = std::max(0, all - 2); step < all; ++step) finish(step);
  phase.executor->drain();
  allocator.free(memory);
  return {{"program", "tandem"},
          {"batch", phase.net.batch},
          {"precision", a.precision},
          {"strategy", strategy_text(session.options())},
          {"weights", trained_weights(phase.net)},
          {"operations", product_operations(phase.net) / static_cast<double>(phase.net.batch)},
          {"seconds", seconds},
          {"losses", losses},
          {"peak_bytes", peak_memory_bytes()}};
}

// Null on ranks other than 0.
json answer(const Arguments& a) {
  if (a.peak) {
    const int threads =
        a.threads > 0 ? a.threads : static_cast<int>(std::thread::hardware_concurrency());
    const bench::Peak peak = bench::measure_peak(threads);
    return {{"threads", threads}, {"float32", peak.float32}, {"bfloat16", peak.bfloat16}};
  }
  if (a.net.empty()) throw error("name a net, or ask for --peak");
  if (a.steps < 1 || a.warm_up < 1) throw error("--steps and --warm-up: at least 1 each");
  Registry registry = Registry::with_defaults();
  const NetDefinition definition = read_net(find_net(a.net));
  SessionOptions options = session_options(a, definition);
  if (!a.write.empty()) {
    NetOptions net;
    net.batch = options.batch;
    net.data = options.data;
    write_shared(a, build_net(definition, registry, net));
    return {{"written", a.write}};
  }
  const std::unique_ptr<Communicator> ranks = open_ranks(registry, 0, watchdog_seconds);
  return as_rank(ranks.get(), [&] {
    if (ranks != nullptr) {
      choose_for_ranks(registry, definition, *ranks, options);
    } else if (is_auto(options)) {
      fmt::print(stderr, "{}\n", choose_strategy(registry, definition, options));
    }
    Session session(registry, definition, options);
    json result = run(a, session);
    return ranks != nullptr && ranks->rank() > 0 ? json() : result;
  });
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Tandem's half of bench/training.py"};
  app.add_option("net", arguments.net, "A model's name or a prototxt file");
  app.add_option("--batch", arguments.batch);
  app.add_option("--precision", arguments.precision)->capture_default_str();
  app.add_option("--devices", arguments.devices)->capture_default_str();
  app.add_option("--strategy", arguments.strategy, "... or auto")->capture_default_str();
  app.add_flag("--recompute", arguments.recomputes, "Compute activations again: less memory");
  app.add_option("--threads", arguments.threads, "Of all devices together (default: all cores)");
  app.add_option("--steps", arguments.steps)->capture_default_str();
  app.add_option("--warm-up", arguments.warm_up)->capture_default_str();
  app.add_option("--weights", arguments.weights, "Begin with these (default: drawn)");
  app.add_option("--write", arguments.write, "Write weights and batch to this folder instead");
  app.add_flag("--peak", arguments.peak, "Measure the machine instead");
  CLI11_PARSE(app, argc, argv);
  try {
    const json result = answer(arguments);
    if (!result.is_null()) fmt::print("{}\n", result.dump());
    return 0;
  } catch (const std::exception& failure) {
    fmt::print(stderr, "bench_training: {}\n", failure.what());
    return 1;
  }
}
