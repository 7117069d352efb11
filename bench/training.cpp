// bench_training NET [--batch N] [--precision float32|bfloat16] [--steps 5] [--warm-up 3]
//                [--devices cpu] [--write FOLDER]
// bench_training --peak [--threads N]
// Tandem's half of training.py: trains on one batch and prints JSON: images per second by the
// host's clock (median over the steps), the loss of every step, the peak memory of the process.
// --write writes the initial weights and the batch for the other half, and runs nothing.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/peak.h"
#include "core/base/error.h"
#include "core/base/random.h"
#include "core/model/initial_weights.h"
#include "core/model/models.h"
#include "core/train/measure.h"
#include "core/train/pretrained.h"
#include "core/train/safetensors.h"

namespace {

using namespace tandem;
using nlohmann::json;

struct Arguments {
  std::string net, precision = "float32", devices = "cpu", write;
  int64_t batch = 0;
  int steps = 5, warm_up = 3, threads = 0;
  bool peak = false;
};

constexpr float rate = 1e-2F;  // momentum 0.9, decay 0.0005, as in the other half

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
  options.strategy = "sequential";
  options.batch = a.batch > 0 ? a.batch : definition.batch_size(TANDEM_TRAIN).value_or(32);
  options.data = definition.input_shape();
  options.data.n = 1;
  options.precision = parse_precision(a.precision);
  options.machine.threads = a.threads;
  options.testing = false;
  options.rule.momentum = 0.9F;
  options.rule.weight_decay = 0.0005F;
  options.executor.trace = false;
  return options;
}

void write_shared(const Arguments& a, const Net& net) {
  const std::filesystem::path folder(a.write);
  std::filesystem::create_directories(folder);
  for (const char* name : {"weights.safetensors", "batch.safetensors"}) {
    std::filesystem::remove(folder / name);
  }
  write_weights(folder / "weights.safetensors", net, initial_weights(net, 1));
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
  session.set_initial_weights(1);
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
          {"weights", trained_weights(phase.net)},
          {"operations", product_operations(phase.net) / static_cast<double>(phase.net.batch)},
          {"seconds", seconds},
          {"losses", losses},
          {"peak_bytes", peak_memory_bytes()}};
}

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
  const SessionOptions options = session_options(a, definition);
  if (!a.write.empty()) {
    NetOptions net;
    net.batch = options.batch;
    net.data = options.data;
    write_shared(a, build_net(definition, registry, net));
    return {{"written", a.write}};
  }
  Session session(registry, definition, options);
  return run(a, session);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Tandem's half of bench/training.py"};
  app.add_option("net", arguments.net, "A model's name or a prototxt file");
  app.add_option("--batch", arguments.batch);
  app.add_option("--precision", arguments.precision)->capture_default_str();
  app.add_option("--devices", arguments.devices)->capture_default_str();
  app.add_option("--threads", arguments.threads, "Of all devices together (default: all cores)");
  app.add_option("--steps", arguments.steps)->capture_default_str();
  app.add_option("--warm-up", arguments.warm_up)->capture_default_str();
  app.add_option("--write", arguments.write, "Write weights and batch to this folder instead");
  app.add_flag("--peak", arguments.peak, "Measure the machine instead");
  CLI11_PARSE(app, argc, argv);
  try {
    fmt::print("{}\n", answer(arguments).dump());
    return 0;
  } catch (const std::exception& failure) {
    fmt::print(stderr, "bench_training: {}\n", failure.what());
    return 1;
  }
}
