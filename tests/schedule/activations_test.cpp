// Fused activations in the plans of every strategy: each is applied once to each element, and no
// plan can be made in which one is left out.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/schedule/builder/plan_builder.h"
#include "core/schedule/strategies/common/stages.h"
#include "core/schedule/strategies/strategies.h"
#include "tests/schedule/plan_checks.h"
#include "tests/schedule/plan_promises.h"

namespace tandem::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Net joined_net(int32_t phase = TANDEM_TRAIN) {
  FakeNet net("joined", 9, {1, 3, 8, 8}, phase);
  net.convolution("conv1", 8, 3, 1, 1).relu("relu1").pooling("pool1", 2, 2);
  net.convolution("conv2", 8, 3, 1, 1).relu("relu2");
  net.inner_product("fc1", 21).relu("relu3").inner_product("fc2", 18).relu("relu4");
  return net.inner_product("fc3", 10).relu("relu5").with_activations_joined().loss().finish();
}

struct ActivationsCase {
  std::string strategy;  // or "testing"
  int devices;
  StrategyOptions options = {};
  std::string name = strategy;
};

Plan activations_plan(const ActivationsCase& which, const Net& net) {
  StrategyInputs inputs = inputs_of(net, which.devices);
  inputs.options = which.options;
  if (which.strategy == "sequential" || which.strategy == "two_phase") {
    inputs.options["split"] = "fc1";
  }
  return which.strategy == "testing" ? build_testing_plan(inputs)
                                     : build_plan(which.strategy, inputs);
}

Plan activations_plan(const ActivationsCase& which) {
  static const Net training = joined_net(), testing = joined_net(TANDEM_TEST);
  return activations_plan(which, which.strategy == "testing" ? testing : training);
}

std::vector<ActivationsCase> activations_cases() {
  std::vector<ActivationsCase> result;
  for (const int devices : {1, 3}) {
    for (const char* strategy : {"sequential", "two_phase", "layerwise", "testing"}) {
      result.push_back({strategy, devices});
    }
  }
  result.push_back({"hybrid", 3, {{"conv_devices", 2}, {"fc_devices", 1}}});
  for (const char* groups : {"E=0/W=1", "E=0,2/W=1", "E=1/W=0,2"}) {
    result.push_back({"asymmetric",
                      groups == std::string("E=0/W=1") ? 2 : 3,
                      {{"groups", groups}},
                      fmt::format("asymmetric_{}", result.size())});
  }
  for (const int quota : {1, 2, 3}) {
    for (const bool eager : {false, true}) {
      if (eager && quota == 3) continue;
      result.push_back({"fc_parallel",
                        3,
                        {{"quota", quota}, {"eager", eager}},
                        fmt::format("fc_parallel_quota_{}{}", quota, eager ? "_eager" : "")});
    }
  }
  return result;
}

class JoinedActivations : public testing::TestWithParam<ActivationsCase> {};

INSTANTIATE_TEST_SUITE_P(Strategies, JoinedActivations, testing::ValuesIn(activations_cases()),
                         [](const testing::TestParamInfo<ActivationsCase>& info) {
                           return fmt::format("{}_on_{}", info.param.name, info.param.devices);
                         });

const PlanBinding* forward_use(const Plan& plan, const Task& task) {
  const auto* work = std::get_if<LayerWork>(&task.work);
  const bool is_forward = work != nullptr && work->pass == LayerPass::forward;
  return is_forward ? &plan.bindings[static_cast<size_t>(work->binding)] : nullptr;
}

// In rows times channels. Forward runs once for each row in all of these plans.
TEST_P(JoinedActivations, AreDoneToEachElementOnce) {
  const Net net = joined_net(GetParam().strategy == "testing" ? TANDEM_TEST : TANDEM_TRAIN);
  const Plan plan = activations_plan(GetParam());
  std::map<int, int64_t> done;  // by ReLU
  for (const Task& task : plan.tasks) {
    const PlanBinding* use = forward_use(plan, task);
    if (use == nullptr) continue;
    const Layer& layer = net.layers[static_cast<size_t>(use->layer)];
    const int64_t channels = use->slice.end < 0
                                 ? net.tensors[static_cast<size_t>(layer.outputs[0])].shape.c
                                 : use->slice.count();
    const int64_t elements = (use->rows.count()) * channels;
    if (layer.fused_into >= 0) done[use->layer] += elements;
    if (use->activation != TANDEM_ACTIVATION_NONE) done[net.fused_layer(use->layer)] += elements;
  }
  for (size_t i = 0; i < net.layers.size(); ++i) {
    if (net.layers[i].fused_into < 0) continue;
    const int64_t channels = net.tensors[static_cast<size_t>(net.layers[i].outputs[0])].shape.c;
    EXPECT_EQ(done[static_cast<int>(i)], net.batch * channels) << net.layers[i].name;
  }
}

TEST_P(JoinedActivations, HaveTasksOfTheirOwnOnlyAfterSlices) {
  const Net net = joined_net();
  const Plan plan = activations_plan(GetParam());
  int own = 0, fused = 0;
  for (const Task& task : plan.tasks) {
    const PlanBinding* use = forward_use(plan, task);
    if (use == nullptr) continue;
    own += net.layers[static_cast<size_t>(use->layer)].fused_into >= 0 ? 1 : 0;
    fused += use->activation != TANDEM_ACTIVATION_NONE ? 1 : 0;
    const bool is_part = use->slice.end >= 0 || use->input_slice.end >= 0 || use->adds_to_output;
    EXPECT_FALSE(is_part && use->activation != TANDEM_ACTIVATION_NONE) << task.label;
  }
  EXPECT_GT(fused, 0);
  EXPECT_EQ(own > 0, GetParam().strategy == "fc_parallel");
}

// A kernel that applies the gradient, too, gets that of the activated values: either the ReLU has a
// backward pass on the device, or the kernel's own passes there apply the activation.
TEST_P(JoinedActivations, HaveABackwardPassWhereTheKernelDoesNotApplyTheirGradient) {
  if (GetParam().strategy == "testing") GTEST_SKIP() << "a test has no backward pass";
  Net net = joined_net();
  for (Layer& layer : net.layers) layer.gradient_fused_into = layer.fused_into;
  const Plan plan = activations_plan(GetParam(), net);
  std::set<std::pair<int, int>> own;      // device and ReLU
  std::set<std::pair<int, int>> missing;  // device and ReLU whose gradient the kernel leaves out
  int applied = 0;
  for (const Task& task : plan.tasks) {
    const auto* work = std::get_if<LayerWork>(&task.work);
    if (work == nullptr || is_forward(work->pass)) continue;
    const PlanBinding& use = plan.bindings[static_cast<size_t>(work->binding)];
    if (net.layer(use.layer).fused_into >= 0) own.emplace(use.device, use.layer);
    const int follower = net.fused_layer(use.layer);
    if (follower < 0) continue;
    if (use.activation == TANDEM_ACTIVATION_NONE) missing.emplace(use.device, follower);
    applied += use.activation != TANDEM_ACTIVATION_NONE ? 1 : 0;
  }
  EXPECT_GT(applied, 0);
  // Devices for weight gradients get the output gradients from others.
  const bool sends_gradients = GetParam().strategy == "asymmetric";
  for (const auto& [device, layer] : missing) {
    bool has_own = false;
    for (const auto& [where, relu] : own) {
      has_own = has_own || (relu == layer && (sends_gradients || where == device));
    }
    EXPECT_TRUE(has_own) << net.layer(layer).name << " @" << device;
  }
  const bool emits_passes_itself =
      GetParam().strategy == "fc_parallel" || GetParam().strategy == "asymmetric";
  EXPECT_EQ(own.empty(), !emits_passes_itself);
}

TEST_P(JoinedActivations, LeaveThePlanWithoutRacesAndNeedlessWaits) {
  const Plan plan = activations_plan(GetParam());
  expect_no_race(plan);
  expect_each_wait_needed(plan, 7);
  expect_written_before_read(plan);
}

// ---- Mistakes that a strategy can make which emits passes itself.

class ByHand : public testing::Test {
 protected:
  PlanBuilder builder() {
    PlanBuilder result(inputs_of(net_, 1), "by_hand", PlanBuilder::Purpose::training);
    result.emit_input(0);
    return result;
  }
  [[nodiscard]] int layer(const char* name) const { return net_.find_layer(name); }
  // Without the activation that could be fused.
  void emit_alone(PlanBuilder& builder, const char* name) const {
    PlanBinding use = builder.describe(0, layer(name));
    use.activation = TANDEM_ACTIVATION_NONE;
    emit(builder, std::move(use), std::string("forward ") + name);
  }
  static void emit(PlanBuilder& builder, PlanBinding use, const std::string& label) {
    builder.emit_pass(label, Stage::forward,
                      {builder.add_binding(std::move(use)), LayerPass::forward, false});
  }
  Net net_ = joined_net();
};

TEST_F(ByHand, AnActivationThatIsLeftOutIsAnError) {
  PlanBuilder plan = builder();
  emit_alone(plan, "conv1");
  EXPECT_THAT(message_of([&] { plan.emit_forward(0, layer("pool1")); }),
              AllOf(HasSubstr("strategy 'by_hand': 'forward pool1 @0' reads"),
                    HasSubstr("layer 'relu1' (ReLU) was not applied"),
                    HasSubstr("it is not fused into layer 'conv1' (Convolution) here")));
}

TEST_F(ByHand, AnActivationThatIsAppliedTwiceIsAnError) {
  PlanBuilder plan = builder();
  plan.emit_forward(0, layer("conv1"));
  EXPECT_THAT(message_of([&] { emit(plan, plan.describe(0, layer("relu1")), "forward relu1 @0"); }),
              AllOf(HasSubstr("strategy 'by_hand': 'forward relu1 @0' would apply layer 'relu1'"),
                    HasSubstr("a second time")));
}

TEST_F(ByHand, AnActivationHasATaskOfItsOwnWhereItWasNotDoneAlong) {
  PlanBuilder plan = builder();
  emit_alone(plan, "conv1");
  plan.emit_forward(0, layer("relu1"));
  plan.emit_forward(0, layer("pool1"));
  plan.emit_forward(0, layer("conv2"));
  plan.emit_forward(0, layer("relu2"));
  const Plan made = plan.take();
  EXPECT_GE(find_task(made, "forward relu1 @0"), 0);
  EXPECT_EQ(find_task(made, "forward relu2 @0"), -1);
}

TEST_F(ByHand, AnActivationThatIsLeftOutIsAnErrorWhereItWasCopiedTo) {
  PlanBuilder plan = builder();
  const int other = plan.add_shard(0, {3, 9}, "other");
  const int tensor = net_.layers[static_cast<size_t>(layer("conv1"))].outputs[0];
  emit_alone(plan, "conv1");
  plan.emit_copy("keep", stages::send_activations, layer("conv1"), {{0, StreamKind::copy}},
                 {{plan.tensor(0, tensor, {3, 9}), plan.tensor(other, tensor)}});
  EXPECT_THAT(message_of([&] { plan.emit_forward(other, layer("pool1")); }),
              HasSubstr("'forward pool1 @0 other' reads"));
  plan.emit_forward(other, layer("relu1"));
  EXPECT_EQ(message_of([&] { plan.emit_forward(other, layer("pool1")); }), "");
  EXPECT_NE(message_of([&] { plan.emit_forward(0, layer("pool1")); }), "");
}

TEST_F(ByHand, SomeRowsWithoutTheActivationAreEnoughForAnError) {
  PlanBuilder plan = builder();
  plan.emit_forward(0, layer("conv1"));
  PlanBinding some = plan.describe(0, layer("conv1"));
  some.activation = TANDEM_ACTIVATION_NONE;
  plan.slice_rows(some, 0, {8, 9});
  emit(plan, std::move(some), "the last row again");
  EXPECT_THAT(message_of([&] { plan.emit_forward(0, layer("pool1")); }), HasSubstr("reads"));
  EXPECT_THAT(message_of([&] { plan.emit_forward(0, layer("relu1")); }), HasSubstr("second time"));
}

TEST_F(ByHand, AddingUpSlicesDoesNoActivationAlong) {
  PlanBuilder plan = builder();
  PlanBinding part = plan.describe(0, layer("fc2"));
  part.adds_to_output = true;
  EXPECT_THAT(message_of([&] { emit(plan, std::move(part), "forward fc2, second part"); }),
              AllOf(HasSubstr("by_hand"), HasSubstr("second part"), HasSubstr("adds")));
}

TEST_F(ByHand, AddingToWhatIsRectifiedIsAnError) {
  PlanBuilder plan = builder();
  emit(plan, plan.describe(0, layer("fc2")), "forward fc2");
  PlanBinding part = plan.describe(0, layer("fc2"));
  part.adds_to_output = true;
  part.activation = TANDEM_ACTIVATION_NONE;
  EXPECT_THAT(message_of([&] { emit(plan, std::move(part), "forward fc2, second part"); }),
              HasSubstr("adds to memory to which layer 'relu4' (ReLU) was applied"));
}

TEST_F(ByHand, ResultsWithoutTheActivationDoNotReachTheHost) {
  PlanBuilder plan = builder();
  emit_alone(plan, "fc3");
  const int tensor = net_.layers[static_cast<size_t>(layer("fc3"))].outputs[0];
  const Region source = plan.tensor(0, tensor);
  const int host = plan.buffer({"kept", TANDEM_HOST, BufferKind::persistent, source.bytes, 1, {}});
  EXPECT_THAT(message_of([&] {
                plan.emit_copy("copy results", Stage::report, -1, {{0, StreamKind::copy}},
                               {{source, {host, 0, source.bytes}}});
              }),
              HasSubstr("relu5"));
}

}  // namespace
}  // namespace tandem::test
