#include "core/model/solver_definition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/definition.h"
#include "tests/model/thrown.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::thrown;
using testing::HasSubstr;

SolverDefinition read(const std::string& text) {
  const test::TempFolder folder;
  return read_solver(folder.write("solver.prototxt", text));
}
std::string failure(const std::string& text) {
  return thrown([&] { (void)read(text); });
}

TEST(SolverDefinition, ReadsCaffesFields) {
  const SolverDefinition solver = read(
      "net: 'n.prototxt' test_iter: 100 test_interval: 500 base_lr: 0.001 momentum: 0.9\n"
      "weight_decay: 0.004 lr_policy: 'step' gamma: 0.1 stepsize: 100 display: 10 max_iter: 4000\n"
      "snapshot: 200 random_seed: 7 type: 'SGD' regularization_type: 'L2'");
  EXPECT_EQ(solver.net, "n.prototxt");
  EXPECT_EQ(solver.test_steps, 100);
  EXPECT_EQ(solver.test_interval, 500);
  EXPECT_EQ(solver.base_rate, 0.001);
  EXPECT_EQ(solver.momentum, 0.9);
  EXPECT_EQ(solver.weight_decay, 0.004);
  EXPECT_EQ(solver.rate_policy, "step");
  EXPECT_EQ(solver.gamma, 0.1);
  EXPECT_EQ(solver.step_size, 100);
  EXPECT_EQ(solver.display, 10);
  EXPECT_EQ(solver.max_steps, 4000);
  EXPECT_EQ(solver.snapshot, 200);
  EXPECT_EQ(solver.seed, 7u);
  EXPECT_TRUE(solver.notes.empty());
}

TEST(SolverDefinition, NotesWhatItReadsAndLeavesUnused) {
  const SolverDefinition solver = read("base_lr: 1\nsolver_mode: GPU snapshot_prefix: 'x'");
  ASSERT_EQ(solver.notes.size(), 2u);
  EXPECT_THAT(solver.notes[0], testing::MatchesRegex("solver: solver_mode is not used: devices are "
                                                     "chosen with --devices \\(.*:2:1\\)"));
}

TEST(SolverDefinition, AnUnknownFieldSuggestsTheNearName) {
  EXPECT_THAT(failure("base_lr: 1\nmomentun: 0.9"),
              testing::AllOf(HasSubstr("solver: unknown field 'momentun' (did you mean "
                                       "'momentum'?)"),
                             HasSubstr("solver.prototxt:2:1)")));
}

TEST(SolverDefinition, AnotherTypeNamesTheKnownOnes) {
  EXPECT_THAT(failure("type: 'Adam'"), HasSubstr("solver: type is 'Adam', but must be SGD ("));
}

TEST(SolverDefinition, RefusesWhatWouldTrainDifferently) {
  EXPECT_THAT(failure("iter_size: 2"), HasSubstr("iter_size is '2', but must be 1: give the whole "
                                                 "batch with --batch"));
  EXPECT_THAT(failure("clip_gradients: 35"), HasSubstr("clip_gradients is not supported"));
  EXPECT_THAT(failure("regularization_type: 'L1'"), HasSubstr("is 'L1', but must be L2"));
  EXPECT_EQ(read("iter_size: 1 clip_gradients: -1").notes.size(), 0u);
}

TEST(SolverDefinition, RefusesValuesThatMakeNoSense) {
  EXPECT_THAT(failure("base_lr: -1"), HasSubstr("base_lr is '-1', but must be at least 0"));
  EXPECT_THAT(failure("base_lr: fast"),
              HasSubstr("base_lr is 'fast', but must be a finite number"));
  EXPECT_THAT(failure("momentum: 1.5"), HasSubstr("momentum is 1.5, but must be below 1"));
  EXPECT_THAT(failure("max_iter: 1.5"), HasSubstr("max_iter is '1.5', but must be an integer"));
  EXPECT_THAT(failure("lr_policy: 'stop'"),
              HasSubstr("lr_policy is 'stop', but must be one of fixed, step, exp, inv, multistep, "
                        "poly, sigmoid (did you mean 'step'?)"));
  EXPECT_THAT(failure("lr_policy: 'step'"), HasSubstr("lr_policy 'step' needs stepsize"));
  EXPECT_THAT(failure("lr_policy: 'poly'"), HasSubstr("needs max_iter"));
  EXPECT_THAT(failure("stepvalue: 5 stepvalue: 5"), HasSubstr("above the stepvalue before it, 5"));
}

TEST(SolverDefinition, HasTheStatesOfItsNets) {
  const SolverDefinition solver = read(
      "train_state { stage: 'a' level: 2 } test_state { stage: 'b' } test_state { stage: 'c' }");
  EXPECT_EQ(solver.train_state, (NetState{2, {"a"}}));
  ASSERT_EQ(solver.test_states.size(), 2u);
  EXPECT_EQ(solver.test_states[0], (NetState{0, {"b"}}));
  ASSERT_EQ(solver.notes.size(), 1u);
  EXPECT_THAT(solver.notes[0], HasSubstr("only the first test_state is tested (stages: b)"));
}

TEST(SolverDefinition, MayHoldItsNet) {
  const std::string relu = "layer { name: 'r' type: 'ReLU' bottom: 'data' top: 'r' }";
  EXPECT_EQ(read("net_param { name: 'n' " + relu + " }").net_definition->name, "n");
  const SolverDefinition two =
      read("test_net_param { name: 't' " + relu + " } train_net_param { name: 'n' " + relu + " }");
  ASSERT_EQ(two.net_definition->layers.size(), 2u);
  EXPECT_TRUE(two.net_definition->layers[0].in_phase(TANDEM_TRAIN));
  EXPECT_FALSE(two.net_definition->layers[0].in_phase(TANDEM_TEST));
  EXPECT_TRUE(two.net_definition->layers[1].in_phase(TANDEM_TEST));
}

double rate(const std::string& text, int64_t step) {
  return learning_rate(read("base_lr: 0.5 " + text), step);
}

TEST(LearningRate, FollowsCaffesFormulas) {
  EXPECT_DOUBLE_EQ(rate("lr_policy: 'fixed'", 1000), 0.5);
  EXPECT_DOUBLE_EQ(rate("lr_policy: 'step' gamma: 0.1 stepsize: 10", 9), 0.5);
  EXPECT_DOUBLE_EQ(rate("lr_policy: 'step' gamma: 0.1 stepsize: 10", 20), 0.5 * 0.1 * 0.1);
  EXPECT_DOUBLE_EQ(rate("lr_policy: 'exp' gamma: 0.5", 3), 0.0625);
  EXPECT_DOUBLE_EQ(rate("lr_policy: 'inv' gamma: 1 power: 2", 3), 0.5 / 16);
  EXPECT_DOUBLE_EQ(rate("lr_policy: 'poly' power: 2 max_iter: 100", 50), 0.125);
  EXPECT_DOUBLE_EQ(rate("lr_policy: 'poly' power: 2 max_iter: 100", 200), 0);
  EXPECT_DOUBLE_EQ(rate("lr_policy: 'sigmoid' gamma: -1 stepsize: 10", 10), 0.25);
}

TEST(LearningRate, MultistepDropsAtEachStepValue) {
  const std::string text = "lr_policy: 'multistep' gamma: 0.5 stepvalue: 4 stepvalue: 6";
  EXPECT_DOUBLE_EQ(rate(text, 3), 0.5);
  EXPECT_DOUBLE_EQ(rate(text, 4), 0.25);
  EXPECT_DOUBLE_EQ(rate(text, 5), 0.25);
  EXPECT_DOUBLE_EQ(rate(text, 6), 0.125);
}

TEST(SolverDefinition, OursAreBesideTheirNets) {
  for (const std::string name : {"alexnet", "cifar10_quick", "shapes_quick"}) {
    const auto net = find_net(name);
    const SolverDefinition solver = read_solver(net.parent_path() / (name + "_solver.prototxt"));
    EXPECT_EQ(solver.momentum, 0.9) << name;
    EXPECT_TRUE(solver.notes.empty()) << name;
  }
}

}  // namespace
}  // namespace tandem
