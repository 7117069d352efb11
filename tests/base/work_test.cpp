#include "core/base/work.h"

#include <gmock/gmock.h>

#include <chrono>
#include <thread>
#include <vector>

namespace tandem {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Work, TellsOfLongWorkOnceItsFirstPartIsDone) {
  std::vector<std::string> lines;
  const WorkWatch watch =
      tell_work([&](const std::string& line) { lines.push_back(line); }, nullptr);
  EXPECT_TRUE(watch({"short", 1, 2}));
  EXPECT_TRUE(watch({"short", 2, 2}));
  EXPECT_TRUE(lines.empty());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  for (int64_t done = 1; done <= 5; ++done) EXPECT_TRUE(watch({"measuring", done, 1000000}));
  ASSERT_EQ(lines.size(), 1U);  // the next one is ten seconds later
  EXPECT_THAT(lines[0], AllOf(HasSubstr("measuring: 1 of 1000000, about "), HasSubstr(" s left")));
}

TEST(Work, EndsWhenItIsStopped) {
  std::atomic<bool> stop{false};
  const WorkWatch watch = tell_work([](const std::string&) {}, &stop);
  EXPECT_TRUE(goes_on(watch, {"work", 1, 3}));
  stop = true;
  EXPECT_FALSE(goes_on(watch, {"work", 2, 3}));
  EXPECT_TRUE(goes_on({}, {"work", 2, 3}));
}

}  // namespace
}  // namespace tandem
