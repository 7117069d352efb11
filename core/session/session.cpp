#include "core/session/session.h"

#include <cstring>

#include "core/base/text/strings.h"
#include "core/device/topology.h"
#include "core/model/net/initial_weights.h"
#include "core/model/passes/build_net.h"
#include "core/plugin/host.h"
#include "core/ranks/agreement.h"
#include "core/ranks/ranks.h"
#include "core/schedule/plan/buffers.h"
#include "core/schedule/plan/dependencies.h"
#include "core/schedule/plan/localize.h"
#include "core/schedule/strategies/common/fastest_variant.h"
#include "core/schedule/strategies/strategies.h"

namespace tandem {
namespace {

// A rank that reads a row of the batch reads its label.
std::vector<Interval> rows_read(const Phase& phase, int64_t batch) {
  const BatchLayout layout = make_batch_layout(batch, {});
  const Interval labels{layout.label_offset, layout.label_offset + batch * buffers::float_bytes};
  IntervalSet rows;
  for (const int task : phase.input_tasks) {
    for (const Region& region : phase.plan.tasks[size_t(task)].reads) {
      const int64_t end = region.offset + phase.plan.bytes(region);
      if (region.buffer != phase.batch_buffer || !labels.contains({region.offset, end})) continue;
      rows.add({(region.offset - labels.begin) / buffers::float_bytes,
                (end - labels.begin) / buffers::float_bytes});
    }
  }
  std::vector<Interval> result;
  for (const auto& [begin, end] : rows.intervals()) result.push_back({begin, end});
  return result;
}

DeviceLinks::Ends link_ends(const Plan& plan) {
  DeviceLinks::Ends ends;
  const auto add = [&](const Task& task, const RankMessage& message, bool receives) {
    if (message.by_link) ends[message.channel] = {message.peer, receives, task.streams[0].device};
  };
  for (const Task& task : plan.tasks) {
    if (const auto* send = std::get_if<SendWork>(&task.work)) add(task, *send, false);
    if (const auto* receive = std::get_if<ReceiveWork>(&task.work)) add(task, *receive, true);
  }
  return ends;
}

const char* buffer_of(const StatePlacement& part) {
  return part.is_extended ? buffers::extended_state : buffers::state;
}

const std::byte* results_of(const Phase& phase, const char* name, int64_t micro_batch) {
  const int buffer = phase.plan.find_buffer(name, TANDEM_HOST);
  if (buffer < 0) return nullptr;
  const Buffer& b = phase.plan.buffers[size_t(buffer)];
  return phase.executor->address({buffer, 0, b.bytes}, micro_batch);
}

}  // namespace

std::vector<float> Phase::scalars(int64_t micro_batch) const {
  std::vector<float> values(net.scalars.size());
  const std::byte* at = results_of(*this, buffers::results, micro_batch);
  for (size_t i = 0; at != nullptr && i < values.size(); ++i) {
    std::memcpy(&values[i], at + static_cast<int64_t>(i) * buffers::scalar_bytes, sizeof(float));
  }
  return values;
}

bool Phase::finite(int64_t micro_batch) const {
  int32_t found_inf = 0;
  const std::byte* at = results_of(*this, buffers::results, micro_batch);
  if (at != nullptr) {
    std::memcpy(&found_inf, at + static_cast<int64_t>(net.scalars.size()) * buffers::scalar_bytes,
                sizeof(found_inf));
  }
  return found_inf == 0;
}

const float* Phase::predictions(int64_t micro_batch) const {
  return reinterpret_cast<const float*>(results_of(*this, "predictions", micro_batch));
}

void require_computing(const Registry& registry, const std::string& devices) {
  const std::string kind = parse_devices(devices, registry).kind;
  if (!has_virtual_time(registry.backend(kind))) return;
  throw error(
      "devices '{}' simulate time and compute nothing: use cpu here, and sim with 'tandem plan'",
      devices);
}

Roofline roofline_of(const Machine& machine) {
  const tandem_device_info info = machine.device_info(0);
  Roofline roofline;
  // Real layers reach half of the peak on average. A table that `tandem profile` has measured
  // replaces this.
  if (info.peak_flops > 0) roofline.flops = 0.5 * info.peak_flops;
  if (info.memory_bandwidth > 0) roofline.bandwidth = 0.5 * info.memory_bandwidth;
  return roofline;
}

Session::Session(Registry& registry, const NetDefinition& definition, const SessionOptions& options)
    : registry_(registry), options_(options) {
  const DeviceSpec devices = parse_devices(options_.devices, registry);
  machine_ = std::make_unique<Machine>(registry.backend(devices.kind), devices, options_.machine);
  runtime_ = std::make_unique<Runtime>(*machine_);
  const LinkSpec& link = options_.machine.link;
  const bool is_explicit =
      options_.machine.topology != nullptr || link.bandwidth > 0 || link.latency > 0;
  if (options_.finds_links && !is_explicit) options_.machine.topology = find_topology(*machine_);
  if (!options_.costs) options_.costs.emplace(roofline_of(*machine_));
  share_costs();
  if (options_.training) prepare(training_, definition, TANDEM_TRAIN);
  if (options_.testing) prepare(testing_, definition, TANDEM_TEST);
  if (options_.training && models(training_.plan)) return;
  // Kernels have measured their algorithms by now, which takes memory that is not reserved yet.
  if (options_.training) reserve(training_);
  if (options_.testing) reserve(testing_);
  if (options_.training) finish(training_);
  if (options_.testing) finish(testing_);
}

// Plans depend on the costs, so all ranks take rank 0's.
void Session::share_costs() {
  if (options_.ranks == nullptr) return;
  constexpr const char* what = "the costs of tasks";
  Roofline roofline = options_.costs->roofline();
  for (double* value : {&roofline.flops, &roofline.bandwidth}) {
    options_.ranks->broadcast(value, sizeof(*value), what);
  }
  const std::string table = options_.ranks->broadcast_text(options_.costs->text(), what);
  options_.costs = CostTable::parse(table, "of rank 0", roofline);
}

int Session::first_device() const {
  return options_.ranks == nullptr ? 0 : options_.ranks->rank() * machine_->device_count();
}

bool Session::has_device(int device) const {
  return device >= first_device() && device < first_device() + machine_->device_count();
}

// Replaces the phase's plan, which is for the devices of all ranks, by this rank's part.
void Session::divide(Phase& phase) {
  const uint64_t mine = fingerprint(phase.plan);
  uint64_t of_root = mine;
  options_.ranks->broadcast(&of_root, sizeof(of_root), "the plan's hash");
  if (mine != of_root) {
    throw error(
        "its plan of the {} steps is not that of rank 0: are the options, and the versions of "
        "tandem and of its plugins, the same on all hosts?",
        &phase == &training_ ? "training" : "testing");
  }
  const DeviceRanks ranks = equal_ranks(options_.ranks->size(), machine_->device_count());
  phase.plan_of_all = std::move(phase.plan);
  const auto part = [&](MessagePath path) {
    return localize(*phase.plan_of_all, ranks, options_.ranks->rank(), path);
  };
  phase.plan = part(machine_->is_host_addressable() ? MessagePath::direct : MessagePath::links);
  if (machine_->is_host_addressable()) return;
  phase.links =
      std::make_unique<DeviceLinks>(registry_, *machine_, *options_.ranks, link_ends(phase.plan));
  if (!phase.links->are_open()) phase.plan = part(MessagePath::host);
}

Session::~Session() {
  // Executors drain their streams before kernels and memory go.
  training_.executor.reset();
  testing_.executor.reset();
  if (!runtime_->abandoned()) return;
  // What a stream waits for on a link ends, so that closing the links need not wait for it.
  for (const Phase* phase : {&training_, &testing_}) {
    if (phase->links != nullptr) phase->links->abort();
  }
}

void Session::prepare(Phase& phase, const NetDefinition& definition, int32_t which) {
  try {
    make_plan(phase, definition, which);
  } catch (const Error&) {
    if (options_.ranks != nullptr && options_.ranks->rank() > 0) let_root_report();
    throw;
  }
  if (options_.ranks != nullptr) divide(phase);
  if (!machine_->has_virtual_time()) make_kernels(phase);
}

bool Session::models(const Plan& plan) const {
  return options_.models_large_plans && machine_->has_virtual_time() && !options_.testing &&
         plan.tasks.size() >= large_plan && !options_.executor.varies();
}

void Session::make_plan(Phase& phase, const NetDefinition& definition, int32_t which) {
  const bool computes = !machine_->has_virtual_time();
  NetOptions net_options;
  net_options.phase = which;
  net_options.batch = options_.batch;
  net_options.data = options_.data;
  const std::string simulated = options_.kernels.empty() ? default_kind : options_.kernels;
  net_options.device_kind = computes ? machine_->kind() : simulated;
  net_options.precision = options_.precision;
  net_options.loss_scale = options_.loss_scale;
  phase.net = build_net(definition, registry_, net_options);

  StrategyInputs inputs;
  inputs.net = &phase.net;
  inputs.devices =
      machine_->device_count() * (options_.ranks == nullptr ? 1 : options_.ranks->size());
  inputs.costs = &*options_.costs;
  inputs.link = options_.machine.link;
  inputs.topology =
      options_.ranks == nullptr ? options_.machine.topology.get() : options_.rank_topology.get();
  inputs.solver_states = options_.rule.states;
  inputs.needs_norms = options_.rule.needs_norms();
  inputs.clips_gradients = options_.rule.clip > 0;
  inputs.micro_batches_per_step = options_.rule.micro_batches;
  inputs.recomputes = options_.recomputes;
  inputs.options = options_.strategy_options;
  inputs.weights_at = training_.whole_plan().weights_at;
  phase.pixels = which == TANDEM_TRAIN ? options_.training_pixels : options_.testing_pixels;
  if (phase.pixels == PixelForm::bytes &&
      machine_->backend().arithmetic->convert_pixels == nullptr) {
    phase.pixels = PixelForm::rounded;
  }
  if (phase.pixels == PixelForm::bytes) inputs.bytes = options_.pixel_scale;
  if (which == TANDEM_TRAIN && options_.plan != nullptr) {
    phase.plan = *options_.plan;
  } else if (which == TANDEM_TRAIN) {
    const Strategies& known = *options_.strategies;
    FastestVariant choice = fastest_variant(known.at(options_.strategy), inputs);
    inputs.options = options_.strategy_options = choice.options;
    phase.plan = build_plan_without_waits(options_.strategy, inputs, known);
    if (!models(phase.plan)) derive_dependencies(phase.plan);
    validate(phase.plan);
    if (!choice.note.empty()) phase.plan.notes.push_back(std::move(choice.note));
  } else {
    // Without training, only set_weights() changes the weights, on every device.
    phase.plan = build_testing_plan(inputs, options_.training);
  }
}

// Of several ranks one measures at a time, beginning with rank 0, and all take what it has chosen:
// equal uses have one algorithm everywhere, and the others' cores are idle meanwhile.
void Session::make_kernels(Phase& phase) {
  const auto make = [&] {
    phase.kernels.emplace(phase.plan, phase.net, registry_, *runtime_, &options_.tuning);
  };
  const Communicator* ranks = options_.ranks;
  if (ranks == nullptr || !options_.tuning.measures) return make();
  for (int turn = 0; turn < ranks->size(); ++turn) {
    if (turn == ranks->rank()) make();
    options_.tuning.choices = share_choices(*ranks, turn, options_.tuning.choices);
  }
}

void Session::reserve(Phase& phase) {
  phase.memory = plan_memory(phase.plan);
  if (&phase == &training_) {
    phase.memory.prefetched_bytes = phase.memory.prefetched_bytes / ring_slots * options_.prefetch;
  }
  runtime_->reserve(phase.plan, phase.memory, options_.batch);
}

void Session::finish(Phase& phase) {
  const Kernels* kernels = phase.kernels ? &*phase.kernels : nullptr;
  ExecutorOptions executor = options_.executor;
  if (options_.machine.topology != nullptr) executor.speeds = options_.machine.topology->speeds;
  executor.ranks = options_.ranks;
  executor.links = phase.links.get();
  phase.executor = std::make_unique<Executor>(phase.plan, phase.memory, phase.net, *runtime_,
                                              kernels, &*options_.costs, options_.rule, executor);
  if (&phase == &testing_) phase.executor->trace_only(0, 0);  // its times are not used
  phase.batch_buffer = phase.plan.find_buffer(buffers::batch, TANDEM_HOST);
  for (size_t i = 0; i < phase.plan.tasks.size(); ++i) {
    const Task& task = phase.plan.tasks[i];
    const bool copies = std::holds_alternative<CopyWork>(task.work);
    if (task.stage == Stage::input && copies) phase.input_tasks.push_back(static_cast<int>(i));
  }
  if (options_.ranks != nullptr) phase.rows = rows_read(phase, options_.batch);
}

std::string Session::memory_forecast() const {
  std::string text;
  int64_t total = 0;
  for (int device = 0; device < machine_->device_count(); ++device) {
    const auto index = size_t(device);
    int64_t persistent = 0, transient = 0, extended = 0;
    for (const Phase* phase : {&training_, &testing_}) {
      if (phase->memory.persistent_bytes.size() <= index) continue;
      extended = std::max(extended, phase->memory.extended_bytes[index]);
      persistent = std::max(persistent, phase->memory.persistent_bytes[index]);
      transient = std::max(transient, phase->memory.transient_bytes[index]);
    }
    total += persistent + transient;
    text += fmt::format("; device {}: weights and solver state {}, activations and buffers {}",
                        device, human_bytes(persistent), human_bytes(transient));
    if (extended > 0) text += fmt::format(" (and {} of extended memory)", human_bytes(extended));
  }
  const int64_t prefetched = training_.memory.prefetched_bytes + testing_.memory.prefetched_bytes;
  return fmt::format("{}: {} in all{}; prefetched batches {}", options_.devices,
                     human_bytes(total + prefetched), text, human_bytes(prefetched));
}

std::string Session::message_path() const {
  const DeviceLinks* links = (options_.training ? training_ : testing_).links.get();
  return links == nullptr ? "" : links->text();
}

void Session::set_weights(const std::vector<float>& values) {
  for (int device = 0; device < machine_->device_count(); ++device) {
    runtime_->write_persistent(buffers::weights, device, values.data(),
                               static_cast<int64_t>(values.size()) * buffers::float_bytes);
  }
}

void Session::set_initial_weights(uint64_t seed) {
  draw_weights(net(), seed, [this](int64_t first, const float* values, int64_t count) {
    for (int device = 0; device < machine_->device_count(); ++device) {
      runtime_->write_persistent(buffers::weights, device, values, count * buffers::float_bytes,
                                 first * buffers::float_bytes);
    }
  });
}

std::vector<Placement> Session::weights_at() const {
  const Plan& plan = training_.whole_plan();
  if (options_.training && !plan.weights_at.empty()) return plan.weights_at;
  return {{0, {0, buffers::weight_bytes(net())}}};
}

void Session::read_part(const char* buffer, int device, void* target, int64_t bytes,
                        int64_t offset) const {
  const bool is_root = first_device() == 0;
  const std::string what = fmt::format("its part of the {}", buffer);
  if (has_device(device)) {
    runtime_->read_persistent(buffer, device - first_device(), target, bytes, offset);
    if (!is_root) options_.ranks->send(0, target, bytes, what.c_str());
  } else if (is_root) {
    options_.ranks->receive(device / machine_->device_count(), target, bytes, what.c_str());
  }
}

std::vector<float> Session::weights() const {
  std::vector<float> values(size_t(net().weight_floats));
  for (const Placement& place : weights_at()) {
    const Interval& bytes = place.interval;
    read_part(buffers::weights, place.device, values.data() + bytes.begin / buffers::float_bytes,
              bytes.count(), bytes.begin);
  }
  return values;
}

void Session::set_state(const std::vector<float>& values) {
  if (values.empty()) return;
  const int64_t floats = net().weight_floats;
  for (const StatePlacement& part : training_.whole_plan().state_at) {
    if (!has_device(part.device)) continue;
    for (int64_t k = 0; k < options_.rule.states; ++k) {
      runtime_->write_persistent(
          buffer_of(part), part.device - first_device(),
          values.data() + k * floats + part.weights.begin / buffers::float_bytes,
          part.weights.count(), part.offset + k * part.stride);
    }
  }
}

std::vector<float> Session::state() const {
  if (!options_.training) return {};
  std::vector<float> values(size_t(net().weight_floats * options_.rule.states));
  for (const StatePlacement& part : training_.whole_plan().state_at) {
    for (int64_t k = 0; k < options_.rule.states; ++k) {
      read_part(buffer_of(part), part.device,
                values.data() + k * net().weight_floats + part.weights.begin / buffers::float_bytes,
                part.weights.count(), part.offset + k * part.stride);
    }
  }
  return values;
}

void Session::begin_average() {
  if (options_.rule.average_decay == 0) return;
  std::vector<float> values;
  for (const StatePlacement& part : training_.whole_plan().state_at) {
    if (!has_device(part.device)) continue;
    const int device = part.device - first_device();
    const int64_t bytes = part.weights.count();
    values.resize(size_t(bytes / buffers::float_bytes));
    runtime_->read_persistent(buffers::weights, device, values.data(), bytes, part.weights.begin);
    runtime_->write_persistent(buffer_of(part), device, values.data(), bytes,
                               part.offset + (options_.rule.states - 1) * part.stride);
  }
}

Loader::Allocator Session::allocator() {
  Machine* machine = machine_.get();
  return {[machine](int64_t bytes) {
            void* address = nullptr;
            check(machine->backend().buffers->allocate(machine->handle(), 0, TANDEM_MEMORY_PINNED,
                                                       bytes, &address),
                  "memory for prefetched batches");
            return address;
          },
          [machine](void* address) {
            machine->backend().buffers->free(machine->handle(), 0, TANDEM_MEMORY_PINNED, address);
          }};
}

}  // namespace tandem
