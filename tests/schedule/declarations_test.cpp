// Waits and races are found from what tasks declare, so they must declare all that their work
// touches.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/plugin/layer_questions.h"
#include "core/schedule/plan/buffers.h"
#include "tests/schedule/plan_checks.h"

namespace tandem::test {
namespace {

bool covers(const Plan& plan, const std::vector<Region>& declared, const Region& used) {
  return std::any_of(declared.begin(), declared.end(), [&](const Region& region) {
    return region.buffer == used.buffer && region.offset <= used.offset &&
           region.offset + plan.bytes(region) >= used.offset + plan.bytes(used);
  });
}

class Declarations {
 public:
  Declarations(const Net& net, const Plan& plan, const Task& task, int solver_states,
               bool clips = false)
      : net_(net), plan_(plan), task_(task), solver_states_(solver_states), clips_(clips) {}

  void check() {
    std::visit([this](const auto& work) { check(work); }, task_.work);
  }

 private:
  void reads(const Region& used) {
    if (used.buffer < 0) return;
    EXPECT_TRUE(covers(plan_, task_.reads, used) || covers(plan_, task_.writes, used))
        << "'" << task_.label << "' reads " << name(used);
  }
  void writes(const Region& used) {
    if (used.buffer < 0) return;
    EXPECT_TRUE(covers(plan_, task_.writes, used))
        << "'" << task_.label << "' writes " << name(used);
  }
  [[nodiscard]] std::string name(const Region& region) const {
    return plan_.buffers[size_t(region.buffer)].name;
  }

  void check(const CopyWork& work) {
    for (const CopySegment& segment : work.segments) {
      reads(segment.source);
      writes(segment.target);
    }
  }
  void check(const AddWork& work) {
    for (const Region& source : work.sources) reads(source);
    writes(work.target);
  }
  void check(const MergeWork& work) {
    for (const Region& source : work.sources) reads(source);
    writes(work.target);
  }
  void check(const ConvertWork& work) {
    reads(work.pixels);
    writes(work.target);
  }
  void check(const SendWork& work) {
    for (const Region& region : work.regions) reads(region);
  }
  void check(const ReceiveWork& work) {
    for (const Region& region : work.regions) writes(region);
  }
  void check(const CheckWork& work) {
    reads(work.values);
    writes(work.found_inf);
  }
  void check(const NormWork& work) {
    const auto arrays = static_cast<int64_t>(net_.weights.size());
    for (const ArrayNorms& array : work.arrays) {
      reads(array.gradient);
      reads(array.values);
      writes({work.norms.buffer, array.weight * 8, 8});
      writes({work.norms.buffer, (arrays + array.weight) * 8, 8});
    }
  }
  void check(const UpdateWork& work) {
    if (clips_) reads({work.norms.buffer, 0, static_cast<int64_t>(net_.weights.size()) * 8});
    reads(work.step);
    reads(work.found_inf);
    for (const ArrayUpdate& array : work.arrays) {
      reads(array.gradient);
      writes(array.weights);
      EXPECT_EQ(plan_.bytes(array.gradient), plan_.bytes(array.weights)) << task_.label;
      if (work.norms.buffer >= 0 && !clips_) {
        const auto arrays = static_cast<int64_t>(net_.weights.size());
        reads({work.norms.buffer, array.weight * 8, 8});
        reads({work.norms.buffer, (arrays + array.weight) * 8, 8});
      }
      for (int i = 0; i < solver_states_; ++i) {
        writes(
            {array.state.buffer, array.state.offset + i * array.state_stride, array.state.bytes});
      }
    }
  }
  void check(const LayerWork& work) {
    const PlanBinding& use = plan_.bindings[size_t(work.binding)];
    const Layer& layer = net_.layers[size_t(use.layer)];
    const bool is_forward = tandem::is_forward(work.pass);
    const bool is_statistics = tandem::is_statistics(work.pass);
    const Region& statistics = statistics_of(use, work.pass);
    if (is_statistics) {
      EXPECT_GE(statistics.buffer, 0) << task_.label;
      writes(statistics);
    } else {
      reads(statistics);
    }
    reads(use.row_labels);
    reads(use.step);
    reads(use.normaliser);
    writes({scratch_of(use, work.pass)});
    if (work.pass == LayerPass::forward) {
      writes({use.saved});
    } else if (!is_forward) {
      reads({use.saved});
    }
    for (size_t i = 0; i < use.weights.size(); ++i) {
      reads(use.weights[i]);
      const bool is_state = net_.weights[size_t(layer.weights[i])].kind == TANDEM_STATE;
      if (is_state && work.pass == LayerPass::forward && net_.phase == TANDEM_TRAIN) {
        writes(use.weights[i]);
      }
    }
    for (size_t i = 0; i < use.inputs.size(); ++i) {
      const bool is_label = tandem::is_label(*layer.type, i);
      if (is_forward || is_label || layer.has(TANDEM_BACKWARD_READS_INPUTS)) reads(use.inputs[i]);
    }
    for (const Region& output : use.outputs) {
      if (work.pass == LayerPass::forward) {
        writes(output);
      } else if (!is_forward && layer.has(TANDEM_BACKWARD_READS_OUTPUTS)) {
        reads(output);
      }
    }
    if (is_forward) return;
    for (const Region& gradient : use.output_gradients) reads(gradient);
    if (is_statistics) return;
    if (work.pass == LayerPass::backward_data) {
      for (const Region& gradient : use.input_gradients) writes(gradient);
    } else {
      for (size_t i = 0; i < use.weight_gradients.size(); ++i) {
        const WeightArray& weight = net_.weight(layer.weights[i]);
        EXPECT_EQ(use.weight_gradients[i].buffer >= 0, weight.kind == TANDEM_TRAINED)
            << weight.name << ": of each trained weight, and of no state (docs/reference/abi.md)";
        writes(use.weight_gradients[i]);
      }
    }
  }

  const Net& net_;
  const Plan& plan_;
  const Task& task_;
  int solver_states_;
  bool clips_;
};

void check_declarations(const Net& training, const Net& testing, bool bytes) {
  std::vector<std::string> names{"testing"};
  for (const Strategy& strategy : built_in_strategies()) names.push_back(strategy.name);
  for (const std::string& strategy : names) {
    const bool tests = strategy == "testing";
    const bool mixes = training.find_layer("norm1") >= 0;
    if (strategy == "asymmetric" && mixes) continue;
    StrategyInputs inputs = inputs_of(tests ? testing : training, 3);
    inputs.solver_states = 2;
    if (strategy == "fc_parallel") {
      inputs.options["quota"] = 2;
      inputs.options["eager"] = true;
    }
    if (strategy == "hybrid") inputs.options["fc_memory"] = "extended";
    if (bytes) inputs.bytes = PixelScale{};
    const Plan plan = tests ? build_testing_plan(inputs) : build_plan(strategy, inputs);
    for (const Task& task : plan.tasks) Declarations(*inputs.net, plan, task, 2).check();
  }
}

TEST(Declarations, HoldEverythingThatTheWorkOfATaskTouches) {
  for (const auto& [training, testing] :
       {std::pair(small_net(8), small_net(8, TANDEM_TEST)),
        std::pair(normalised_net(8), normalised_net(8, TANDEM_TEST))}) {
    for (const bool bytes : {false, true}) check_declarations(training, testing, bytes);
  }
}

TEST(Declarations, HoldForFrozenWeights) {
  Net training = normalised_net(8), testing = normalised_net(8, TANDEM_TEST);
  for (size_t i = 0; i < training.weights.size(); i += 2) training.weights[i].rate_multiplier = 0;
  check_declarations(training, testing, false);
}

TEST(Declarations, HoldTheNormsThatAnUpdateReads) {
  const Net net = small_net(8);
  for (const char* strategy : {"sequential", "two_phase"}) {
    for (const bool clips : {false, true}) {
      StrategyInputs inputs = inputs_of(net, 3);
      inputs.needs_norms = true;
      inputs.clips_gradients = clips;
      const Plan plan = build_plan(strategy, inputs);
      for (const Task& task : plan.tasks) Declarations(net, plan, task, 1, clips).check();
    }
  }
}

// An in-place layer's gradient is where its output's is; a first layer has no data gradient.
TEST(Declarations, OfBackwardPassesHaveAGradientToWrite) {
  const Net net = small_net(8);
  const Plan plan = build_plan("two_phase", inputs_of(net, 2));
  for (const Task& task : plan.tasks) {
    const auto* work = std::get_if<LayerWork>(&task.work);
    if (work == nullptr || work->pass == LayerPass::forward) continue;
    const PlanBinding& use = plan.bindings[size_t(work->binding)];
    const auto& wanted =
        work->pass == LayerPass::backward_data ? use.input_gradients : use.weight_gradients;
    EXPECT_TRUE(std::any_of(wanted.begin(), wanted.end(), [](const Region& region) {
      return region.buffer >= 0;
    })) << task.label;
    EXPECT_GE(use.output_gradients[0].buffer, 0) << task.label;
  }
}

}  // namespace
}  // namespace tandem::test
