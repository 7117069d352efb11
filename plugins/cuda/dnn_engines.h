// cuDNN's engines for a graph: those that its model of the GPU proposes, one that is named by
// number and knobs, and what cuDNN says of their results. A plan is an engine that is ready to run.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "plugins/cuda/dnn_algorithms.h"
#include "plugins/cuda/dnn_graph.h"

namespace tandem::cuda::detail {

struct EngineConfig {
  Descriptor config;  // the engine and its knobs
  int64_t engine = 0;
  EngineNotes notes;
  bool adds_bias = false;  // its graph does
};

// Of notes, and of knobs. Newer versions of cuDNN may have more of them than the one of this build.
constexpr size_t max_kinds = 64;

inline EngineNotes notes_of(const Descriptor& engine) {
  EngineNotes notes;
  for (const auto note :
       engine.get_all<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, max_kinds)) {
    if (note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) notes.is_deterministic = false;
    if (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE) notes.on_tensor_cores = true;
    if (note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) notes.converts_inputs = true;
    if (note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) notes.sums_in_16_bits = true;
  }
  for (const auto note :
       engine.get_all<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, max_kinds)) {
    if (note == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) notes.compiles_at_run_time = true;
  }
  return notes;
}

// cuDNN's model of the GPU for a graph. It sorts the engines, the best one first.
class EngineModel {
 public:
  EngineModel(const DnnTarget& target, const PassGraph& graph, cudnnBackendHeurMode_t mode)
      : adds_bias_(graph.adds_bias()) {
    if (!graph.is_known()) return;
    model_.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.get());
    model_.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
    if (target.described != nullptr) model_.set(gpu_of_model, *target.described);
    const cudnnStatus_t status = model_.try_finalize();
    if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) return;
    check(status, "cudnnBackendFinalize of an engine heuristic");
    count_ = model_.count_descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS);
  }
  // 0 if it does not know the graph.
  [[nodiscard]] size_t count() const { return count_; }
  // At most `most` of them. cuDNN prepares each one, which takes 0.1 to 0.2 ms.
  [[nodiscard]] std::vector<EngineConfig> first(size_t most) const {
    std::vector<EngineConfig> result;
    for (Descriptor& config :
         model_.get_descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                                std::min(most, count_))) {
      for (const Descriptor& engine : config.get_descriptors(CUDNN_ATTR_ENGINECFG_ENGINE,
                                                             CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1)) {
        const auto number = engine.get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
        result.push_back({std::move(config), number, notes_of(engine), adds_bias_});
      }
    }
    return result;
  }

 private:
  bool adds_bias_;
  Descriptor model_{CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR};
  size_t count_ = 0;
};

// None if this cuDNN has no such engine for the graph, or if it does not have these knobs.
inline std::optional<EngineConfig> named_engine(const DnnTarget& target, const PassGraph& graph,
                                                const ConvolutionAlgorithm& algorithm) {
  if (!graph.is_known()) return {};
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph.get());
  engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, algorithm.engine);
  if (target.described != nullptr) engine.set(gpu_of_engine, *target.described);
  if (engine.try_finalize() != CUDNN_STATUS_SUCCESS) return {};
  std::vector<Descriptor> knobs;
  for (const Knob& knob : algorithm.knobs) {
    Descriptor& choice = knobs.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, static_cast<cudnnBackendKnobType_t>(knob.type));
    choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, knob.value);
    if (choice.try_finalize() != CUDNN_STATUS_SUCCESS) return {};
  }
  EngineConfig result{Descriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR), algorithm.engine,
                      notes_of(engine), graph.adds_bias()};
  result.config.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!knobs.empty()) result.config.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, knobs);
  if (result.config.try_finalize() != CUDNN_STATUS_SUCCESS) return {};
  return result;
}

inline ConvolutionAlgorithm algorithm_of(const EngineConfig& config) {
  ConvolutionAlgorithm result{config.engine, config.notes.on_tensor_cores};
  result.adds_bias = config.adds_bias;
  for (const Descriptor& choice : config.config.get_descriptors(
           CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, max_kinds)) {
    const auto type = choice.get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE);
    result.knobs.push_back(
        {static_cast<int64_t>(type), choice.get<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE)});
  }
  return result;
}

// The addresses that a plan is given.
struct Operands {
  const void *x, *weight, *y;
  const void* bias;  // only a graph that adds one reads it
};

class Plan {
 public:
  // None if cuDNN cannot prepare the engine, or if it needs more scratch memory than that.
  static std::optional<Plan> of(const DnnTarget& target, EngineConfig config, int64_t max_scratch) {
    Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (target.handle != nullptr) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle);
    if (target.described != nullptr) plan.set(gpu_of_plan, *target.described);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config.config);
    if (plan.try_finalize() != CUDNN_STATUS_SUCCESS) return {};
    const auto bytes = plan.get<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
    if (bytes > max_scratch) return {};
    return Plan(std::move(config), std::move(plan), bytes);
  }
  [[nodiscard]] int64_t scratch_bytes() const { return scratch_bytes_; }
  [[nodiscard]] ConvolutionAlgorithm algorithm() const { return algorithm_of(config_); }
  [[nodiscard]] bool adds_bias() const { return config_.adds_bias; }

  // Issues the pass on the handle's stream. Several threads may run a plan at once.
  [[nodiscard]] cudnnStatus_t run(cudnnHandle_t handle, const Operands& operands,
                                  void* scratch) const {
    Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    constexpr std::array names{
        static_cast<int64_t>(DnnTensor::x), static_cast<int64_t>(DnnTensor::weight),
        static_cast<int64_t>(DnnTensor::y), static_cast<int64_t>(DnnTensor::bias)};
    // cuDNN's array is of addresses to write to, also of what it only reads.
    const std::array addresses{const_cast<void*>(operands.x), const_cast<void*>(operands.weight),
                               const_cast<void*>(operands.y), const_cast<void*>(operands.bias)};
    const size_t count = config_.adds_bias ? names.size() : names.size() - 1;
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, names.data(), count);
    pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, addresses.data(), count);
    pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, scratch);
    pack.finalize();
    return cudnnBackendExecute(handle, plan_.raw(), pack.raw());
  }

 private:
  Plan(EngineConfig config, Descriptor plan, int64_t scratch_bytes)
      : config_(std::move(config)), plan_(std::move(plan)), scratch_bytes_(scratch_bytes) {}

  EngineConfig config_;
  Descriptor plan_;
  int64_t scratch_bytes_;
};

}  // namespace tandem::cuda::detail
