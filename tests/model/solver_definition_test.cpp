#include "core/model/file/solver_definition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/model/adapted/models.h"
#include "core/model/file/definition.h"
#include "core/model/file/learning_rate.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace tandem {
namespace {

using test::message_of;
using testing::HasSubstr;

SolverDefinition read(const std::string& text) {
  const test::TempFolder folder;
  return read_solver(folder.write("solver.prototxt", text));
}
std::string failure_of_solver(const std::string& text) {
  return message_of([&] { (void)read(text); });
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

TEST(SolverDefinition, NotesFieldsWithoutAnEffect) {
  const SolverDefinition solver = read("base_lr: 1\nsolver_mode: GPU debug_info: true");
  ASSERT_EQ(solver.notes.size(), 2u);
  EXPECT_THAT(solver.notes[0], testing::MatchesRegex("solver: solver_mode is not used: devices are "
                                                     "chosen with --devices \\(.*:2:1\\)"));
}

TEST(SolverDefinition, NotesASecondTestIterAndNoLength) {
  const SolverDefinition solver = read("base_lr: 1 max_iter: 0\ntest_iter: 5 test_iter: 7");
  EXPECT_EQ(solver.test_steps, 5);
  EXPECT_TRUE(solver.has_rate);
  ASSERT_EQ(solver.notes.size(), 2u);
  EXPECT_THAT(solver.notes[0], HasSubstr("only the first test_iter counts (5)"));
  EXPECT_THAT(solver.notes[1], HasSubstr("max_iter 0 is no length"));
  EXPECT_FALSE(read("momentum: 0.9").has_rate);
}

TEST(SolverDefinition, ANetIsNamedAsOne) {
  EXPECT_THAT(failure_of_solver("name: 'a' layer { name: 'b' type: 'ReLU' }"),
              HasSubstr("is a net, not a solver: give it to --net"));
}

TEST(SolverDefinition, NotesFieldsOfAnotherTypeOrPolicy) {
  const SolverDefinition solver =
      read("type: 'SGD' lr_policy: 'fixed' momentum2: 0.9 delta: 1\ngamma: 0.1 stepvalue: 5");
  ASSERT_EQ(solver.notes.size(), 4u);
  EXPECT_THAT(solver.notes[0], HasSubstr("solver: momentum2 is not used: type 'SGD' has none ("));
  EXPECT_THAT(solver.notes[2], testing::AllOf(HasSubstr("gamma is not used: lr_policy 'fixed'"),
                                              HasSubstr(":2:1)")));
  EXPECT_TRUE(read("type: 'Adam' momentum2: 0.9 delta: 1").notes.empty());
  // As runs write them.
  EXPECT_TRUE(read(write_solver(read("type: 'Adam' momentum: 0.8"))).notes.empty());
}

TEST(SolverDefinition, AnUnknownFieldSuggestsTheNearName) {
  EXPECT_THAT(failure_of_solver("base_lr: 1\nmomentun: 0.9"),
              testing::AllOf(HasSubstr("solver: unknown field 'momentun' (did you mean "
                                       "'momentum'?)"),
                             HasSubstr("solver.prototxt:2:1)")));
}

TEST(SolverDefinition, NotesOnceThatDevicesAreChosenOtherwise) {
  EXPECT_EQ(read("solver_mode: GPU device_id: 1").notes.size(), 1u);
}

TEST(SolverDefinition, KnowsEveryTypeByNameAndTheOldOnesByEnum) {
  for (const std::string& type : solver_types()) {
    const std::string momentum = type == "AdaDelta" ? " momentum: 0.9" : "";
    EXPECT_EQ(read("type: '" + type + "'" + momentum).type, type);
  }
  EXPECT_EQ(read("solver_type: NESTEROV").type, "Nesterov");
  EXPECT_EQ(read("solver_type: 5").type, "Adam");
  EXPECT_THAT(
      failure_of_solver("type: 'Adem'"),
      HasSubstr("solver: type is 'Adem', but must be one of SGD, Nesterov, AdaGrad, RMSProp, "
                "AdaDelta, Adam, AdamW, LARS (did you mean 'Adam'?)"));
  EXPECT_THAT(failure_of_solver("type: 'Adam' solver_type: SGD"), HasSubstr("keep one of them"));
}

TEST(SolverDefinition, ReadsTheRulesConstants) {
  const SolverDefinition solver = read(
      "type: 'Adam' momentum: 0.8 momentum2: 0.99 delta: 0.1 rms_decay: 0.5 iter_size: 4\n"
      "clip_gradients: 35 regularization_type: 'L1' trust_coefficient: 0.02 average_loss: 40\n"
      "test_initialization: false snapshot_prefix: 'a/b' warmup_iter: 5 warmup_start_lr: 0.001");
  EXPECT_EQ(solver.momentum2, 0.99);
  EXPECT_EQ(solver.delta, 0.1);
  EXPECT_EQ(solver.rms_decay, 0.5);
  EXPECT_EQ(solver.micro_batches_per_step, 4);
  EXPECT_EQ(solver.clip_gradients, 35);
  EXPECT_EQ(solver.regularization, "L1");
  EXPECT_EQ(solver.trust_coefficient, 0.02);
  EXPECT_EQ(solver.average_loss, 40);
  EXPECT_FALSE(solver.test_initialization);
  EXPECT_EQ(solver.snapshot_prefix, "a/b");
  EXPECT_EQ(solver.warm_up_steps, 5);
  EXPECT_EQ(solver.warm_up_rate, 0.001);
  EXPECT_EQ(read("clip_gradients: -1").clip_gradients, 0);
}

TEST(SolverDefinition, WrittenAndReadAgainIsTheSame) {
  const SolverDefinition solver = read(
      "type: 'Adam' base_lr: 0.1 lr_policy: 'multistep' gamma: 0.3 stepvalue: 3 stepvalue: 7\n"
      "momentum: 0.8 momentum2: 0.99 delta: 0.001 iter_size: 4 clip_gradients: 0.7 max_iter: 9\n"
      "regularization_type: 'L1' weight_decay: 0.3 average_loss: 40 test_interval: 5\n"
      "test_iter: 6 test_initialization: false snapshot: 3 snapshot_prefix: 'it\\'s' "
      "warmup_iter: 5 warmup_start_lr: 0.001");
  const std::string text = write_solver(solver);
  const SolverDefinition again = read(text);
  EXPECT_EQ(write_solver(again), text);
  EXPECT_EQ(again.step_values, solver.step_values);
  EXPECT_EQ(again.snapshot_prefix, "it's");
  EXPECT_EQ(again.test_initialization, false);
  EXPECT_EQ(again.momentum2, 0.99);
}

TEST(SolverDefinition, ChangesReplaceTheFieldsOfTheFile) {
  const test::TempFolder folder;
  const auto file = folder.write("solver.prototxt",
                                 "solver_type: SGD momentum: 0.9 stepvalue: 5\n"
                                 "lr_policy: 'multistep' gamma: 0.1");
  const SolverDefinition solver =
      read_solver(file, {{"type", "nesterov"}, {"stepvalue", "3,4"}, {"gamma", "0.5"}});
  EXPECT_EQ(solver.type, "Nesterov");
  EXPECT_EQ(solver.step_values, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(solver.gamma, 0.5);
  EXPECT_EQ(solver.momentum, 0.9);
  EXPECT_THAT(message_of([&] {
                (void)read_solver(file, {{"momentum", "2"}});
              }),
              HasSubstr("momentum is '2', but must be at least 0 and below 1 (--solver-option)"));
}

TEST(SolverDefinition, WithoutAFileHasTheUsualConstantsOfItsType) {
  for (const std::string& type : solver_types()) EXPECT_EQ(default_solver(type).type, type);
  EXPECT_EQ(default_solver("adam").base_rate, 0.001);
  EXPECT_EQ(default_solver("adam", {{"base_lr", "0.5"}}).base_rate, 0.5);
}

TEST(SolverDefinition, ContradictingSettingsAreOneMessageWithALocation) {
  EXPECT_THAT(failure_of_solver("net: 'a'\ntrain_net: 'b'"),
              testing::AllOf(HasSubstr("net and train_net both name the net to train"),
                             HasSubstr("solver.prototxt:2:1)")));
  EXPECT_THAT(failure_of_solver("test_net: 'a'"), HasSubstr("test_net without a net to train"));
  EXPECT_THAT(failure_of_solver("train_net: 'a' test_interval: 5"),
              HasSubstr("there is no net to test"));
  EXPECT_THAT(failure_of_solver("type: 'RMSProp'\nmomentum: 0.9"),
              testing::AllOf(HasSubstr("momentum is 0.9, but must be 0: type 'RMSProp' has none"),
                             HasSubstr("solver.prototxt:2:1)")));
  EXPECT_THAT(failure_of_solver("type: 'AdaDelta'"), HasSubstr("type 'AdaDelta' needs momentum"));
  EXPECT_THAT(failure_of_solver("type: 'AdamW' regularization_type: 'L1'"),
              HasSubstr("neither L1 nor L2"));
  EXPECT_THAT(failure_of_solver("base_lr: 1\nlr_policy: 'step' gamma: 0.1"),
              testing::AllOf(HasSubstr("lr_policy 'step' needs stepsize"),
                             HasSubstr("solver.prototxt:2:1)")));
  EXPECT_THAT(failure_of_solver("lr_policy: 'step' stepsize: 5"), HasSubstr("needs gamma"));
  EXPECT_THAT(failure_of_solver("lr_policy: 'cosine'"), HasSubstr("needs max_iter"));
  EXPECT_THAT(failure_of_solver("warmup_start_lr: 0.1"), HasSubstr("needs warmup_iter"));
}

TEST(SolverDefinition, RefusesInvalidValues) {
  EXPECT_THAT(failure_of_solver("base_lr: -1"),
              HasSubstr("base_lr is '-1', but must be at least 0"));
  EXPECT_THAT(failure_of_solver("base_lr: fast"),
              HasSubstr("base_lr is 'fast', but must be a finite number"));
  EXPECT_THAT(
      failure_of_solver("base_lr: 1e39"),
      HasSubstr("base_lr is '1e39', but must be a finite number between -3.4e38 and 3.4e38"));
  EXPECT_THAT(failure_of_solver("momentum: 1.5"),
              HasSubstr("momentum is '1.5', but must be at least 0 and below 1"));
  EXPECT_THAT(failure_of_solver("momentum2: 1"), HasSubstr("must be at least 0 and below 1"));
  EXPECT_THAT(failure_of_solver("delta: 0"), HasSubstr("delta is '0', but must be above 0"));
  EXPECT_THAT(failure_of_solver("iter_size: 0"),
              HasSubstr("iter_size is '0', but must be from 1 to 100000"));
  EXPECT_THAT(failure_of_solver("clip_gradients: 0"), HasSubstr("above 0, or -1 for no clipping"));
  EXPECT_THAT(failure_of_solver("regularization_type: 'L3'"), HasSubstr("one of L1, L2"));
  EXPECT_THAT(failure_of_solver("max_iter: 1.5"),
              HasSubstr("max_iter is '1.5', but must be an integer"));
  EXPECT_THAT(failure_of_solver("lr_policy: 'stop'"),
              HasSubstr("lr_policy is 'stop', but must be one of fixed, step, exp, inv, multistep, "
                        "poly, sigmoid, cosine (did you mean 'step'?)"));
  EXPECT_THAT(failure_of_solver("lr_policy: 'step'"), HasSubstr("lr_policy 'step' needs stepsize"));
  EXPECT_THAT(failure_of_solver("lr_policy: 'poly'"), HasSubstr("needs max_iter"));
  EXPECT_THAT(failure_of_solver("stepvalue: 5 stepvalue: 5"),
              HasSubstr("above the stepvalue before it, 5"));
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
  EXPECT_DOUBLE_EQ(rate("lr_policy: 'sigmoid' gamma: -1 stepsize: 10", 12),
                   0.5 / (1 + std::exp(2)));
}

TEST(LearningRate, FollowsHalfACosine) {
  const std::string text = "lr_policy: 'cosine' max_iter: 100";
  EXPECT_DOUBLE_EQ(rate(text, 0), 0.5);
  EXPECT_DOUBLE_EQ(rate(text, 25), 0.25 * (1 + std::sqrt(0.5)));
  EXPECT_DOUBLE_EQ(rate(text, 50), 0.25);
  EXPECT_NEAR(rate(text, 100), 0, 1e-15);
}

TEST(LearningRate, RisesLinearlyBeforeItsPolicyBegins) {
  const std::string text =
      "lr_policy: 'step' gamma: 0.1 stepsize: 6 warmup_iter: 4 warmup_start_lr: 0.1";
  EXPECT_DOUBLE_EQ(rate(text, 0), 0.1);
  EXPECT_DOUBLE_EQ(rate(text, 1), 0.2);
  EXPECT_DOUBLE_EQ(rate(text, 3), 0.4);
  EXPECT_DOUBLE_EQ(rate(text, 4), 0.5);
  EXPECT_DOUBLE_EQ(rate(text, 6), 0.05);
}

TEST(LearningRate, MultistepDropsAtEachStepValue) {
  const std::string text = "lr_policy: 'multistep' gamma: 0.5 stepvalue: 4 stepvalue: 6";
  EXPECT_DOUBLE_EQ(rate(text, 3), 0.5);
  EXPECT_DOUBLE_EQ(rate(text, 4), 0.25);
  EXPECT_DOUBLE_EQ(rate(text, 5), 0.25);
  EXPECT_DOUBLE_EQ(rate(text, 6), 0.125);
}

TEST(LearningRate, OfAPolicyFittedToAThirdOfTheStepsIsTheSameAtTheSameShares) {
  for (const char* policy :
       {"'step' gamma: 0.1 stepsize: 30", "'multistep' gamma: 0.5 stepvalue: 30 stepvalue: 60",
        "'exp' gamma: 0.98", "'inv' gamma: 0.1 power: 0.75", "'sigmoid' gamma: -0.1 stepsize: 30",
        "'fixed'"}) {
    const SolverDefinition whole = read(std::string("base_lr: 0.5 lr_policy: ") + policy);
    SolverDefinition third = whole;
    fit_policy(third, 1.0 / 3);
    for (const int64_t step : {0, 27, 30, 57, 60, 90}) {
      EXPECT_NEAR(learning_rate(third, step / 3), learning_rate(whole, step), 1e-12)
          << policy << " at step " << step;
    }
  }
}

TEST(SolverDefinition, EveryModelHasASolver) {
  for (const std::string name : {"alexnet", "cifar10_quick", "shapes_quick"}) {
    const auto net = find_net(name);
    const SolverDefinition solver = read_solver(net.parent_path() / (name + "_solver.prototxt"));
    EXPECT_EQ(solver.momentum, 0.9) << name;
    EXPECT_TRUE(solver.notes.empty()) << name;
  }
}

}  // namespace
}  // namespace tandem
