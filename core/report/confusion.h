// Which classes are taken for which: counts of (true class, predicted class), kept sparse so that
// any number of classes fits; scores of each class; and an order of the classes that puts those
// next to each other that are confused.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

struct ClassScore {
  int64_t count = 0;      // samples of the class
  int64_t predicted = 0;  // samples taken for it
  int64_t right = 0;
  // Shares; 0 without samples.
  [[nodiscard]] double precision() const;
  [[nodiscard]] double recall() const;
  [[nodiscard]] double f1() const;
};

class Confusion {
 public:
  // One row and one column for each class.
  explicit Confusion(int64_t classes = 0) : classes_(classes) {}
  explicit Confusion(const std::vector<std::vector<int64_t>>& matrix);

  void add(int64_t label, int64_t predicted, int64_t count = 1);
  [[nodiscard]] int64_t classes() const { return classes_; }
  [[nodiscard]] int64_t at(int64_t label, int64_t predicted) const;
  using Cells = std::map<std::pair<int64_t, int64_t>, int64_t>;
  [[nodiscard]] const Cells& cells() const { return cells_; }
  [[nodiscard]] std::vector<ClassScore> scores() const;

 private:
  int64_t classes_;
  Cells cells_;
};

struct ClassOrder {
  std::vector<int64_t> order;                // every class once
  std::vector<std::vector<int64_t>> groups;  // of at least two classes, the most confused first
};
// Joins the two classes that are confused most, in shares of their samples, then the next two, and
// so on. `max_group`: no group gets more classes. Equal shares: the lower classes first.
[[nodiscard]] ClassOrder cluster(const Confusion& confusion, size_t max_group);

// Mistakes between two classes, in both directions, the most frequent first.
struct ConfusedPair {
  int64_t a = 0, b = 0;  // a < b
  int64_t a_as_b = 0, b_as_a = 0;
  [[nodiscard]] int64_t count() const { return a_as_b + b_as_a; }
};
[[nodiscard]] std::vector<ConfusedPair> confused_pairs(const Confusion& confusion);

}  // namespace tandem
