#include <malloc.h>

#include <functional>

#include "core/base/files/files.h"
#include "core/check/passes.h"

namespace tandem::checker {

namespace {

struct Held {
  int64_t bytes, files, threads;
};
Held held_now() {
  const struct mallinfo2 info = mallinfo2();
  return {int64_t(info.uordblks + info.hblkhd), int64_t(entries_of("/proc/self/fd").size()),
          int64_t(entries_of("/proc/self/task").size())};
}

// A leak grows with the number of uses. What a library or the allocator keeps for later use does
// not, but it may grow at any time. So each round has more uses than the one before. The first in
// which nothing grows decides, or the last.
constexpr int64_t uses_of_rounds[] = {40, 160, 640};
// Bytes for each use: an allocation takes 32 at least; a large leak needs no more rounds.
constexpr int64_t quiet = 4, leaks = 16, leaks_much = 16384;

// What grows with each use; "" if nothing does.
std::string what_grows(const std::function<void()>& use) {
  const auto repeat = [&](int64_t uses) {
    for (int64_t i = 0; i < uses; ++i) use();
  };
  repeat(uses_of_rounds[0]);
  int64_t bytes = 0, uses = 0;
  for (const int64_t of_round : uses_of_rounds) {
    uses = of_round;
    const Held before = held_now();
    repeat(uses);
    const Held after = held_now();
    bytes = after.bytes - before.bytes;
    if (after.files - before.files >= uses) return "a file stays open";
    if (after.threads - before.threads >= uses) return "a thread stays";
    if (bytes < quiet * uses) return "";
    if (bytes >= leaks_much * uses) break;
  }
  return bytes < leaks * uses ? "" : fmt::format("{} bytes more are allocated", bytes / uses);
}

}  // namespace

Outcome holds_no_more_each_time(const Subject& subject, const Case& one) {
  const std::vector<PlainTensor>& inputs = one.setup.inputs;
  if (!inputs.empty() && element_count(inputs[0].shape) > 1000) return not_applicable();
  Trial run(subject, one.setup);
  const std::string in_passes = what_grows([&] { run.all_passes(); });
  if (!in_passes.empty()) return broken(in_passes + " each time its passes run");
  return kept_unless(what_grows([&] { static_cast<void>(results_of(subject, one.setup)); }),
                     " each time it is prepared and released");
}

}  // namespace tandem::checker
