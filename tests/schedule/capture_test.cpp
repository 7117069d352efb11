// Which tasks of a plan are captured in a graph.
#include "core/schedule/execution/capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/schedule/plan/ordering.h"
#include "tests/schedule/capture_plans.h"

namespace tandem {
namespace {

using test::communication;
using test::compute;
using test::copies;
using test::Maker;
using test::message_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(CaptureSplit, LeavesWhatReadsTheBatchBeforeTheGraph) {
  Maker maker(1);
  const Region batch = maker.floats("batch", -1, 4, BufferKind::external);
  const Region input = maker.persistent("input", 0, 4, 2), weights = maker.persistent("w", 0, 4);
  maker.copy("input", {copies(0)}, input, batch);
  maker.add("forward", compute(0), weights, {input});
  maker.copy("report", {communication(0)}, maker.persistent("results", -1, 4), weights);
  const CaptureSplit split = split_for_capture(maker.derived());
  EXPECT_EQ(split.reason, "");
  EXPECT_THAT(split.before, ElementsAre(0));
  EXPECT_THAT(split.captured, ElementsAre(1, 2));
  EXPECT_THAT(split.after, IsEmpty());
}

TEST(CaptureSplit, LeavesWhatFollowsTheBatchOnTheCopyStreamBeforeTheGraph) {
  Maker maker(1);
  const Region batch = maker.floats("batch", -1, 4, BufferKind::external);
  const Region pixels = maker.floats("pixels", 0, 4), input = maker.persistent("input", 0, 4, 2);
  const Region weights = maker.persistent("w", 0, 4), kept = maker.persistent("kept", 0, 4);
  maker.copy("bring", {copies(0)}, pixels, batch);
  maker.copy("convert", {copies(0)}, input, pixels);
  maker.add("forward", compute(0), weights, {input});
  maker.copy("keep", {copies(0)}, kept, weights);
  const CaptureSplit split = split_for_capture(maker.derived());
  EXPECT_EQ(split.reason, "");
  EXPECT_THAT(split.before, ElementsAre(0, 1));
  EXPECT_THAT(split.captured, ElementsAre(2, 3)) << "what comes after a captured task is captured";
}

TEST(CaptureSplit, LeavesWhatWritesForTheHostAfterTheGraph) {
  Maker maker(1);
  const Region out = maker.floats("out", -1, 4, BufferKind::external);
  const Region a = maker.persistent("a", 0, 4), b = maker.persistent("b", 0, 4);
  maker.add("one", compute(0), a, {b});
  maker.copy("give", {copies(0)}, out, a);
  maker.copy("give again", {copies(0)}, out, a);
  maker.add("two", compute(0), b, {b});
  const CaptureSplit split = split_for_capture(maker.derived());
  EXPECT_THAT(split.captured, ElementsAre(0, 3));
  EXPECT_THAT(split.after, ElementsAre(1, 2));
}

TEST(CaptureSplit, RefusesAPlanWithSuchATaskInTheMiddleAndNamesWhatComesAfterIt) {
  const CaptureSplit split = split_for_capture(test::given_in_the_middle());
  EXPECT_THAT(split.reason,
              HasSubstr("task 'overwrite' comes after one in the middle of the plan"));
  EXPECT_THAT(split.before, ElementsAre(0, 1, 2));
  EXPECT_THAT(split.captured, IsEmpty());
}

TEST(CaptureSplit, FollowsTheOrderOnStreamsAsWell) {
  Maker maker(1);
  const Region out = maker.floats("out", -1, 4, BufferKind::external);
  const Region a = maker.persistent("a", 0, 4), b = maker.persistent("b", 0, 4);
  maker.copy("one", {copies(0)}, a, b);
  maker.copy("give", {copies(0)}, out, b);
  maker.copy("next on the stream", {copies(0)}, b, b);
  EXPECT_THAT(split_for_capture(maker.derived()).reason, HasSubstr("'next on the stream'"));
}

TEST(CaptureSplit, SaysThatAPlanHasNothingToCapture) {
  Maker maker(1);
  maker.copy("input", {copies(0)}, maker.persistent("a", 0, 4),
             maker.floats("batch", -1, 4, BufferKind::external));
  EXPECT_EQ(split_for_capture(maker.derived()).reason, "it has no task that could be captured");
}

TEST(GraphUse, IsReadAndRefusedByItsOption) {
  EXPECT_EQ(parse_graph_use("auto"), GraphUse::automatic);
  EXPECT_EQ(parse_graph_use("on"), GraphUse::on);
  EXPECT_EQ(parse_graph_use("off"), GraphUse::off);
  EXPECT_EQ(message_of([] { static_cast<void>(parse_graph_use("yes")); }),
            "--graphs yes: it is auto, on or off");
}

TEST(MicroBatchesAsGraphs, AreRefusedWhereTheBackendHasNoneAndTheUserInsists) {
  ExecutorOptions options;
  options.graphs = GraphUse::on;
  const auto run = [&options] {
    Maker maker(1);
    const Region a = maker.persistent("a", 0, 4);
    maker.add("double", compute(0), a, {a});
    test::Rig rig(maker.derived(), test::cpu(), {}, options);
    rig.run(3);
    return rig.executor->has_graphs();
  };
  EXPECT_EQ(
      message_of([&] { run(); }),
      "--graphs on: backend 'cpu' captures no graphs; leave the option out, or say --graphs off");
  options.graphs = GraphUse::automatic;
  EXPECT_FALSE(run());
}

}  // namespace
}  // namespace tandem
