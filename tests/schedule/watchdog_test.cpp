// What the executor reports about a step that fails or does not finish.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/plugin/host.h"
#include "core/schedule/execution/executor.h"
#include "tests/schedule/handmade.h"
#include "tests/support/backend_copy.h"

namespace tandem {
namespace {

using test::communication;
using test::compute;
using test::cpu;
using test::Maker;
using test::message_of;
using test::Rig;
using testing::HasSubstr;

// Works that tests control: the backend's add, replaced.
std::atomic<bool> is_held, is_reached;

tandem_status hold(const tandem_call*, float*, const float* const*, uint32_t, int64_t) {
  is_reached = true;
  while (is_held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return TANDEM_OK;
}

tandem_status break_down(const tandem_call*, float*, const float* const*, uint32_t, int64_t) {
  host_table().explain("the sum overflows");
  return TANDEM_FAILED;
}

test::BackendCopy with_add(decltype(tandem_arithmetic::add) add) {
  test::BackendCopy backend = cpu();
  backend.arithmetic.add = add;
  return backend;
}

Plan adding(Maker& maker) {
  const Region a = maker.persistent("a", 0, 1), b = maker.persistent("b", 0, 1);
  maker.copy("before", {compute(0)}, a, b);
  maker.add("sum", compute(0), a, {b});
  maker.copy("send", {communication(0)}, maker.persistent("c", 0, 1), a);
  return maker.derived();
}

TEST(Watchdog, NamesTheTaskThatRunsAndTheOneThatWaitsForIt) {
  const test::BackendCopy backend = with_add(&hold);
  Maker maker(1);
  ExecutorOptions options;
  options.watchdog_seconds = 0.2;
  is_held = true;
  is_reached = false;
  Rig rig(adding(maker), backend, {}, options);
  rig.executor->issue(12, {});
  while (!is_reached) std::this_thread::yield();
  const auto begin = std::chrono::steady_clock::now();
  const std::string text = message_of([&] { rig.executor->wait(12); });
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(200));
  is_held = false;
  EXPECT_EQ(text,
            "step 13: task 'sum' has not finished in 0.2 s; it is running; 'send' waits for it");
}

TEST(Watchdog, LetsASlowStepPass) {
  const test::BackendCopy backend = with_add(&hold);
  Maker maker(1);
  is_held = true;
  is_reached = false;
  Rig rig(adding(maker), backend);
  rig.executor->issue(0, {});
  while (!is_reached) std::this_thread::yield();
  is_held = false;
  EXPECT_EQ(message_of([&] { rig.executor->wait(0); }), "");
}

TEST(Watchdog, AfterItNothingMoreIsIssued) {
  const test::BackendCopy backend = with_add(&hold);
  Maker maker(1);
  ExecutorOptions options;
  options.watchdog_seconds = 0.05;
  is_held = true;
  is_reached = false;
  Rig rig(adding(maker), backend, {}, options);
  rig.executor->issue(0, {});
  while (!is_reached) std::this_thread::yield();
  const std::string text = message_of([&] { rig.executor->drain(); });
  is_held = false;
  EXPECT_THAT(text, HasSubstr("'sum'"));
  EXPECT_EQ(message_of([&] { rig.executor->issue(1, {}); }), text);
}

TEST(Watchdog, AWorkThatNeverEndsIsAbandoned) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "what is abandoned on purpose would be reported as leaked";
#endif
  static const test::BackendCopy backend = with_add(&hold);
  static Maker maker(1);  // outlives the test, as the work does
  ExecutorOptions options;
  options.watchdog_seconds = 0.05;
  is_held = true;
  {
    Rig rig(adding(maker), backend, {}, options);
    rig.executor->issue(0, {});
    EXPECT_NE(message_of([&] { rig.executor->drain(); }), "");
    EXPECT_FALSE(rig.runtime.abandoned());
    rig.executor.reset();
    EXPECT_TRUE(rig.runtime.abandoned());
  }
  EXPECT_TRUE(is_held);
  is_held = false;
}

TEST(Executor, AFailingWorkSaysItsStepItsTaskAndItsReason) {
  const test::BackendCopy backend = with_add(&break_down);
  Maker maker(1);
  Rig rig(adding(maker), backend);
  rig.executor->issue(41, {});
  const std::string text = message_of([&] { rig.executor->wait(41); });
  EXPECT_THAT(text, testing::StartsWith("step 42: "));
  EXPECT_THAT(text, HasSubstr("task 'sum': the sum overflows"));
  EXPECT_EQ(message_of([&] { rig.executor->issue(42, {}); }), text);
}

TEST(Executor, AFailureIsOfTheStepThatFailedAndNotOfTheOneWaitedFor) {
  const test::BackendCopy backend = with_add(&break_down);
  Maker maker(1);
  Rig rig(adding(maker), backend);
  rig.executor->issue(7, {});
  const std::string text = message_of([&] {
    rig.executor->issue(8, {});
    rig.executor->wait(8);
  });
  EXPECT_THAT(text, testing::StartsWith("step 8: "));
}

tandem_status refuse(tandem_stream*, const tandem_work*) {
  host_table().explain("the queue is full");
  return TANDEM_FAILED;
}

TEST(Executor, AnErrorOnAThreadOfTheGraphComesOutOfIssue) {
  test::BackendCopy backend = cpu();
  Maker maker(1);
  const Region a = maker.persistent("a", 0, 1);
  maker.add("sum", compute(0), a, {a});
  maker.copy("send", {communication(0)}, maker.persistent("c", 0, 1), a);
  Rig rig(maker.derived(), backend);
  rig.run(2);
  backend.streams.submit = &refuse;
  const std::string text = message_of([&] { rig.executor->issue(2, {}); });
  EXPECT_THAT(text, testing::AllOf(HasSubstr("step 3: task 'sum'"), HasSubstr("queue is full")));
  EXPECT_EQ(message_of([&] { rig.executor->issue(3, {}); }), text);
  EXPECT_EQ(message_of([&] { rig.executor->drain(); }), text);
}

}  // namespace
}  // namespace tandem
