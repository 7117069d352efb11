// Measures what one stalled read costs: some steps of every strategy fed by the loader's ring,
// without and with a read that takes a second, by the clock. While one buffer of the ring waits for
// its read, the others hold batches if the ring was full, and that many steps are not delayed.
// Decoders that are no faster than the steps do not fill the ring.
//   bench_stall [--costs COSTS] [--net alexnet] [--devices 2] [--batch-per-device 32] [--steps 30]
//               [--link bandwidth=1GB/s,latency=10us] [--strategy NAME]
// With COSTS (what `tandem profile --costs` wrote for that net) compute is paced, else it is done.
#include <CLI/CLI.hpp>
#include <chrono>
#include <deque>

#include "bench/paced_frame.h"
#include "core/data/dataset.h"
#include "core/model/adapted/models.h"

namespace {

using namespace tandem;
using Clock = std::chrono::steady_clock;

constexpr int first_timed = 2;

struct Arguments {
  std::string net = "alexnet", costs, link = "bandwidth=1GB/s,latency=10us", strategy;
  int devices = 2, steps = 30;
  int64_t batch_per_device = 32, milliseconds = 1000;
};

// The trainer's loop: two steps in flight, a batch returned when its copies are done.
double train(Session& session, const Dataset& data, const LoaderOptions& loading, int steps) {
  Phase& phase = session.training();
  Loader loader(data, loading, session.allocator());
  std::deque<int64_t> pending;
  std::optional<Batch> held;
  Clock::time_point begin = Clock::now();
  for (int64_t step = 0; step < steps; ++step) {
    const Batch batch = loader.next();
    if (step == first_timed) begin = Clock::now();  // without what is prepared at the first use
    const tandem_step control{
        1, static_cast<uint64_t>(step), 1e-4F, static_cast<float>(batch.samples), 0, 0};
    std::memcpy(batch.memory, &control, sizeof control);
    while (pending.size() >= 2) {
      phase.executor->wait(pending.front());
      pending.pop_front();
    }
    phase.executor->issue(step, {{phase.batch_buffer, batch.memory}});
    pending.push_back(step);
    if (held) {
      for (const int task : phase.input_tasks) phase.executor->wait_task(held->number, task);
      loader.release(*held);
    }
    held = batch;
  }
  phase.executor->drain();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  loader.release(*held);
  return seconds;
}

class Bench {
 public:
  explicit Bench(const Arguments& arguments)
      : arguments_(arguments),
        registry_(Registry::with_defaults()),
        net_(read_net(find_net(arguments.net))),
        link_(parse_link(arguments.link)) {
    (void)registry_.load(TANDEM_STALLING_DATA);
    if (!arguments.costs.empty()) costs_ = CostTable::read(arguments.costs, Roofline{});
  }

  void run() {
    if (!arguments_.strategy.empty()) (void)built_in_strategies().at(arguments_.strategy);
    fmt::print("net {}, {} a device on cpu:{}, {}, {} steps, ring of {}, a read of {} ms\n\n",
               arguments_.net, arguments_.batch_per_device, arguments_.devices,
               costs_ ? "paced" : "real", arguments_.steps, ring_slots, arguments_.milliseconds);
    fmt::print(
        "| strategy | step ms | steps, s | with the stalled read, s | lost, ms | a full ring loses "
        "at "
        "most (the read less {} steps), ms | hidden, steps | load "
        "|\n|---|---|---|---|---|---|---|---|\n",
        ring_slots - 1);
    for (const Strategy& strategy : built_in_strategies()) {
      if (!arguments_.strategy.empty() && strategy.name != arguments_.strategy) continue;
      row(strategy.name);
    }
  }

 private:
  void row(const std::string& strategy) {
    SessionOptions o;
    o.devices = fmt::format("cpu:{}", arguments_.devices);
    o.strategy = strategy;
    o.machine.link = link_;
    o.machine.paced = costs_.has_value();
    o.batch = arguments_.batch_per_device * arguments_.devices;
    o.data = net_.input_shape();
    o.data.n = 1;
    o.testing = false;
    o.costs = costs_;
    const std::string load = bench::load();
    const double plain = once(o, -1), stalled = once(o, arguments_.steps / 2);
    const double step = plain / (arguments_.steps - first_timed), lost = stalled - plain;
    const double read = static_cast<double>(arguments_.milliseconds) / 1e3;
    fmt::print("| {} | {:.1f} | {:.2f} | {:.2f} | {:.0f} | {:.0f} | {:.1f} | {} |\n", strategy,
               1e3 * step, plain, stalled, 1e3 * lost,
               1e3 * std::max(0.0, read - (ring_slots - 1) * step), (read - lost) / step, load);
    std::fflush(stdout);
  }

  // The first sample of that batch is read slowly; -1: none is.
  double once(const SessionOptions& o, int64_t batch) {
    Session session(registry_, net_, o);
    session.set_initial_weights(1);
    DatasetOptions data;
    data.source = "stalling";
    data.shape = session.net().tensors[size_t(session.net().data)].shape;
    data.shape.n = 1;
    data.parameters["milliseconds"] = fmt::format("{}", arguments_.milliseconds);
    if (batch >= 0) data.parameters["stalled"] = fmt::format("{}", batch * o.batch);
    LoaderOptions loading;
    loading.batch = o.batch;
    loading.shuffle = false;
    loading.threads = 2;
    return train(session, Dataset(registry_, data), loading, arguments_.steps);
  }

  Arguments arguments_;
  Registry registry_;
  NetDefinition net_;
  LinkSpec link_;
  std::optional<CostTable> costs_;
};

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Measures what a read that takes a second costs each strategy"};
  app.add_option("--costs", arguments.costs, "Pace compute by what `tandem profile --costs` wrote");
  app.add_option("--net", arguments.net)->capture_default_str();
  app.add_option("--devices", arguments.devices)
      ->check(CLI::Range(2, max_devices))
      ->capture_default_str();
  app.add_option("--batch-per-device", arguments.batch_per_device)->capture_default_str();
  app.add_option("--steps", arguments.steps)->check(CLI::Range(10, 10000))->capture_default_str();
  app.add_option("--milliseconds", arguments.milliseconds)->capture_default_str();
  app.add_option("--link", arguments.link)->capture_default_str();
  app.add_option("--strategy", arguments.strategy, "Only this one");
  CLI11_PARSE(app, argc, argv);
  return bench::run("bench_stall", [&] { Bench(arguments).run(); });
}
