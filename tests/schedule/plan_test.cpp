#include "core/schedule/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/schedule/handmade.h"

namespace tandem {
namespace {

using test::communication;
using test::compute;
using test::Maker;
using test::message_of;
using testing::HasSubstr;

TEST(Plan, NamesAMicroBatchByItsStep) {
  Maker maker(1);
  EXPECT_EQ(step_name(maker.plan, 7), "step 8");
  maker.plan.micro_batches_per_step = 4;
  EXPECT_EQ(step_name(maker.plan, 7), "step 2, micro-batch 4 of 4");
  maker.plan.strategy = testing_strategy;
  EXPECT_EQ(step_name(maker.plan, 7), "batch 8");
}

TEST(Plan, FindsABufferByNameAndDevice) {
  Maker maker(2);
  maker.floats("a", 0, 4);
  maker.floats("a", 1, 4);
  EXPECT_EQ(maker.plan.find_buffer("a", 1), 1);
  EXPECT_EQ(maker.plan.find_buffer("a", -1), -1);
  EXPECT_EQ(maker.plan.find_buffer("b", 0), -1);
}

TEST(Plan, AWholeRegionEndsWhereItsBufferEnds) {
  Maker maker(1);
  const Region whole = maker.floats("a", 0, 4);
  EXPECT_EQ(maker.plan.bytes(whole), 16);
  EXPECT_EQ(maker.plan.bytes(Region{whole.buffer, 12, whole_buffer}), 4);
  EXPECT_EQ(maker.plan.bytes(Region{whole.buffer, 4, 8}), 8);
  EXPECT_EQ(maker.plan.bytes(Region{}), 0);
}

TEST(Validate, NamesATaskWithoutAStream) {
  Maker maker(1);
  maker.touch("lost", {}, {}, {});
  EXPECT_EQ(message_of([&] { validate(maker.plan); }), "task 'lost' has no stream");
}

TEST(Validate, NamesAStreamOfADeviceThatThePlanDoesNotHave) {
  Maker maker(1);
  maker.touch("far", {compute(0), communication(1)}, {}, {});
  EXPECT_THAT(message_of([&] { validate(maker.plan); }),
              testing::AllOf(HasSubstr("'far'"), HasSubstr("device 1")));
}

TEST(Validate, NamesATaskThatWaitsForItself) {
  Maker maker(1);
  maker.touch("a", {compute(0)}, {}, {});
  maker.plan.tasks[0].after = {{0, 0}};
  EXPECT_EQ(message_of([&] { validate(maker.plan); }), "task 'a' waits for itself");
  maker.plan.tasks[0].after = {{0, 1}};
  EXPECT_EQ(message_of([&] { validate(maker.plan); }), "");
}

TEST(Validate, NamesBothTasksWhereOneWaitsForALaterOne) {
  Maker maker(1);
  maker.touch("a", {compute(0)}, {}, {});
  maker.touch("b", {compute(0)}, {}, {});
  maker.plan.tasks[0].after = {{1, 0}};
  EXPECT_EQ(message_of([&] { validate(maker.plan); }),
            "task 'a' waits for 'b', which comes later in the micro-batch");
}

TEST(Validate, NamesTheBufferThatARegionExceeds) {
  Maker maker(1);
  const Region a = maker.floats("a", 0, 4);
  maker.touch("reader", {compute(0)}, {{a.buffer, 8, 12}}, {});
  EXPECT_EQ(message_of([&] { validate(maker.plan); }),
            "task 'reader': bytes 8 to 20 exceed buffer 'a' of device 0, which has 16");
}

TEST(Validate, NamesALabelThatOccursTwice) {
  Maker maker(1);
  maker.touch("a", {compute(0)}, {}, {});
  maker.touch("a", {compute(0)}, {}, {});
  EXPECT_THAT(message_of([&] { validate(maker.plan); }), HasSubstr("label 'a' occurs twice"));
}

TEST(Validate, NamesABufferThatOccursTwiceOnOneDevice) {
  Maker maker(2);
  maker.floats("a", 0, 4);
  maker.floats("a", 1, 4);
  EXPECT_EQ(message_of([&] { validate(maker.plan); }), "");
  maker.floats("a", 1, 4);
  EXPECT_EQ(message_of([&] { validate(maker.plan); }), "buffer 'a' of device 1 occurs twice");
}

TEST(Validate, RefusesACopyIntoAPlaceOfAnotherSize) {
  Maker maker(1);
  const Region a = maker.floats("a", 0, 4), b = maker.floats("b", 0, 3);
  maker.copy("copy", {compute(0)}, b, a);
  EXPECT_EQ(message_of([&] { validate(maker.plan); }),
            "task 'copy' copies 16 bytes to a region of 12");
}

}  // namespace
}  // namespace tandem
