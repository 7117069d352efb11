// What is to be said of samples that are used all the same: each sample counts once, however often
// it is read. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace tandem {

struct Remark {
  std::string text;
  int64_t count = 0;         // of samples
  int64_t first = 0;         // the least index of them
  std::string example = {};  // its name, in an audit
};

class Remarks {
 public:
  void add(const std::string& text, int64_t index);
  // In the order of their texts.
  [[nodiscard]] std::vector<Remark> list() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<bool>> samples_;  // by index
};

}  // namespace tandem
