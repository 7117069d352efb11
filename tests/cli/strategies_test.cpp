// Strategies, topologies and auto as a user meets them on the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace tandem {
namespace {

using nlohmann::json;
using test::Desk;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string two =
    "device { name: 'a' } device { name: 'b' }\n"
    "link { between: 'a' and: 'b' bandwidth: '1GB/s' latency: '5us' }\n";

std::string refusal_of_strategy(const std::string& options) {
  const Desk desk;
  desk.write("two.txt", two);
  return desk.refusal("train --net tiny.prototxt --data synthetic --steps 2 --out run " + options);
}

TEST(StrategyOptions, ThatAreWrongNameTheRightValues) {
  EXPECT_THAT(refusal_of_strategy("--devices cpu:2 --strategy layerwise --reduce star"),
              HasSubstr("--reduce star: unknown value; there are: serial, tree, ring"));
  EXPECT_THAT(refusal_of_strategy("--bucket 4"),
              AllOf(HasSubstr("--bucket 4: not a size"), HasSubstr("as in 4MiB")));
  EXPECT_THAT(refusal_of_strategy("--bucket -4MiB"), HasSubstr("--bucket"));
}

// Also where the value is the default, which a run would not show.
TEST(StrategyOptions, OfAnotherStrategyAreRefusedByTrainProfileAndPlan) {
  const Desk desk;
  for (const std::string command :
       {"train --data synthetic --steps 2 --out run", "profile --steps 2", "plan"}) {
    const auto refusal = [&](const std::string& options) {
      return desk.refusal(command + " --net tiny.prototxt --devices cpu:2 --batch 8 " + options);
    };
    EXPECT_THAT(refusal("--strategy layerwise --plain-broadcast"),
                HasSubstr("--plain-broadcast is an option of strategy 'two_phase'; strategy "
                          "'layerwise' has none of that name"));
    EXPECT_THAT(refusal("--strategy fc_parallel --hidden-broadcast"),
                HasSubstr("--hidden-broadcast is an option of strategy 'two_phase'"));
    EXPECT_THAT(refusal("--strategy hybrid --split auto"),
                HasSubstr("--split is an option of strategies 'sequential' and 'two_phase'"));
    EXPECT_THAT(refusal("--reduce tree"),
                HasSubstr("--reduce is an option of strategies 'layerwise' and 'mixed'; strategy "
                          "'two_phase'"));
    EXPECT_THAT(refusal("--bucket 1MiB"), HasSubstr("--bucket is an option of strategies 'layer"));
  }
  EXPECT_EQ(desk.tandem("profile --net tiny.prototxt --strategy layerwise --steps 2 "
                        "--time-threshold 0.2")
                .code,
            0);
}

TEST(StrategyOptions, WithAllOrAutoApplyToTheStrategiesThatHaveThem) {
  const Desk desk;
  const std::string plan = "plan --net tiny.prototxt --devices sim:2 --batch 8 ";
  const Outcome all = desk.tandem(plan + "--strategy all --reduce tree --quota 1 --split score");
  ASSERT_EQ(all.code, 0) << all.errors;
  EXPECT_THAT(all.output, testing::Not(HasSubstr("is an option of")));
  const Outcome chosen = desk.tandem(plan + "--strategy auto --quota 1 --no-tasks");
  EXPECT_EQ(chosen.code, 0) << chosen.errors;
}

TEST(StrategyOptions, OfTheOldStrategyAreRefusedWhenResumingWithAnother) {
  const Desk desk;
  const Outcome first = desk.tandem(
      "train --net tiny.prototxt --data synthetic --devices cpu:2 --batch 8 --out run --steps 2 "
      "--strategy layerwise --reduce tree");
  ASSERT_EQ(first.code, 0) << first.errors;
  const std::string resume = "train --out run --resume --steps 4 ";
  EXPECT_THAT(desk.refusal(resume + "--plain-broadcast"),
              HasSubstr("--plain-broadcast is an option of strategy 'two_phase'"));
  EXPECT_THAT(desk.refusal(resume + "--strategy two_phase --reduce ring"),
              HasSubstr("--reduce is an option of strategies 'layerwise' and 'mixed'"));
  // What was given for the other strategy is left out.
  const Outcome other = desk.tandem(resume + "--strategy two_phase --plain-broadcast");
  EXPECT_EQ(other.code, 0) << other.errors;
}

TEST(TopologyOption, ThatDoesNotFitIsRefused) {
  EXPECT_THAT(refusal_of_strategy("--devices cpu:3 --topology two.txt"),
              HasSubstr("topology 'two.txt' has 2 devices, but 'cpu:3' asks for 3"));
  EXPECT_THAT(refusal_of_strategy("--devices cpu:2 --topology two.txt --link bandwidth=1GB/s"),
              HasSubstr("both define the speed of links"));
  EXPECT_THAT(refusal_of_strategy("--topology none.txt"), HasSubstr("none.txt"));
  const Desk desk;
  desk.write("bad.txt",
             "device { name: 'a' name: 'b' }\nlink { between: 'a' and: 'c' bandwidth: '1GB/s' }");
  EXPECT_THAT(desk.refusal("plan --net tiny.prototxt --batch 8 --topology bad.txt"),
              AllOf(HasSubstr("there is no device, hub or switch 'c'"), HasSubstr("bad.txt:2:")));
}

TEST(Planning, AllStrategiesPrintsATableAndWritesATimelineOfEach) {
  const Desk desk;
  desk.write("two.txt", two);
  const Outcome table = desk.tandem(
      "plan --net tiny.prototxt --batch 8 --devices sim:2 --strategy all --topology two.txt "
      "--trace t.json --svg t.svg");
  ASSERT_EQ(table.code, 0) << table.errors;
  EXPECT_THAT(table.output,
              AllOf(HasSubstr("sequential"), HasSubstr("two_phase"),
                    HasSubstr("layerwise --reduce ring"), HasSubstr("one device alone"),
                    HasSubstr("from a roofline of"), HasSubstr("links: the topology two.txt")));
  EXPECT_TRUE(json::accept(desk.read("t.layerwise-ring.json")));
  EXPECT_THAT(desk.read("t.sequential.svg"),
              AllOf(HasSubstr("<svg"), HasSubstr("</svg>"), HasSubstr("send_conv_gradients")));
}

TEST(Planning, AutoShowsTheFastestPlan) {
  const Desk desk;
  const Outcome plan =
      desk.tandem("plan --net tiny.prototxt --batch 8 --devices sim:2 --strategy auto --json");
  ASSERT_EQ(plan.code, 0) << plan.errors;
  EXPECT_NE(json::parse(plan.output).at("strategy"), "auto");
}

TEST(Training, OfSeveralDevicesTakesTheFastestStrategyByForecastAndSaysSo) {
  const Desk desk;
  const std::string run =
      "train --net tiny.prototxt --data synthetic --batch 8 --steps 3 --threads 1 --out ";
  const Outcome two = desk.tandem(run + "two --devices cpu:2");
  ASSERT_EQ(two.code, 0) << two.errors;
  EXPECT_THAT(two.output,
              AllOf(HasSubstr(" a step by estimated costs"), HasSubstr("--strategy NAME")));
  ASSERT_EQ(desk.tandem("train --out two --resume --steps 6").code, 0);
  const Outcome one = desk.tandem(run + "one");
  ASSERT_EQ(one.code, 0) << one.errors;
  EXPECT_THAT(one.output, AllOf(HasSubstr("strategy two_phase"), Not(HasSubstr("estimated"))));
  const Outcome given = desk.tandem(run + "given --devices cpu:2 --plain-broadcast");
  ASSERT_EQ(given.code, 0) << given.errors;
  EXPECT_THAT(given.output, HasSubstr("strategy two_phase"));
}

TEST(Training, WithAutoRecordsItsChoiceAndContinuesWithIt) {
  const Desk desk;
  const std::string run =
      "train --net tiny.prototxt --data synthetic --devices cpu:2 --batch 8 --out run ";
  const Outcome first = desk.tandem(run + "--steps 3 --strategy auto");
  ASSERT_EQ(first.code, 0) << first.errors << first.output;
  EXPECT_THAT(desk.read("run/log.txt"), AllOf(HasSubstr("chosen: "), HasSubstr("speed-up")));
  std::string record;
  for (const auto& entry : std::filesystem::directory_iterator(desk / "run")) {
    if (entry.path().extension() == ".json" && entry.path().stem() != "timeline") {
      record = desk.read("run/" + entry.path().filename().string());
    }
  }
  const json choices = json::parse(record).at("choices");
  const std::string chosen = choices.at("strategy");
  EXPECT_THAT(chosen, testing::AnyOf("sequential", "two_phase", "layerwise", "fc_parallel",
                                     "hybrid", "asymmetric", "mixed"));
  const Outcome second = desk.tandem("train --out run --resume --steps 6");
  ASSERT_EQ(second.code, 0) << second.errors;
  EXPECT_THAT(desk.read("run/log.txt"), HasSubstr("strategy " + chosen + " on cpu:2"));
}

TEST(Devices, AreMeasuredIntoATopologyThatCanBeUsed) {
  const Desk desk;
  const Outcome measured = desk.tandem(
      "devices --measure links.txt --devices cpu:3 --link bandwidth=200MB/s,latency=100us");
  ASSERT_EQ(measured.code, 0) << measured.errors;
  EXPECT_THAT(measured.output, HasSubstr("2 -> 1"));
  const Outcome plan = desk.tandem(
      "plan --net tiny.prototxt --batch 8 --devices sim:3 --strategy layerwise --topology "
      "links.txt");
  EXPECT_EQ(plan.code, 0) << plan.errors;
  EXPECT_THAT(desk.refusal("devices --measure x.txt --devices sim:3"), HasSubstr("copy nothing"));
  EXPECT_THAT(desk.refusal("devices --measure x.txt --devices cpu:1"), HasSubstr("at least 2"));
}

TEST(PlanOfManyDevices, SaysTheMemoryOfDevicesThatAreAlikeOnce) {
  const Desk desk;
  const std::string plan = "plan --net tiny.prototxt --no-tasks --strategy layerwise --batch 24 ";
  const std::string many = desk.tandem(plan + "--devices sim:12").output;
  // The first devices have one part of the ring's gradients more.
  EXPECT_THAT(many, HasSubstr("\nmemory of device 2: "));
  EXPECT_THAT(many, HasSubstr("\nmemory of each of devices 3 to 11: "));
  EXPECT_THAT(desk.tandem(plan + "--devices sim:4").output, HasSubstr("\nmemory of device 3: "));
}

TEST(PlanOfHosts, TakesTheNetworkBetweenThemAndTheLinkWithin) {
  const Desk desk;
  const auto seconds = [&](const std::string& options) {
    const Outcome plan = desk.tandem(
        "plan --net tiny.prototxt --devices sim:4 --batch 24 --strategy layerwise --json " +
        options);
    EXPECT_EQ(plan.code, 0) << plan.errors;
    return json::parse(plan.output).at("predicted_step_seconds").get<double>();
  };
  const std::string slow = "bandwidth=1MB/s", fast = "bandwidth=1GB/s";
  const double one_host = seconds("--link " + fast);
  EXPECT_NEAR(seconds("--hosts 1 --network " + slow + " --link " + fast), one_host,
              0.02 * one_host);
  EXPECT_GT(seconds("--hosts 1 --network " + fast + " --link " + slow), 2 * one_host);
  EXPECT_GT(seconds("--hosts 2 --network " + slow + " --link " + fast),
            2 * seconds("--hosts 2 --network " + fast + " --link " + fast));
  const std::string plan = "plan --net tiny.prototxt --devices sim:4 ";
  EXPECT_THAT(desk.refusal(plan + "--hosts 3 --network " + fast),
              HasSubstr("--hosts 3: 4 devices cannot be divided among them equally"));
  EXPECT_THAT(desk.refusal(plan + "--hosts 2"), HasSubstr("--hosts 2 needs --network"));
  EXPECT_THAT(desk.refusal(plan + "--network " + fast), HasSubstr("needs --hosts"));
}

}  // namespace
}  // namespace tandem
