// Long work that is no training, as measuring and forecasting, tells how far it is, and asks
// whether to end early with what there is.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace tandem {

struct LongWork {
  std::string what;           // "measuring steps of sequential"
  int64_t done = 0, all = 0;  // parts
};
// Called after each part; false: end. An empty function watches nothing.
using WorkWatch = std::function<bool(const LongWork&)>;
[[nodiscard]] inline bool goes_on(const WorkWatch& watch, const LongWork& work) {
  return !watch || watch(work);
}

// Gives a line with the time left where the work takes over two seconds: after its first part, then
// every ten seconds. Ends the work once `stop`, which may be null, is set.
[[nodiscard]] WorkWatch tell_work(std::function<void(const std::string&)> line,
                                  const std::atomic<bool>* stop);

}  // namespace tandem
