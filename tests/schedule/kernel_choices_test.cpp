// What kernels choose by measuring: kept by the use it was measured for, and taken again.
#include "core/schedule/kernels/kernel_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/schedule/probe_plan.h"

namespace tandem {
namespace {

using testing::HasSubstr;

using test::Machines;
using test::message_of;
using test::probe_net;
using test::probe_plan;

// The name of the layer's use of so many rows on the machine.
std::string use_of(const Machines& on, const Net& net, int64_t rows, int layer = 0) {
  PlanBinding use;
  use.layer = layer;
  use.rows.end = rows;
  return choice_key(std::string("cpu ") + on.machine.device_info(0).name, net, use);
}

TEST(Kernels, ThatMeasureAreKeptByTheUseTheyMeasured) {
  Plan plan = probe_plan(2);
  const Net net = probe_net();
  Machines on(2);
  Tuning tuning{true, {}};
  const Kernels kernels(plan, net, test::registry(), on.runtime, &tuning);
  EXPECT_THAT(kernels.algorithm(0), testing::StartsWith("measured: number "));
  EXPECT_NE(kernels.algorithm(0), kernels.algorithm(1)) << "3 rows and 2 are different uses";
  EXPECT_EQ(tuning.choices, (KernelChoices{{use_of(on, net, 3), kernels.algorithm(0)},
                                           {use_of(on, net, 2), kernels.algorithm(1)}}));
}

TEST(Kernels, OfTheSameUseTakeTheSameAlgorithmOnAllDevices) {
  Plan plan = probe_plan(2);
  plan.bindings[0].rows.end = 2;
  const Net net = probe_net();
  Machines on(2);
  Tuning tuning{true, {}};
  const Kernels kernels(plan, net, test::registry(), on.runtime, &tuning);
  EXPECT_EQ(kernels.algorithm(0), kernels.algorithm(1));
  EXPECT_EQ(tuning.choices.size(), 1U);
}

TEST(Kernels, TakeAgainWhatTheyTookBeforeAndMeasureOnlyWhatIsNew) {
  const Net net = probe_net();
  Machines on(2);
  Tuning tuning{true, {{use_of(on, net, 3), "measured: once"}}};
  Plan plan = probe_plan(2);
  const Kernels kernels(plan, net, test::registry(), on.runtime, &tuning);
  EXPECT_EQ(kernels.algorithm(0), "measured: once");
  EXPECT_THAT(kernels.algorithm(1), testing::StartsWith("measured: number "));
  tuning.measures = false;
  const KernelChoices before = tuning.choices;
  Plan again = probe_plan(2);
  const Kernels resumed(again, net, test::registry(), on.runtime, &tuning);
  EXPECT_EQ(resumed.algorithm(0), kernels.algorithm(0));
  EXPECT_EQ(resumed.algorithm(1), kernels.algorithm(1));
  EXPECT_EQ(tuning.choices, before);
}

// data -> double1 -> double2 -> ..., as many bindings of one device; each layer's attributes are
// its own.
Net chain_net(size_t layers) {
  Net net = probe_net();
  for (size_t i = 1; i < layers; ++i) {
    net.layers.push_back(net.layers[0]);
    Layer& layer = net.layers.back();
    layer.name = fmt::format("double{}", i + 1);
    layer.attributes = std::make_shared<Attributes>();
    layer.inputs = {int(i)};
    layer.outputs = {int(i) + 1};
    net.tensors.push_back(net.tensors[1]);
    net.tensors.back().producer = int(i);
  }
  return net;
}
// The algorithms of the chain's layers, by one binding each.
std::vector<std::string> algorithms_of(const Net& net, Tuning& tuning) {
  Machines on(1);
  Plan plan = probe_plan(1);
  const size_t layers = net.layers.size();
  plan.bindings.resize(layers, plan.bindings[0]);
  for (size_t i = 0; i < layers; ++i) plan.bindings[i].layer = int(i);
  const Kernels kernels(plan, net, test::registry(), on.runtime, &tuning);
  std::vector<std::string> algorithms;
  for (size_t i = 0; i < layers; ++i) algorithms.push_back(kernels.algorithm(int(i)));
  return algorithms;
}

TEST(Kernels, OfLayersAlikeShareAMeasurementAndKeepItForEach) {
  Tuning tuning{true, {}};
  const std::vector<std::string> algorithms = algorithms_of(chain_net(3), tuning);
  EXPECT_THAT(algorithms[0], testing::StartsWith("measured: number "));
  EXPECT_EQ(algorithms, std::vector<std::string>(3, algorithms[0]));
  EXPECT_EQ(tuning.choices.size(), 3U);
  for (const auto& choice : tuning.choices) EXPECT_EQ(choice.second, algorithms[0]);
}

TEST(Kernels, OfLayersThatDifferMeasureEach) {
  const auto measures_both = [](const auto& change) {
    Net net = chain_net(2);
    change(net, net.layers[1]);
    Tuning tuning{true, {}};
    const std::vector<std::string> algorithms = algorithms_of(net, tuning);
    return algorithms[0] != algorithms[1];
  };
  const auto with_value = [](int64_t value) {
    auto attributes = std::make_shared<Attributes>();
    attributes->set("stride", {value, true, {}});
    return attributes;
  };
  EXPECT_FALSE(measures_both([](Net&, Layer& layer) { layer.random_index = 7; }));
  EXPECT_TRUE(measures_both([](Net& net, Layer&) { net.tensors[2].shape.c = 3; }));
  EXPECT_TRUE(measures_both([](Net& net, Layer&) { net.tensors[2].layout = TANDEM_NHWC; }));
  EXPECT_TRUE(measures_both([](Net& net, Layer&) { net.tensors[2].dtype = TANDEM_BFLOAT16; }));
  EXPECT_TRUE(measures_both([](Net&, Layer& layer) { layer.wants_backward_data = false; }));
  EXPECT_TRUE(measures_both([](Net&, Layer& layer) { layer.allows_tf32 = true; }));
  EXPECT_TRUE(measures_both([&](Net& net, Layer& layer) {
    net.layers[0].attributes = with_value(1);
    layer.attributes = with_value(2);
  }));
  EXPECT_FALSE(measures_both([&](Net& net, Layer& layer) {
    net.layers[0].attributes = with_value(2);
    layer.attributes = with_value(2);
  }));
  const auto with_filler = [](const char* type) {
    auto attributes = std::make_shared<Attributes>();
    attributes->set("filler", {Filler{.type = type}, true, {}});
    return attributes;
  };
  EXPECT_FALSE(measures_both([&](Net& net, Layer& layer) {
    net.layers[0].attributes = with_filler("msra");
    layer.attributes = with_filler("xavier");
  })) << "how weights begin takes no time";
}

TEST(Kernels, OfLayersAlikeTakeWhatIsRecordedForEach) {
  const Net net = chain_net(3);
  Machines on(1);
  Tuning tuning{true, {{use_of(on, net, 5, 1), "measured: once"}}};
  const std::vector<std::string> algorithms = algorithms_of(net, tuning);
  EXPECT_THAT(algorithms[0], testing::StartsWith("measured: number "));
  EXPECT_EQ(algorithms[1], "measured: once") << "a resumed run has the same bits";
  EXPECT_EQ(algorithms[2], algorithms[0]);
  tuning = {false, {{use_of(on, net, 5, 0), "measured: once"}}};
  EXPECT_THAT(algorithms_of(net, tuning)[1], testing::StartsWith("5x2x1x1"))
      << "nothing new is chosen by measuring";
}

TEST(Kernels, DoNotMeasureUnlessTheyMay) {
  const Net net = probe_net();
  Machines on(1);
  Tuning tuning{false, {}};
  Plan plan = probe_plan(1);
  const Kernels kernels(plan, net, test::registry(), on.runtime, &tuning);
  EXPECT_EQ(kernels.algorithm(0), "5x2x1x1 of 5 from 0, flags 3, slice 0 to 2, device 0");
  EXPECT_TRUE(tuning.choices.empty());
}

TEST(Kernels, AnAlgorithmThatCannotBeHadAgainIsRefusedWithTheRecord) {
  const Net net = probe_net();
  Machines on(1);
  Tuning tuning{false, {{use_of(on, net, 5), "measured: gone"}}};
  Plan plan = probe_plan(1);
  EXPECT_EQ(message_of([&] { Kernels(plan, net, test::registry(), on.runtime, &tuning); }),
            "layer 'double1' (probe.Double): there is no algorithm 'gone' (probe.prototxt:4); the "
            "run's record says to take 'measured: gone' again: begin a new run to choose anew");
}

TEST(Kernels, ThatTakeAnotherAlgorithmThanTheGivenOneAreAnError) {
  const Net net = probe_net();
  Machines on(1);
  Tuning tuning{false, {{use_of(on, net, 5), "measured: moody"}}};
  Plan plan = probe_plan(1);
  EXPECT_EQ(
      message_of([&] { Kernels(plan, net, test::registry(), on.runtime, &tuning); }),
      "layer 'double1' (probe.Double): its kernel was to take the algorithm 'measured: moody' "
      "again, but took 'measured: another' (probe.prototxt:4)");
}

TEST(KernelChoices, DistinguishWhatChangesHowFastAlgorithmsAre) {
  Net net = probe_net();
  PlanBinding use;
  use.layer = 0;
  use.rows.begin = 3;
  use.rows.end = 5;
  EXPECT_EQ(choice_key("cuda G", net, use), "cuda G: double1, training, 2 rows, float32");
  net.layers[0].allows_tf32 = true;
  net.phase = TANDEM_TEST;
  use.slice.begin = 1;
  use.slice.end = 2;
  use.input_slice.begin = 0;
  use.input_slice.end = 7;
  use.adds_to_output = true;
  EXPECT_EQ(choice_key("cuda G", net, use),
            "cuda G: double1, testing, 2 rows, tf32, slice 1 to 2, input 0 to 7, added");
  net.tensors[size_t(net.layers[0].inputs[0])].layout = TANDEM_NHWC;
  EXPECT_THAT(choice_key("cuda G", net, use), HasSubstr("2 rows, tf32, NHWC, slice 1 to 2"));
}

TEST(KernelChoices, AreCountedForPeople) {
  const KernelChoices before{{"cuda G: a", "x"}, {"cpu C: a", "y"}};
  Tuning tuning{true, before};
  EXPECT_EQ(tuning_text({true, {{"cuda G: a", "x"}}}, {}, "cpu"),
            "--tune changes nothing here: no kernel of this net on cpu devices chooses by "
            "measuring");
  tuning.choices["cuda G: b"] = "z";
  EXPECT_EQ(tuning_text(tuning, before, "cuda"),
            "algorithms chosen by measuring: 1; 1 of an earlier run");
}

TEST(KernelChoices, ThatCouldNotBeMeasuredAreReported) {
  const Tuning tuning{true,
                      {{"cuda G: a", "measured: x; by a model"},
                       {"cuda G: b", "measured: y"},
                       {"cpu C: a", "measured: z; by a model"}}};
  EXPECT_EQ(tuning_text(tuning, {}, "cuda"),
            "algorithms chosen by measuring: 2; 0 of an earlier run; of these 1 chosen at least in "
            "part by a model, as measuring them found no memory or nothing that may be used");
}

}  // namespace
}  // namespace tandem
