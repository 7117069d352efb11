// Costs of tasks, and the file they are kept in.
#include "core/schedule/cost/cost_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/schedule/strategies/common/stages.h"
#include "tests/schedule/plan_checks.h"
#include "tests/support/temp_folder.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;

struct Timed {
  Net net = small_net(8);
  Plan plan = build_plan("two_phase", inputs_of(net, 2));  // 4 rows a device
  CostTable costs{Roofline{1e9, 1e8}};

  [[nodiscard]] double seconds(const std::string& label) const {
    return costs.seconds(net, plan, task(plan, label));
  }
  [[nodiscard]] bool is_measured(const std::string& label) const {
    return costs.is_measured(net, plan, task(plan, label));
  }
};

TEST(Costs, OfAMeasuredPassScaleWithItsRows) {
  Timed timed;
  timed.costs.set("conv1 forward", {0.5, 10, 0});
  EXPECT_DOUBLE_EQ(timed.seconds("forward conv1 @1"), 0.2);
  EXPECT_TRUE(timed.is_measured("forward conv1 @1"));
}

TEST(Costs, OfOnePrecisionAreNotTakenForTheOther) {
  Timed timed;
  timed.costs.set("conv1 forward", {0.5, 10, 0});
  const Layer& layer = timed.net.layers[size_t(timed.net.find_layer("conv1"))];
  timed.net.tensors[size_t(layer.outputs[0])].dtype = TANDEM_BFLOAT16;
  EXPECT_FALSE(timed.is_measured("forward conv1 @1"));
  timed.costs.set("conv1 forward bfloat16", {0.25, 10, 0});
  EXPECT_DOUBLE_EQ(timed.seconds("forward conv1 @1"), 0.1);
}

TEST(Costs, OfTf32AreNotTakenForFloat32) {
  Timed timed;
  timed.costs.set("conv1 forward", {0.5, 10, 0});
  timed.net.layers[size_t(timed.net.find_layer("conv1"))].allows_tf32 = true;
  EXPECT_FALSE(timed.is_measured("forward conv1 @1"));
  timed.costs.set("conv1 forward tf32", {0.25, 10, 0});
  EXPECT_DOUBLE_EQ(timed.seconds("forward conv1 @1"), 0.1);
}

int asked = 0;

tandem_status counting_cost(const tandem_layer_query* query, tandem_layer_cost* cost) {
  ++asked;
  return fake::product_cost(query, cost);
}

TEST(Costs, OfManyTasksAskALayersTypeOnceForEachNumberOfRows) {
  Timed timed;
  const int layer = timed.net.find_layer("conv2");
  tandem_layer_type counting = *timed.net.layers[size_t(layer)].type;
  counting.cost = &counting_cost;
  timed.net.layers[size_t(layer)].type = &counting;
  std::vector<double> one_by_one, together;
  for (const Task& task : timed.plan.tasks) {
    one_by_one.push_back(timed.costs.seconds(timed.net, timed.plan, task));
  }
  EXPECT_EQ(asked, 6) << "three passes on two devices";
  asked = 0;
  LayerWorks layers(timed.net);
  for (const Task& task : timed.plan.tasks) {
    together.push_back(timed.costs.seconds(layers, timed.plan, task));
  }
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(one_by_one, together);
  EXPECT_NE(layers.of(layer, 4).forward_flops, layers.of(layer, 3).forward_flops);
}

TEST(Costs, OfAPassThatDoesAnActivationAlongHaveAKeyOfTheirOwn) {
  FakeNet fake("joined", 8, {1, 3, 8, 8});
  fake.convolution("conv1", 4, 3).relu("relu1").inner_product("fc1", 5);
  const Net separate = FakeNet(fake).loss().finish();
  const Net joined = fake.with_activations_joined().loss().finish();
  const Plan separate_plan = build_plan("sequential", inputs_of(separate, 1));
  const Plan plan = build_plan("sequential", inputs_of(joined, 1));
  const Task &alone = task(separate_plan, "forward conv1 @0"),
             &fused = task(plan, "forward conv1 @0");
  EXPECT_EQ(cost_key(joined, plan, fused), "conv1 forward+relu");
  EXPECT_EQ(cost_key(joined, plan, task(plan, "backward_weights conv1 @0")),
            "conv1 backward_weights");
  CostTable costs{Roofline{1e9, 1e8}};
  EXPECT_FALSE(costs.is_measured(separate, separate_plan, alone));
  costs.set("conv1 forward+relu", {0.5, 8, 0});
  EXPECT_DOUBLE_EQ(costs.seconds(joined, plan, fused), 0.5);
  EXPECT_TRUE(costs.is_measured(joined, plan, fused));
  // A net for devices whose kernels fuse nothing, estimated with the table of one whose kernels do.
  EXPECT_DOUBLE_EQ(costs.seconds(separate, separate_plan, alone), 0.5);
  EXPECT_TRUE(costs.is_measured(separate, separate_plan, alone));
  costs.set("conv1 forward", {0.25, 8, 0});
  EXPECT_DOUBLE_EQ(costs.seconds(separate, separate_plan, alone), 0.25);
}

TEST(Costs, OfAPassThatDoesAnActivationAlongStandInForItsSlicesThatDoNot) {
  const Net net = FakeNet("joined", 8, {1, 3, 8, 8})
                      .inner_product("fc1", 6)
                      .relu("relu1")
                      .inner_product("fc2", 4)
                      .with_activations_joined()
                      .loss()
                      .finish();
  const Plan plan = build_plan("fc_parallel", inputs_of(net, 2));
  const Task &slice = task(plan, "forward fc1 @0"), &relu = task(plan, "forward relu1 @0");
  CostTable costs{Roofline{1e9, 1e8}};
  costs.set("fc1 forward+relu", {0.5, 8, 0});
  EXPECT_EQ(cost_key(net, plan, slice), "fc1 forward");
  EXPECT_DOUBLE_EQ(costs.seconds(net, plan, slice), 0.25);
  EXPECT_TRUE(costs.is_measured(net, plan, slice));
  EXPECT_FALSE(costs.is_measured(net, plan, relu)) << "its own pass, which nobody measured";
  EXPECT_GT(costs.seconds(net, plan, relu), 0);
  costs.set("fc1 forward", {0.25, 8, 0});
  EXPECT_DOUBLE_EQ(costs.seconds(net, plan, slice), 0.125);
}

TEST(Costs, OfAForwardPassThatAnotherLayersKernelDoesAreNone) {
  const Net net = FakeNet("joined", 8, {1, 3, 8, 8})
                      .convolution("conv1", 4, 3)
                      .relu("relu1")
                      .inner_product("fc1", 5)
                      .with_activations_joined()
                      .loss()
                      .finish();
  CostTable costs;
  costs.set("conv1 forward+relu", {0.5, 8, 0});
  costs.set("relu1 forward", {0.25, 8, 0});
  costs.set("relu1 backward_data", {0.125, 8, 0});
  const int conv1 = net.find_layer("conv1"), relu1 = net.find_layer("relu1");
  EXPECT_DOUBLE_EQ(costs.pass_seconds(net, conv1, LayerPass::forward, 8), 0.5);
  EXPECT_DOUBLE_EQ(costs.pass_seconds(net, relu1, LayerPass::forward, 8), 0);
  EXPECT_DOUBLE_EQ(costs.pass_seconds(net, relu1, LayerPass::backward_data, 8), 0.125);
}

TEST(Costs, OfAnUnmeasuredPassAreTheLargerOfFlopsAndBytes) {
  Timed timed;
  const tandem_layer_cost cost = timed.net.cost(0, 4);
  EXPECT_DOUBLE_EQ(timed.seconds("forward conv1 @0"),
                   std::max(cost.forward_flops / 1e9, cost.forward_bytes / 1e8));
  const tandem_layer_cost of_relu = timed.net.cost(timed.net.find_layer("relu1"), 4);
  EXPECT_GT(of_relu.backward_data_bytes / 1e8, of_relu.backward_data_flops / 1e9);
  EXPECT_DOUBLE_EQ(timed.seconds("backward_data relu1 @0"), of_relu.backward_data_bytes / 1e8);
  EXPECT_FALSE(timed.is_measured("forward conv1 @0"));
}

TEST(Costs, OfBothHalvesInOneCallAreTheirSumUnlessMeasured) {
  Timed timed;
  const int conv2 = timed.net.find_layer("conv2");
  timed.costs.set("conv2 backward_data", {0.1, 0, 0});
  timed.costs.set("conv2 backward_weights", {0.2, 0, 0});
  EXPECT_DOUBLE_EQ(timed.costs.pass_seconds(timed.net, conv2, LayerPass::backward, 4), 0.1 + 0.2);
  timed.costs.set("conv2 backward", {0.25, 0, 0});
  EXPECT_DOUBLE_EQ(timed.costs.pass_seconds(timed.net, conv2, LayerPass::backward, 4), 0.25);
}

TEST(Costs, OfUpdatesScaleWithTheirBytes) {
  Timed timed;
  const Task& update = task(timed.plan, "update fc @0");
  // Gradient read, weights and one state read and written, plus the step and found_inf.
  const int64_t range = timed.plan.bytes(update.writes.front());
  EXPECT_EQ(cost_bytes(timed.plan, update), 5 * range + int64_t{sizeof(tandem_step)} + 4);
  EXPECT_DOUBLE_EQ(timed.seconds("update fc @0"),
                   static_cast<double>(cost_bytes(timed.plan, update)) / 1e8);
  timed.costs.set("update", {2.0, 0, 1000});
  EXPECT_DOUBLE_EQ(timed.seconds("update fc @0"),
                   2.0 * static_cast<double>(cost_bytes(timed.plan, update)) / 1000);
}

TEST(Costs, OfInputScaleWithItsBytesAndLinksTimeTheRest) {
  Timed timed;
  timed.costs.set("input", {1.0, 0, 100});
  const Task& copy = task(timed.plan, "copy input @1");
  EXPECT_DOUBLE_EQ(timed.seconds("copy input @1"),
                   static_cast<double>(cost_bytes(timed.plan, copy)) / 100);
  EXPECT_EQ(timed.seconds("send fc gradients @1->@0"), 0);
  EXPECT_TRUE(timed.is_measured("send fc gradients @1->@0"));
}

TEST(Costs, OfRowsPutSideBySideAreThoseOfTheirBytesReadAndWritten) {
  const Net net = small_net(8);
  const Plan plan = build_plan("fc_parallel", inputs_of(net, 2));
  const CostTable costs{Roofline{1e9, 1e8}};
  const Task* gather = nullptr;
  for (const Task& task : plan.tasks) {
    const bool is_of_logits = task.stage == stages::send_activations;
    if (is_of_logits && task.label.starts_with("gather ")) gather = &task;
  }
  ASSERT_NE(gather, nullptr);
  const auto bytes = static_cast<double>(plan.bytes(gather->writes[0]));
  EXPECT_GT(std::get<CopyWork>(gather->work).segments.size(), 4);
  EXPECT_DOUBLE_EQ(costs.seconds(net, plan, *gather), 2 * bytes / 1e8);
  EXPECT_EQ(cost_key(net, plan, *gather), "rearrange");
}

TEST(Costs, HaveKeysThatNameLayerAndPass) {
  const Timed timed;
  const auto key = [&](const char* label) {
    return cost_key(timed.net, timed.plan, task(timed.plan, label));
  };
  EXPECT_EQ(key("backward_weights conv1 @1"), "conv1 backward_weights");
  EXPECT_EQ(key("add fc gradients @0"), "add");
  EXPECT_EQ(key("update conv @0"), "update");
  EXPECT_EQ(key("check loss @0"), "check");
  EXPECT_EQ(key("copy input @0"), "input");
  EXPECT_EQ(key("report @0"), "results");
  EXPECT_EQ(key("broadcast conv1 @0->@1"), "");
}

class CostsFile : public testing::Test {
 protected:
  [[nodiscard]] std::string refusal(const std::string& text) const {
    std::ofstream(path()) << text;
    return message_of([&] { (void)CostTable::read(path(), {}); });
  }
  [[nodiscard]] std::filesystem::path path() const { return folder_.path() / "costs.csv"; }
  TempFolder folder_;
};

TEST_F(CostsFile, GivesBackWhatWasWritten) {
  CostTable written;
  written.set("conv1 forward", {0.1 + 0.2, 128, 0});
  written.set("a \"quoted\", name forward", {1e-9, 1, 2});
  written.set("# no comment forward", {3, 0, 0});
  written.write(path(), {"net alexnet", "devices cpu:2"});
  const CostTable read = CostTable::read(path(), Roofline{7, 8});
  EXPECT_EQ(read.roofline().flops, 7);
  for (const char* key : {"conv1 forward", "a \"quoted\", name forward", "# no comment forward"}) {
    ASSERT_NE(read.find(key), nullptr) << key;
    EXPECT_EQ(read.find(key)->seconds, written.find(key)->seconds);
    EXPECT_EQ(read.find(key)->rows, written.find(key)->rows);
    EXPECT_EQ(read.find(key)->bytes, written.find(key)->bytes);
  }
}

TEST_F(CostsFile, GivesBackTheExtentsOfItsLayers) {
  CostTable written;
  written.set("a: b forward", {1, 1, 0});
  written.set_extents("a: b", "ReLU 1x2x2 to 1x2x2");
  written.write(path(), {"net lenet batch 4"});
  CostTable read = CostTable::read(path(), {});
  ASSERT_NE(read.extents("a: b"), nullptr);
  EXPECT_EQ(*read.extents("a: b"), "ReLU 1x2x2 to 1x2x2");
  EXPECT_EQ(read.extents("b"), nullptr);
  read.forget("a: b");
  EXPECT_EQ(read.find("a: b forward"), nullptr);
}

TEST_F(CostsFile, BeginsWithItsCommentsAndAHeader) {
  CostTable().write(path(), {"net alexnet"});
  std::ifstream file(path());
  std::string first, second, third;
  std::getline(file, first);
  std::getline(file, second);
  std::getline(file, third);
  EXPECT_EQ(first, "# costs of tasks, measured");
  EXPECT_EQ(second, "# net alexnet");
  EXPECT_EQ(third, "key,seconds,rows,bytes");
}

TEST_F(CostsFile, ReplacesAnotherTableButNoOtherKindOfFile) {
  CostTable().write(path(), {"net alexnet"});
  CostTable().write(path(), {"net lenet"});
  const auto mine = folder_.write("mine.txt", "# my notes\n");
  EXPECT_THAT(message_of([&] { CostTable().write(mine, {}); }),
              HasSubstr("mine.txt' exists and is another kind of file"));
  std::ifstream file(mine);
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, "# my notes");
}

TEST_F(CostsFile, OfAnotherPrecisionIsRefusedWhereOneIsWanted) {
  CostTable().write(path(),
                    {"net lenet strategy two_phase precision bfloat16", "of some precision"});
  (void)CostTable::read(path(), {});
  (void)CostTable::read(path(), {}, "bfloat16");
  EXPECT_THAT(message_of([&] { (void)CostTable::read(path(), {}, "float32"); }),
              HasSubstr("costs.csv:2: these costs were measured in bfloat16, not in float32: use "
                        "--precision bfloat16"));
  CostTable().write(path(), {"made by hand"});
  (void)CostTable::read(path(), {}, "float32");
}

TEST_F(CostsFile, ErrorsNameFileAndLine) {
  const std::string header = "# made by hand\nkey,seconds,rows,bytes\n";
  EXPECT_THAT(refusal(header + "conv1 forward,abc,1,2\n"),
              testing::AllOf(HasSubstr("costs.csv:3: 'abc' is not a number of seconds"),
                             HasSubstr("as in \"conv1 forward,0.061,128,0\"")));
  EXPECT_THAT(refusal(header + "conv1 forward,-1,1,2\n"), HasSubstr("'-1' is not a number of sec"));
  EXPECT_THAT(refusal(header + "conv1 forward,inf,1,2\n"), HasSubstr("'inf' is not a number of"));
  EXPECT_THAT(refusal(header + "conv1 forward,1,-1,2\n"), HasSubstr("'-1' is not a number of ro"));
  EXPECT_THAT(refusal(header + "conv1 forward,1,1,0.5\n"),
              HasSubstr("'0.5' is not a number of by"));
  EXPECT_THAT(refusal(header + "conv1 forward,1,1\n"),
              HasSubstr("costs.csv:3: expected the 4 fie"));
  EXPECT_THAT(refusal(header + "\"conv1 forward,1,1,2\n"),
              HasSubstr("costs.csv:3: expected the 4"));
  EXPECT_THAT(refusal(header + "a forward,1,1,2\na forward,1,1,2\n"),
              HasSubstr("costs.csv:4: 'a forward' occurs twice"));
  EXPECT_THAT(refusal("conv1 forward,1,1,2\n"), HasSubstr("costs.csv:1: expected the header"));
  EXPECT_THAT(refusal("# only this\n"), HasSubstr("no header line"));
}

TEST_F(CostsFile, ThatIsMissingSaysWhatWritesOne) {
  EXPECT_THAT(message_of([&] { (void)CostTable::read(folder_.path() / "none.csv", {}); }),
              testing::AllOf(HasSubstr("none.csv' cannot be read"), HasSubstr("tandem profile")));
}

TEST_F(CostsFile, ThatCannotBeWrittenIsAnErrorThatNamesIt) {
  EXPECT_THAT(message_of([&] { CostTable().write(folder_.path() / "no" / "such.csv", {}); }),
              HasSubstr("such.csv' cannot be created"));
}

}  // namespace
}  // namespace tandem::test
