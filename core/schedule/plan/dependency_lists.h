// A list of dependencies for each task of a plan, all in one array: large plans have millions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "core/schedule/plan/plan.h"

namespace tandem {

// The nearest to the task comes first.
[[nodiscard]] inline bool is_nearer(const Dependency& a, const Dependency& b) {
  return a.micro_batches_back != b.micro_batches_back ? a.micro_batches_back < b.micro_batches_back
                                                      : a.task > b.task;
}

class DependencyLists {
 public:
  struct Entry {
    int of = -1;  // task
    Dependency dependency;
  };

  DependencyLists() = default;
  // A task's entries keep their order.
  DependencyLists(size_t tasks, const std::vector<Entry>& entries)
      : begins_(tasks + 1), all_(entries.size()) {
    for (const Entry& entry : entries) ++begins_[size_t(entry.of) + 1];
    for (size_t task = 0; task < tasks; ++task) begins_[task + 1] += begins_[task];
    std::vector<size_t> next(begins_.begin(), begins_.end() - 1);
    for (const Entry& entry : entries) all_[next[size_t(entry.of)]++] = entry.dependency;
  }

  [[nodiscard]] size_t size() const { return begins_.size() - 1; }  // tasks
  [[nodiscard]] std::span<const Dependency> operator[](size_t task) const {
    return std::span(all_).subspan(begins_[task], begins_[task + 1] - begins_[task]);
  }

  // Sorts each list and removes what it has twice.
  template <class Less>
  void sort(const Less& less) {
    size_t kept = 0, begin = 0;
    for (size_t task = 0; task < size(); ++task) {
      const auto first = all_.begin() + std::ptrdiff_t(begin);
      const auto last = all_.begin() + std::ptrdiff_t(begins_[task + 1]);
      begin = begins_[task + 1];
      std::sort(first, last, less);
      const auto end = std::unique(first, last);
      kept = size_t(std::move(first, end, all_.begin() + std::ptrdiff_t(kept)) - all_.begin());
      begins_[task + 1] = kept;
    }
    all_.resize(kept);
  }

 private:
  std::vector<size_t> begins_{0};  // in all_, by task, and the end
  std::vector<Dependency> all_;
};

}  // namespace tandem
