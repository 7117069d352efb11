// Chooses the plan of each pass of a convolution, for dnn.h: the recorded one, the fastest measured
// one, or the first of cuDNN's own list. Only engines that always give the same bits, in the
// arithmetic that the user asked for, are chosen.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugins/cuda/dnn_measure.h"

namespace tandem::cuda::detail {

// Whether sums of this kind keep all bits of float32.
inline bool keeps_all_bits(const ConvolutionKind& kind) {
  return kind.dtype == TANDEM_FLOAT32 && !kind.allows_tf32;
}

// cuDNN's model, and its list of fallbacks, which it has for graphs that the model does not know
// well.
constexpr std::array dnn_models{CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};

// The first usable plan in cuDNN's order.
inline std::optional<Plan> first_usable_plan(const DnnTarget& target, const PassGraph& graph,
                                             bool full, int64_t max_scratch) {
  for (const auto mode : dnn_models) {
    const EngineModel model(target, graph, mode);
    size_t seen = 0;
    // Mostly one of the first engines is usable.
    for (const size_t most : {size_t{4}, model.count()}) {
      std::vector<EngineConfig> engines = model.first(most);
      for (; seen < engines.size(); ++seen) {
        if (!is_usable(engines[seen].notes, full)) continue;
        std::optional<Plan> plan = Plan::of(target, std::move(engines[seen]), max_scratch);
        if (plan) return plan;
      }
    }
  }
  return {};
}

// The usable engines in the order in which they are measured. `avoids_slow`: those without tensor
// cores take long to run, beside one that has them.
inline std::vector<EngineConfig> engines_to_measure(const DnnTarget& target, const PassGraph& graph,
                                                    bool full, bool avoids_slow) {
  std::vector<EngineConfig> engines;
  std::vector<ListedEngine> listed;
  for (const auto mode : dnn_models) {
    const EngineModel model(target, graph, mode);
    for (EngineConfig& engine : model.first(model.count())) {
      if (!is_usable(engine.notes, full)) continue;
      const bool is_slow = avoids_slow && !engine.notes.on_tensor_cores;
      listed.push_back({engine.engine, engine.notes.compiles_at_run_time || is_slow});
      engines.push_back(std::move(engine));
    }
  }
  std::vector<EngineConfig> ordered;
  for (const size_t i : measuring_order(listed)) ordered.push_back(std::move(engines[i]));
  return ordered;
}

class PlanChooser {
 public:
  PlanChooser(const sdk::Call& call, const ConvolutionShape& shape, const ConvolutionKind& kind,
              const ConvolutionChoice& how)
      : call_(call), shape_(shape), kind_(kind), target_{dnn_of(call)} {
    if (how.recorded != nullptr) {
      recorded_text_ = how.recorded;
      recorded_ = read_algorithms(how.recorded);
    } else if (how.may_measure) {
      const auto bytes = [&](const tandem_shape& s) {
        return sdk::count(s) * (kind.dtype == TANDEM_FLOAT32 ? 4 : 2);
      };
      memory_ =
          std::make_unique<MeasuringMemory>(call, bytes(shape.x), bytes(shape.weight),
                                            bytes(shape.y), bytes(bias_of(shape)), max_scratch_);
      // Training does not need this memory, so a lack of it is no reason to refuse.
      if (!memory_->has_room()) memory_.reset();
    }
    is_measured_ = how.is_measured();
  }

  // `epilogue`: what the pass does, too, where tensor cores can.
  [[nodiscard]] Plan choose(DnnPass pass, ConvolutionEpilogue epilogue = {}) {
    Plan plan = recorded_ ? recorded(pass, epilogue) : chosen(pass, epilogue);
    algorithms_[layer_pass(pass)] = plan.algorithm();
    return plan;
  }
  // What was chosen so far. A use with fewer passes than the recorded one has the same record.
  [[nodiscard]] std::string text() const {
    if (!recorded_text_.empty()) return recorded_text_;
    return text_of(algorithms_, is_measured_, is_by_model_);
  }

 private:
  // The layer's pass, as an index into pass_names, for one of cuDNN's passes.
  [[nodiscard]] size_t layer_pass(DnnPass pass) const {
    const auto index = static_cast<size_t>(pass);
    return kind_.deconvolves && pass != DnnPass::backward_weights ? 1 - index : index;
  }

  // Throws Refusal if the recorded engine is not available.
  [[nodiscard]] Plan recorded(DnnPass pass, ConvolutionEpilogue epilogue) const {
    const char* name = pass_names[layer_pass(pass)];
    const std::optional<ConvolutionAlgorithm>& given = (*recorded_)[layer_pass(pass)];
    if (!given) {
      throw sdk::invalid("the recorded algorithm '", recorded_text_, "' has none for the ", name,
                         " pass");
    }
    if (!given->adds_bias) epilogue = {};
    const PassGraph graph(target_, shape_, kind_, pass, epilogue);
    std::optional<EngineConfig> config;
    if (graph.adds_bias() == given->adds_bias) config = named_engine(target_, graph, *given);
    const bool is_deterministic = !config || config->notes.is_deterministic;
    if (config && is_deterministic && may_use_arithmetic(config->notes, keeps_all_bits(kind_))) {
      std::optional<Plan> plan = Plan::of(target_, std::move(*config), max_scratch_);
      if (plan) return std::move(*plan);
    }
    throw sdk::unsupported("cuDNN ", cudnnGetVersion(), " on ", current_device(),
                           " cannot use the recorded ", name, engine_word, text_of(*given),
                           is_deterministic
                               ? sdk::text(" for these shapes and this precision in ",
                                           max_scratch_ >> 20, " MiB of scratch memory")
                               : std::string(": it does not always give the same bits"));
  }

  [[nodiscard]] Plan chosen(DnnPass pass, ConvolutionEpilogue epilogue) {
    std::optional<Choice> choice;
    if (epilogue.adds_bias) choice = chosen(PassGraph(target_, shape_, kind_, pass, epilogue));
    // Where cuDNN has no tensor cores for the whole graph, it may have them for the products.
    if (!choice || !choice->plan.algorithm().on_tensor_cores) {
      choice = chosen(PassGraph(target_, shape_, kind_, pass));
    }
    if (choice) {
      is_by_model_ = is_by_model_ || choice->is_by_model;
      return std::move(choice->plan);
    }
    throw sdk::unsupported("cuDNN ", cudnnGetVersion(), " has no deterministic ",
                           pass_names[layer_pass(pass)], " engine for these shapes in ",
                           max_scratch_ >> 20, " MiB of scratch memory", way_out());
  }
  struct Choice {
    Plan plan;
    bool is_by_model;
  };
  // None if no engine is usable.
  [[nodiscard]] std::optional<Choice> chosen(const PassGraph& graph) const {
    const bool full = keeps_all_bits(kind_);
    std::optional<Plan> plan = memory_ != nullptr ? measured(graph, full) : std::nullopt;
    if (plan) return Choice{std::move(*plan), false};
    plan = first_usable_plan(target_, graph, full, max_scratch_);
    return plan ? std::optional(Choice{std::move(*plan), true}) : std::nullopt;
  }
  // The fastest of some plans, the model's first one among them; none if none of them runs. With
  // every plan cuDNN loads kernels, which takes some 70 ms, so the time is limited, too. Before the
  // first one it also loads its libraries.
  [[nodiscard]] std::optional<Plan> measured(const PassGraph& graph, bool full) const {
    using Clock = std::chrono::steady_clock;
    constexpr size_t max_measured = 6;
    constexpr std::chrono::milliseconds time_after_the_first{300};
    // So many take seconds where an engine does 0.1 % of what tensor cores do.
    constexpr double many_operations = 1e10;
    std::optional<Plan> first = first_usable_plan(target_, graph, full, memory_->scratch_bytes());
    if (!first) return {};
    const ConvolutionAlgorithm by_model = first->algorithm();
    std::vector<Plan> plans;
    std::vector<double> times;
    const auto measure = [&](Plan plan) {
      const std::optional<size_t> best = fastest(times);
      times.push_back(milliseconds_of(call_, plan, *memory_, best ? times[*best] : -1));
      plans.push_back(std::move(plan));
    };
    measure(std::move(*first));
    const Clock::time_point end = Clock::now() + time_after_the_first;
    const bool avoids_slow = by_model.on_tensor_cores && operations_of(shape_) >= many_operations;
    for (EngineConfig& engine : engines_to_measure(target_, graph, full, avoids_slow)) {
      if (plans.size() == max_measured || Clock::now() > end) break;
      if (algorithm_of(engine) == by_model) continue;
      std::optional<Plan> plan = Plan::of(target_, std::move(engine), memory_->scratch_bytes());
      if (plan) measure(std::move(*plan));
    }
    const std::optional<size_t> best = fastest(times);
    return best ? std::optional(std::move(plans[*best])) : std::nullopt;
  }
  [[nodiscard]] const char* way_out() const {
    if (kind_.dtype != TANDEM_FLOAT32) return ": use --precision tf32 or float32";
    return kind_.allows_tf32 ? ": use --precision float32" : "";
  }

  const sdk::Call& call_;
  const ConvolutionShape& shape_;
  const ConvolutionKind& kind_;
  DnnTarget target_;
  int64_t max_scratch_ = scratch_limit(total_memory_bytes());  // of a plan
  bool is_measured_ = false;                                   // now, or in an earlier run
  bool is_by_model_ = false;                                   // for a pass: nothing was measured
  std::string recorded_text_;
  std::optional<ConvolutionAlgorithms> recorded_;
  std::unique_ptr<MeasuringMemory> memory_;  // during measuring
  ConvolutionAlgorithms algorithms_;
};

}  // namespace tandem::cuda::detail
