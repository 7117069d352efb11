// Kernels of a layer (tests/schedule/probe) prepared for plans' bindings, and run by the executor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/schedule/handmade.h"

namespace tandem {
namespace {

using test::compute;
using test::error_of;
using test::Maker;
using testing::ElementsAre;
using testing::HasSubstr;

// data -> probe.Double -> out; batch 5 of `channels` values.
Net probe_net(int64_t channels = 2, const std::string& type = "probe.Double") {
  Net net;
  net.name = "probe";
  net.batch = 5;
  net.layers.resize(1);
  net.tensors.resize(2);
  net.weights.resize(1);
  Layer& layer = net.layers[0];
  layer.name = "double1";
  layer.type = &test::registry().layer_type(type);
  layer.attributes = std::make_shared<Attributes>();
  layer.inputs = {0};
  layer.outputs = {1};
  layer.weights = {0};
  layer.loss_weights = {0};
  layer.wants_backward_data = layer.wants_backward_weights = true;
  layer.location = {"probe.prototxt", 4, 0};
  for (Tensor& tensor : net.tensors) tensor.shape = {5, channels, 1, 1};
  net.tensors[1].producer = 0;
  net.weights[0].shape = {1, 1, 1, 1};
  net.weights[0].count = 1;
  net.weight_floats = 16;
  net.data = 0;
  return net;
}

// Rows split over the devices: forward, then both halves of backward, the weights' gradient twice.
Plan probe_plan(int devices) {
  Maker maker(devices);
  maker.plan.batch = 5;
  for (int device = 0; device < devices; ++device) {
    const std::string at = " @" + std::to_string(device);
    const Rows rows = share(5, devices, device);
    PlanBinding binding;
    binding.layer = 0;
    binding.device = device;
    binding.row_begin = rows.begin;
    binding.row_end = rows.end;
    const int64_t count = rows.count() * 2;
    const Region in = maker.persistent("in", device, count),
                 out = maker.persistent("out", device, count),
                 out_gradient = maker.persistent("out gradient", device, count),
                 in_gradient = maker.persistent("in gradient", device, count),
                 weights = maker.constant("weights", device, {0.5F}),
                 gradients = maker.persistent("gradients", device, 1),
                 saved = maker.floats("saved", device, 0),
                 scratch = maker.floats("scratch", device, 0);
    binding.inputs = {in};
    binding.outputs = {out};
    binding.weights = {weights};
    binding.input_gradients = {in_gradient};
    binding.output_gradients = {out_gradient};
    binding.weight_gradients = {gradients};
    binding.saved = saved.buffer;
    binding.scratch = binding.backward_scratch = scratch.buffer;
    maker.plan.bindings.push_back(binding);
    maker.task("forward" + at, {compute(device)}, {in, weights}, {out, saved, scratch},
               LayerWork{device, LayerPass::forward});
    maker.task("backward_weights" + at, {compute(device)}, {saved, out_gradient}, {gradients},
               LayerWork{device, LayerPass::backward_weights});
    maker.task("backward" + at, {compute(device)}, {saved, out_gradient, gradients},
               {in_gradient, gradients}, LayerWork{device, LayerPass::backward, true});
  }
  return maker.derived();
}

struct Machines {
  explicit Machines(int count)
      : machine(test::registry().backend("cpu"), test::devices("cpu", count), {}),
        runtime(machine) {}
  Machine machine;
  Runtime runtime;
};

TEST(Kernels, AreToldTheirShareOfTheBatchAndWhatIsWanted) {
  Plan plan = probe_plan(2);
  const Net net = probe_net();
  Machines on(2);
  const Kernels kernels(plan, net, test::registry(), on.runtime);
  EXPECT_EQ(kernels.algorithm(0), "3x2x1x1 of 5 from 0, flags 3, slice 0 to 2, device 0");
  EXPECT_EQ(kernels.algorithm(1), "2x2x1x1 of 5 from 3, flags 3, slice 0 to 2, device 1");
}

TEST(Kernels, AreToldThatTheUserAllowsTf32) {
  Plan plan = probe_plan(1);
  Net net = probe_net();
  net.layers[0].allows_tf32 = true;
  Machines on(1);
  const Kernels kernels(plan, net, test::registry(), on.runtime);
  EXPECT_EQ(kernels.algorithm(0), "5x2x1x1 of 5 from 0, flags 19, slice 0 to 2, device 0");
}

TEST(Kernels, RefuseANetThatWasMadeForKernelsThatDoMoreAlong) {
  Plan plan = probe_plan(1);
  plan.bindings[0].activation = TANDEM_ACTIVATION_RELU;
  const Net net = probe_net();
  Machines on(1);
  try {
    const Kernels kernels(plan, net, test::registry(), on.runtime);
    FAIL() << "taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("layer 'double1' (probe.Double): its net was made "
                                                 "for a kernel that does relu along (probe."));
  }
}

// The name of the probe's use of so many rows on the machine.
std::string use_of(const Machines& on, const Net& net, int64_t rows) {
  PlanBinding use;
  use.layer = 0;
  use.row_end = rows;
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
  plan.bindings[0].row_end = 2;
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

TEST(Kernels, DoNotMeasureUnlessTheyAreTold) {
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
  EXPECT_EQ(error_of([&] { Kernels(plan, net, test::registry(), on.runtime, &tuning); }),
            "layer 'double1' (probe.Double): there is no algorithm 'gone' (probe.prototxt:4); the "
            "run's record says to take 'measured: gone' again: begin a new run to choose anew");
}

TEST(Kernels, ThatTakeAnotherAlgorithmThanTheyAreToldAreFoundOut) {
  const Net net = probe_net();
  Machines on(1);
  Tuning tuning{false, {{use_of(on, net, 5), "measured: moody"}}};
  Plan plan = probe_plan(1);
  EXPECT_EQ(
      error_of([&] { Kernels(plan, net, test::registry(), on.runtime, &tuning); }),
      "layer 'double1' (probe.Double): its kernel was to take the algorithm 'measured: moody' "
      "again, but took 'measured: another' (probe.prototxt:4)");
}

TEST(KernelChoices, TellApartWhatChangesHowFastAlgorithmsAre) {
  Net net = probe_net();
  PlanBinding use;
  use.layer = 0;
  use.row_begin = 3;
  use.row_end = 5;
  EXPECT_EQ(choice_key("cuda G", net, use), "cuda G: double1, training, 2 rows, float32");
  net.layers[0].allows_tf32 = true;
  net.phase = TANDEM_TEST;
  use.slice_begin = 1;
  use.slice_end = 2;
  use.input_begin = 0;
  use.input_end = 7;
  use.adds_to_output = true;
  EXPECT_EQ(choice_key("cuda G", net, use),
            "cuda G: double1, testing, 2 rows, tf32, slice 1 to 2, input 0 to 7, added");
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

TEST(KernelChoices, ThatCouldNotBeMeasuredAreToldOf) {
  const Tuning tuning{true,
                      {{"cuda G: a", "measured: x; by a model"},
                       {"cuda G: b", "measured: y"},
                       {"cpu C: a", "measured: z; by a model"}}};
  EXPECT_EQ(tuning_text(tuning, {}, "cuda"),
            "algorithms chosen by measuring: 2; 0 of an earlier run; of these 1 chosen at least in "
            "part by a model, as measuring them found no memory or nothing that may be used");
}

TEST(Kernels, SaveInMemoryOfTheirOwnAndShareTheLargestScratch) {
  Plan plan = probe_plan(1);
  plan.bindings.push_back(plan.bindings[0]);
  plan.bindings[1].row_end = 1;
  plan.buffers.push_back({"second saved", 0, BufferKind::transient, 0, 1, {}});
  plan.bindings[1].saved = static_cast<int>(plan.buffers.size()) - 1;
  const Net net = probe_net();
  Machines on(1);
  const Kernels kernels(plan, net, test::registry(), on.runtime);
  EXPECT_EQ(plan.buffers[static_cast<size_t>(plan.find_buffer("saved", 0))].bytes, 40);
  EXPECT_EQ(plan.buffers[static_cast<size_t>(plan.find_buffer("second saved", 0))].bytes, 8);
  EXPECT_EQ(plan.buffers[static_cast<size_t>(plan.find_buffer("scratch", 0))].bytes, 80);
}

TEST(Kernels, ARefusalNamesTheLayerItsTypeAndItsPlace) {
  Plan plan = probe_plan(1);
  const Net net = probe_net(13);
  Machines on(1);
  EXPECT_EQ(error_of([&] { Kernels(plan, net, test::registry(), on.runtime); }),
            "layer 'double1' (probe.Double): 13 channels bring bad luck (probe.prototxt:4)");
}

TEST(Kernels, ARefusalLeavesTheMachineInOrder) {
  Plan plan = probe_plan(1);
  const Net refused = probe_net(13), net = probe_net();
  Machines on(1);
  EXPECT_NE(error_of([&] { Kernels(plan, refused, test::registry(), on.runtime); }), "");
  EXPECT_EQ(error_of([&] { Kernels(plan, net, test::registry(), on.runtime); }), "");
}

TEST(Kernels, RunInThePlansMemory) {
  const Net net = probe_net();
  Plan plan = probe_plan(2);
  Machines on(2);
  const Kernels kernels(plan, net, test::registry(), on.runtime);
  const MemoryPlan memory = plan_memory(plan);
  on.runtime.reserve(plan, memory, 5);
  Executor executor(plan, memory, net, on.runtime, &kernels, nullptr, {}, {});
  const std::vector<float> in{1, 2, 3, 4}, gradient{1, 0, 0, 10};
  on.runtime.write_persistent("in", 1, in.data(), 16);
  on.runtime.write_persistent("out gradient", 1, gradient.data(), 16);
  for (int64_t step = 0; step < 4; ++step) executor.issue(step, {});
  executor.drain();
  std::vector<float> values(4);
  on.runtime.read_persistent("out", 1, values.data(), 16);
  EXPECT_THAT(values, ElementsAre(2.5, 4.5, 6.5, 8.5));
  on.runtime.read_persistent("in gradient", 1, values.data(), 16);
  EXPECT_THAT(values, ElementsAre(2, 0, 0, 20));
  float sum = 0;
  on.runtime.read_persistent("gradients", 1, &sum, 4);
  EXPECT_EQ(sum, 82);  // 41, overwritten in every step, then accumulated once
}

TEST(Kernels, AFailingPassSaysWhichTaskFailed) {
  const Net net = probe_net();
  Plan plan = probe_plan(1);
  plan.bindings[0].input_gradients.clear();  // the probe refuses that when it runs
  Machines on(1);
  const Kernels kernels(plan, net, test::registry(), on.runtime);
  const MemoryPlan memory = plan_memory(plan);
  on.runtime.reserve(plan, memory, 5);
  Executor executor(plan, memory, net, on.runtime, &kernels, nullptr, {}, {});
  executor.issue(0, {});
  EXPECT_THAT(error_of([&] { executor.drain(); }),
              testing::AllOf(testing::StartsWith("step 0: "),
                             HasSubstr("'backward @0': no place for the input's gradient")));
}

TEST(Kernels, WithoutThemALayersWorkFailsAndSaysSo) {
  const Net net = probe_net();
  const Plan plan = probe_plan(1);
  test::Rig rig(plan, test::registry().backend("cpu"), {}, {}, net);
  rig.executor->issue(0, {});
  EXPECT_THAT(error_of([&] { rig.executor->drain(); }), HasSubstr("made without kernels"));
}

}  // namespace
}  // namespace tandem
