// A net made ready to run on a machine: the nets of both phases over one set of weights, their
// plans, kernels, memory and executors. Training, testing, predicting and measuring all stand on
// it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/work.h"
#include "core/data/loader/loader.h"
#include "core/device/communicator.h"
#include "core/device/device_links.h"
#include "core/device/machine.h"
#include "core/model/net/net.h"
#include "core/plugin/registry.h"
#include "core/schedule/cost/step_model.h"
#include "core/schedule/execution/executor.h"
#include "core/schedule/kernels/kernels.h"
#include "core/schedule/kernels/runtime.h"
#include "core/schedule/strategies/strategies.h"

namespace tandem {

// A plan of so many tasks takes minutes and gigabytes to run on `sim`, task by task.
constexpr size_t large_plan = 20000;

struct SessionOptions {
  std::string devices = default_kind;
  // Simulated devices only: the kind of device whose kernels the net is made for; "": the default
  // kind.
  std::string kernels;
  std::string strategy = "two_phase";
  StrategyOptions strategy_options;
  const Strategies* strategies = &built_in_strategies();  // outlive the session
  MachineOptions machine;
  ExecutorOptions executor;
  UpdateRule rule;
  int64_t batch = 1;                   // global, of both phases
  Shape data{1, 3, 0, 0};              // of one sample
  int32_t precision = TANDEM_FLOAT32;  // of activations and their gradients: NetOptions::precision
  double loss_scale = 0;               // NetOptions::loss_scale
  // The form of the pixels in the batches of each phase. Where the backend does not convert bytes,
  // rounded floats replace them, with the same values.
  PixelForm training_pixels = PixelForm::floats, testing_pixels = PixelForm::floats;
  PixelScale pixel_scale;  // of bytes
  // If neither link nor topology is given, rings and groups follow what the devices report of their
  // links; the Session's own options then have that topology.
  bool finds_links = true;
  bool recomputes = false;    // activations of training, as core/schedule/plan/recompute.h says
  int prefetch = ring_slots;  // batches in memory of the loader that feeds the training
  bool training = true;       // false: only the testing plan
  bool testing = true;
  // In virtual time a large plan gets no executor and no waits: measure() takes its step from
  // StepModel, and nothing else may be asked of it. For forecasts.
  bool models_large_plans = false;
  std::optional<CostTable> costs;  // else a roofline of the devices
  // The training plan, if another Session has made it of the same net and options.
  std::shared_ptr<const Plan> plan;
  Tuning tuning;  // the Session's own has what its kernels measured
  // This process as one of several: `devices` are its own, the net and the batch those of all. All
  // ranks have the same options. Outlives the session.
  const Communicator* ranks = nullptr;
  WorkWatch watch{};  // of measuring and forecasting, of one process
  // What connects the devices of all ranks; `machine` has no topology then. May be null.
  std::shared_ptr<const Topology> rank_topology;
};

// One phase: its net, plan and executor.
struct Phase {
  Net net;
  Plan plan;
  std::optional<Plan> plan_of_all;  // of several ranks
  MemoryPlan memory;
  PixelForm pixels = PixelForm::floats;  // in the batches it is given
  std::unique_ptr<DeviceLinks> links;  // of several ranks, where the host reaches no device memory
  std::optional<Kernels> kernels;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<const StepModel> model;  // of a plan without waits, made by measure()
  int batch_buffer = -1;                   // the external buffer of the plan
  std::vector<int> input_tasks;            // the copies that read it
  std::vector<Interval> rows;              // of the batch, that this rank reads; empty: all

  [[nodiscard]] const Plan& whole_plan() const { return plan_of_all ? *plan_of_all : plan; }
  // The rest on rank 0 only; on others it is zeros, true and nullptr.
  // Sums of the scalars of a done micro-batch (net.scalars order), and whether its loss was finite.
  // For the last two micro-batches.
  [[nodiscard]] std::vector<float> scalars(int64_t micro_batch) const;
  [[nodiscard]] bool finite(int64_t micro_batch) const;
  // Class scores of a done micro-batch of testing, batch rows x classes floats; nullptr if the net
  // predicts nothing.
  [[nodiscard]] const float* predictions(int64_t micro_batch) const;
};

class Session {
 public:
  // Errors: unknown devices or strategy, a net that does not fit, memory that does not suffice
  // (with the forecast).
  Session(Registry& registry, const NetDefinition& definition, const SessionOptions& options);
  ~Session();

  // With the strategy's options as fastest_variant() completed them.
  [[nodiscard]] const SessionOptions& options() const { return options_; }
  [[nodiscard]] Machine& machine() { return *machine_; }
  [[nodiscard]] Runtime& runtime() { return *runtime_; }
  [[nodiscard]] Phase& training() { return training_; }
  [[nodiscard]] Phase& testing() { return testing_; }
  [[nodiscard]] const Net& net() const { return options_.training ? training_.net : testing_.net; }
  [[nodiscard]] const CostTable& costs() const { return *options_.costs; }
  // "cpu:2: 1.2 GiB in all; device 0: weights and state 480 MiB, activations and buffers 350 MiB;
  // ...; prefetched batches 75 MiB"
  [[nodiscard]] std::string memory_forecast() const;
  // Which way messages go between the devices of several ranks, as DeviceLinks says it; "" where
  // the host reaches the devices' memory, and for one process.
  [[nodiscard]] std::string message_path() const;

  // The net's whole weight array: to every device; from where the plan updates it. No step may be
  // in flight. All ranks call these at the same time; rank 0 gets the whole, others only their
  // part.
  void set_weights(const std::vector<float>& values);
  // The same with the net's initial weights, drawn straight into the devices' memory.
  void set_initial_weights(uint64_t seed);
  // These, or the initial ones if there are none.
  void set_first_weights(const std::vector<float>& values, uint64_t seed) {
    values.empty() ? set_initial_weights(seed) : set_weights(values);
  }
  [[nodiscard]] std::vector<float> weights() const;
  // The solver's arrays, one after the other (empty without training), wherever the strategy keeps
  // them.
  void set_state(const std::vector<float>& values);
  [[nodiscard]] std::vector<float> state() const;
  // The average that the rule keeps begins with the weights of now.
  void begin_average();

  // Pinned host memory for a Loader.
  [[nodiscard]] Loader::Allocator allocator();

 private:
  void share_costs();
  void divide(Phase& phase);
  void make_kernels(Phase& phase);
  void prepare(Phase& phase, const NetDefinition& definition, int32_t which);
  [[nodiscard]] bool models(const Plan& plan) const;
  void make_plan(Phase& phase, const NetDefinition& definition, int32_t which);
  void reserve(Phase& phase);
  void finish(Phase& phase);
  [[nodiscard]] int first_device() const;
  [[nodiscard]] bool has_device(int device) const;
  // A part of a persistent buffer of any rank's device, to rank 0.
  void read_part(const char* buffer, int device, void* target, int64_t bytes, int64_t offset) const;
  // Where the plan leaves the newest weights and their state.
  [[nodiscard]] std::vector<Placement> weights_at() const;

  Registry& registry_;
  SessionOptions options_;
  std::unique_ptr<Machine> machine_;
  std::unique_ptr<Runtime> runtime_;
  Phase training_, testing_;
};

// Throws Error if the devices simulate (sim), for callers that need results.
void require_computing(const Registry& registry, const std::string& devices);

// Peak numbers of a device as a roofline.
[[nodiscard]] Roofline roofline_of(const Machine& machine);

}  // namespace tandem
