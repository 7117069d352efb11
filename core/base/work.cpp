#include "core/base/work.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

// Of the work that goes on.
struct Course {
  std::string what;
  Clock::time_point begin = Clock::now(), told{};
};

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

WorkWatch tell_work(std::function<void(const std::string&)> line, const std::atomic<bool>* stop) {
  constexpr double worth_telling = 2, between_lines = 10;  // seconds
  const auto course = std::make_shared<Course>();
  return [=](const LongWork& work) {
    const auto now = Clock::now();
    if (course->what != work.what) *course = {work.what, course->begin, {}};
    const double taken = seconds_between(course->begin, now);
    const double left =
        work.done > 0 ? taken / double(work.done) * double(work.all - work.done) : 0;
    const bool is_first = course->told == Clock::time_point{};
    const bool is_due = is_first ? taken + left > worth_telling
                                 : seconds_between(course->told, now) > between_lines;
    if (is_due && work.done < work.all) {
      line(fmt::format("{}: {} of {}, about {:.0f} s left", work.what, work.done, work.all, left));
      course->told = now;
    }
    if (work.done >= work.all) *course = {};
    return stop == nullptr || !*stop;
  };
}

}  // namespace tandem
