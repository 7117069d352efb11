// Runs the testing plan of a session on rows in memory: what the net reads, and the class scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/session/session.h"

namespace tandem {

class NetRunner {
 public:
  // The session outlives it, is of one process, and takes pixels as floats. Throws Error for a net
  // that has no class scores, or that reads more than pictures.
  explicit NetRunner(Session& session);
  ~NetRunner();
  NetRunner(const NetRunner&) = delete;
  NetRunner& operator=(const NetRunner&) = delete;

  [[nodiscard]] int64_t row_elements() const { return row_elements_; }
  [[nodiscard]] int64_t classes() const { return classes_; }
  // `count` rows of row_elements() floats (C,H,W) to count * classes() scores. One thread at a
  // time.
  void run(const float* rows, int64_t count, float* scores);

 private:
  void run_batch(const float* rows, int64_t count, float* scores);

  Session& session_;
  BatchLayout layout_;
  Loader::Allocator allocator_;
  std::byte* memory_ = nullptr;
  int64_t row_elements_ = 0, classes_ = 0;
};

}  // namespace tandem
