#include "core/schedule/report/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/schedule/plan_checks.h"

namespace tandem::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Steps of a second each: the whole of it computing, its input copied in the second before.
std::vector<TraceEvent> steps_of(const Plan& plan, int64_t count) {
  std::vector<TraceEvent> events;
  for (int64_t step = 0; step < count; ++step) {
    const auto at = static_cast<double>(step);
    events.push_back({find_task(plan, "copy input @0"), step, at - 0.5, at - 0.25});
    events.push_back({find_task(plan, "forward conv1 @0"), step, at, at + 1});
  }
  return events;
}

TEST(Picture, ShowsInEachStepWhatIsDoneForLaterOnes) {
  const Net net = small_net(8);
  const Plan plan = build_plan("sequential", inputs_of(net, 1));
  const std::string text = to_svg(plan, steps_of(plan, 4));
  size_t inputs = 0;
  for (size_t at = 0; (at = text.find("<title>copy input @0", at)) != std::string::npos; ++at) {
    ++inputs;
  }
  EXPECT_EQ(inputs, 2U);  // of the second step, and of the third, which is not drawn itself
}

TEST(Picture, HasNoRowWhereThereIsNothingToSee) {
  const Net net = small_net(8);
  const Plan plan = build_plan("sequential", inputs_of(net, 1));
  std::vector<TraceEvent> events = steps_of(plan, 3);
  EXPECT_THAT(to_svg(plan, events), AllOf(HasSubstr("@0 compute"), HasSubstr("@0 copy")));
  for (TraceEvent& event : events) {
    if (event.task == find_task(plan, "copy input @0")) event.end = event.start;
  }
  EXPECT_THAT(to_svg(plan, events), AllOf(HasSubstr("@0 compute"), Not(HasSubstr("@0 copy"))));
}

TEST(Picture, SaysWhatTheStrategyDecided) {
  Plan plan = build_plan("sequential", inputs_of(small_net(8), 1));
  plan.notes = {"'fc6': divided by neurons over all 4 devices",
                std::string(150, 'a') + " " + std::string(150, 'b')};
  const std::string text = to_svg(plan, steps_of(plan, 3));
  EXPECT_THAT(text, HasSubstr(": divided by neurons over all 4 devices</text>"));
  EXPECT_THAT(text, HasSubstr(std::string(150, 'a') + "</text>")) << "a line of its own";
}

}  // namespace
}  // namespace tandem::test
