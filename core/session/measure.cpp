#include "core/session/measure.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "core/base/error.h"
#include "core/base/numbers/random.h"
#include "core/base/text/strings.h"
#include "core/model/net/net.h"
#include "core/schedule/cost/costs_of_net.h"
#include "core/schedule/cost/step_model.h"
#include "core/schedule/strategies/common/stages.h"

namespace tandem {
namespace {

// One batch in pinned memory: noise as pixels, every class in turn.
class StandingBatch {
 public:
  StandingBatch(Session& session, const Phase& phase)
      : allocator_(session.allocator()), is_virtual_(session.machine().has_virtual_time()) {
    const Net& net = phase.net;
    Shape sample = net.tensors[size_t(net.data)].shape;
    sample.n = 1;
    std::vector<Shape> more;
    for (const int input : net.more_inputs) {
      more.push_back(net.tensors[size_t(input)].shape);
    }
    layout_ = make_batch_layout(net.batch, sample, more, phase.pixels);
    memory_ = static_cast<std::byte*>(allocator_.allocate(layout_.bytes));
    if (is_virtual_) return;  // there is no memory at addresses on sim
    auto* labels = reinterpret_cast<float*>(memory_ + layout_.label_offset);
    int64_t classes = 2;
    if (net.prediction >= 0) classes = net.tensors[size_t(net.prediction)].shape.c;
    for (int64_t i = 0; i < net.batch; ++i) labels[i] = static_cast<float>(i % classes);
    Random random(1, stream_of("standing batch"));
    std::memset(memory_ + layout_.data_offset, 0, size_t(layout_.bytes - layout_.data_offset));
    const int64_t count = net.batch * element_count(sample);
    auto* floats = reinterpret_cast<float*>(memory_ + layout_.data_offset);
    auto* bytes = reinterpret_cast<uint8_t*>(floats);
    uint32_t bits = 0;
    for (int64_t i = 0; i < count; ++i, bits >>= 8) {
      if (i % 4 == 0) bits = random.bits();
      if (phase.pixels == PixelForm::bytes) {
        bytes[i] = static_cast<uint8_t>(bits & 0xff);
      } else {
        floats[i] = static_cast<float>(bits & 0xff) - 127.5F;
      }
    }
  }
  ~StandingBatch() { allocator_.free(memory_); }
  StandingBatch(const StandingBatch&) = delete;
  StandingBatch& operator=(const StandingBatch&) = delete;

  std::byte* for_step(int64_t step) {
    if (!is_virtual_) {
      const tandem_step control{
          1, static_cast<uint64_t>(step), 1e-4F, static_cast<float>(layout_.rows), 0, 0};
      std::memcpy(memory_, &control, sizeof(control));
    }
    return memory_;
  }

 private:
  Loader::Allocator allocator_;
  const bool is_virtual_;
  BatchLayout layout_;
  std::byte* memory_ = nullptr;
};

double end_of(const std::vector<TraceEvent>& step) {
  double end = 0;
  for (const TraceEvent& event : step) end = std::max(end, event.end);
  return end;
}

std::vector<TraceEvent> step_of(const std::vector<TraceEvent>& events, int64_t micro_batch) {
  std::vector<TraceEvent> result;
  std::copy_if(events.begin(), events.end(), std::back_inserter(result),
               [&](const TraceEvent& event) { return event.micro_batch == micro_batch; });
  return result;
}

StepParts parts_of(const std::vector<StageTime>& stages) {
  StepParts parts;
  std::map<Stage, double> duration, busy;
  for (const StageTime& stage : stages) {
    duration[stage.stage] = std::max(duration[stage.stage], stage.duration);
    busy[stage.stage] = std::max(busy[stage.stage], stage.busy);
  }
  parts.forward = duration[Stage::forward];
  parts.backward_fc = duration[stages::backward_fc];
  parts.backward_conv = duration[stages::backward_conv];
  parts.fc_gradients = busy[stages::send_fc_gradients] + busy[stages::update_fc];
  parts.conv_gradients = busy[stages::send_conv_gradients] + busy[stages::update_conv];
  parts.broadcast = busy[stages::broadcast];
  return parts;
}

// Seconds that this process has run, to 0.01 s; 0 where the system does not report it.
double seconds_since_start() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  // The command, field 2, is in parentheses and may hold anything; starttime is field 22 (proc(5)).
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) fields >> field;
  int64_t ticks = 0;
  timespec now{};
  if (!fields || !parse_integer(field, &ticks) || clock_gettime(CLOCK_BOOTTIME, &now) != 0)
    return 0;
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 -
         static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// The traces of `count` steps, or of as many as the watch lets run. Writes into `result` when the
// first of them was issued, and the median distance between their ends from step `first` on, by the
// host's clock.
std::vector<std::vector<TraceEvent>> run_steps(Session& session, StandingBatch& batch, int count,
                                               size_t first, const std::string& what,
                                               Measurement& result) {
  Phase& phase = session.training();
  result.first_step_at = session.machine().has_virtual_time() ? 0 : seconds_since_start();
  std::vector<std::vector<TraceEvent>> traces;
  std::vector<std::chrono::steady_clock::time_point> done_at;
  const WorkWatch watch = session.machine().has_virtual_time() || session.options().ranks != nullptr
                              ? WorkWatch()
                              : session.options().watch;
  for (int64_t step = 0; step < count; ++step) {
    if (step >= 2) {
      phase.executor->wait(step - 2);
      done_at.push_back(std::chrono::steady_clock::now());
      traces.push_back(phase.executor->trace(step - 2));
      if (!goes_on(watch, {what, step - 1, count})) {
        count = static_cast<int>(step);
        break;
      }
    }
    phase.executor->issue(step, {{phase.batch_buffer, batch.for_step(step)}});
    // The step's control lies in the one batch, which may be written again when it has been copied.
    // In virtual time nothing is copied.
    if (session.machine().has_virtual_time()) continue;
    for (const int task : phase.input_tasks) phase.executor->wait_task(step, task);
  }
  phase.executor->drain();
  (void)goes_on(watch, {what, count, count});
  for (auto step = static_cast<int64_t>(traces.size()); step < count; ++step) {
    traces.push_back(phase.executor->trace(step));
  }
  std::vector<double> walls;
  for (size_t i = first; i < done_at.size(); ++i) {
    walls.push_back(std::chrono::duration<double>(done_at[i] - done_at[i - 1]).count());
  }
  std::sort(walls.begin(), walls.end());
  if (!walls.empty()) result.wall_seconds = walls[walls.size() / 2];
  return traces;
}

// Runs the same steps once more as captured graphs, which have an end time but no times of tasks.
void measure_graphs(Phase& phase, StandingBatch& batch, int64_t first, int steps,
                    Measurement& result) {
  constexpr int64_t capturing = 8;  // the steps of a round, and some after them
  phase.executor->trace_only(0, 0);
  std::vector<double> ends;
  const int64_t begin = first + capturing, end = begin + steps + 1;
  for (int64_t step = first; step < end; ++step) {
    if (step >= begin + 2) {
      phase.executor->wait(step - 2);
      ends.push_back(phase.executor->end_time(step - 2));
    }
    phase.executor->issue(step, {{phase.batch_buffer, batch.for_step(step)}});
    for (const int task : phase.input_tasks) phase.executor->wait_task(step, task);
  }
  phase.executor->drain();
  if (!phase.executor->ran_as_graph(end - 1)) return;
  for (int64_t step = std::max(begin, end - 2); step < end; ++step) {
    ends.push_back(phase.executor->end_time(step));
  }
  std::vector<double> times;
  for (size_t i = 1; i < ends.size(); ++i) times.push_back(ends[i] - ends[i - 1]);
  std::sort(times.begin(), times.end());
  result.live_step_seconds = result.step_seconds;
  result.step_seconds = times[times.size() / 2];
  result.fastest = times.front();
  result.slowest = times.back();
}

Measurement modelled(const Session& session, Phase& phase) {
  const MachineOptions& machine = session.options().machine;
  if (phase.model == nullptr) {
    phase.model = std::make_unique<StepModel>(phase.net, phase.plan, session.costs(), machine.link,
                                              machine.topology.get());
  }
  const StepModel& model = *phase.model;
  Measurement result;
  const StepTimes times =
      model.in_order(model.given_order(), session.options().executor.communication);
  result.step_seconds = result.fastest = result.slowest = times.step_seconds;
  for (size_t task = 0; task < times.tasks.size(); ++task) {
    result.median_step.push_back(
        {static_cast<int>(task), 0, times.tasks[task].start, times.tasks[task].end});
  }
  result.events = result.median_step;
  result.stages = stage_times(phase.plan, result.median_step);
  result.parts = parts_of(result.stages);
  result.images_per_second = static_cast<double>(phase.net.batch) / result.step_seconds;
  result.without_communication_seconds = model.in_order(model.given_order(), false).step_seconds;
  return result;
}

}  // namespace

double StepParts::two_phase(bool hidden_broadcast) const {
  return forward + backward_fc + std::max(backward_conv, fc_gradients) + conv_gradients +
         (hidden_broadcast ? 0 : broadcast);
}

double StepParts::sequential() const {
  return forward + backward_fc + backward_conv + fc_gradients + conv_gradients + broadcast;
}

Measurement measure(Session& session, int warm_up, int steps, const std::string& what) {
  Phase& phase = session.training();
  if (phase.executor == nullptr) return modelled(session, phase);
  StandingBatch batch(session, phase);
  if (!session.machine().has_virtual_time()) session.set_initial_weights(1);
  const Communicator* ranks = session.options().ranks;
  ClockShift shift;
  if (ranks != nullptr) {
    const MachineClock clock(session);
    shift = compare_clocks(
        *ranks, [&] { return clock.now(); }, clock.uncertainty());
  }
  Measurement result;
  const auto first = size_t(std::max(1, warm_up));
  const std::vector<std::vector<TraceEvent>> traces =
      run_steps(session, batch, warm_up + steps, first, what, result);
  std::vector<std::pair<double, size_t>> times;
  for (size_t i = first; i < traces.size(); ++i) {
    times.emplace_back(end_of(traces[i]) - end_of(traces[i - 1]), i);
    result.events.insert(result.events.end(), traces[i].begin(), traces[i].end());
  }
  result.steps = static_cast<int>(times.size());
  if (times.empty()) throw error("{}: stopped before a step was measured", what);
  std::sort(times.begin(), times.end());
  const auto& [median_seconds, median_step] = times[times.size() / 2];
  result.step_seconds = median_seconds;
  result.fastest = times.front().first;
  result.slowest = times.back().first;
  result.median_step = traces[median_step];
  if (ranks != nullptr) {
    JointTrace joint = gather_traces(*ranks, {&phase.plan, result.events, {}, shift});
    if (ranks->rank() == 0) result.of_ranks = std::move(joint);
  }
  result.stages = stage_times(result.shown_plan(phase.plan),
                              step_of(result.shown_events(), static_cast<int64_t>(median_step)));
  result.parts = parts_of(result.stages);
  if (phase.executor->has_graphs() && result.steps == steps) {
    measure_graphs(phase, batch, warm_up + steps, steps, result);
  }
  result.graphs_given_up = phase.executor->graphs_given_up();
  result.images_per_second = static_cast<double>(phase.net.batch) / result.step_seconds;
  return result;
}

CostTable costs_of(const Session& session, const Net& net, const Plan& plan,
                   const std::vector<TraceEvent>& events) {
  struct Sum {
    double seconds = 0, rows = 0;
    int64_t count = 0, bytes = 0;
  };
  std::map<std::string, Sum> sums;
  std::set<int> measured;  // layers
  for (const TraceEvent& event : events) {
    const Task& task = plan.tasks[size_t(event.task)];
    const std::string key = cost_key(net, plan, task);
    if (key.empty()) continue;
    Sum& sum = sums[key];
    sum.seconds += event.end - event.start;
    ++sum.count;
    if (const auto* work = std::get_if<LayerWork>(&task.work)) {
      const PlanBinding& binding = plan.bindings[size_t(work->binding)];
      measured.insert(binding.layer);
      sum.rows += static_cast<double>(binding.rows.count()) * slice_fraction(net, binding);
    }
    sum.bytes += cost_bytes(plan, task);
  }
  CostTable table(session.costs().roofline());
  for (const int layer : measured) {
    table.set_extents(net.layer(layer).name, extents_of(net, layer));
  }
  for (const auto& [key, sum] : sums) {
    const auto count = static_cast<double>(sum.count);
    table.set(key, {sum.seconds / count, sum.rows / count,
                    static_cast<int64_t>(static_cast<double>(sum.bytes) / count)});
  }
  return table;
}

double step_seconds_without_communication(Registry& registry, const NetDefinition& definition,
                                          SessionOptions options, const Plan& plan, int warm_up,
                                          int steps) {
  options.testing = false;
  options.plan = std::make_shared<const Plan>(plan);
  options.executor.communication = false;
  Session session(registry, definition, options);
  return measure(session, warm_up, steps, "measuring steps without copies between devices")
      .step_seconds;
}

int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

LinkSpec link_of(const Plan& plan, const std::vector<TraceEvent>& events) {
  constexpr int64_t large = 64 << 10, small = 4 << 10;
  double bytes = 0, seconds = 0, least = -1;
  for (const TraceEvent& event : events) {
    const Task& task = plan.tasks[size_t(event.task)];
    const CopyWork* transfer = transfer_of(task);
    if (transfer == nullptr) continue;
    int64_t sum = 0;
    for (const CopySegment& segment : transfer->segments) sum += plan.bytes(segment.source);
    if (sum >= large) {
      bytes += static_cast<double>(sum);
      seconds += event.end - event.start;
    } else if (sum <= small && (least < 0 || event.end - event.start < least)) {
      least = event.end - event.start;
    }
  }
  LinkSpec link;
  if (seconds > 0) link.bandwidth = bytes / seconds;
  link.latency = std::max(0.0, least);
  return link;
}

LinkSpec measure_costs(Registry& registry, const NetDefinition& definition, SessionOptions measured,
                       int steps, SessionOptions& options) {
  measured.rule.micro_batches = 1;  // so that every measured step has an update
  measured.testing = false;
  measured.executor.trace = true;
  measured.executor.graphs = GraphUse::off;
  Session session(registry, definition, measured);
  const Plan& plan = session.training().plan;
  const std::vector<TraceEvent> events = measure(session, 1, steps, "measuring costs").events;
  options.costs = costs_of(session, session.training().net, plan, events);
  options.tuning = session.options().tuning;
  options.machine.topology = session.options().machine.topology;
  return link_of(plan, events);
}

}  // namespace tandem
