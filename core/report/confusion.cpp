#include "core/report/confusion.h"

#include <algorithm>
#include <tuple>

namespace tandem {
namespace {

double share_of(int64_t part, int64_t all) {
  return all > 0 ? double(part) / double(all) : 0;
}

struct Link {
  double strength = 0;
  int64_t a = 0, b = 0;
};

// The links of confused classes, the strongest first.
std::vector<Link> links_of(const Confusion& confusion) {
  const std::vector<ClassScore> scores = confusion.scores();
  const auto count = [&](int64_t c) { return scores[size_t(c)].count; };
  std::vector<Link> links;
  for (const ConfusedPair& pair : confused_pairs(confusion)) {
    links.push_back({share_of(pair.a_as_b, count(pair.a)) + share_of(pair.b_as_a, count(pair.b)),
                     pair.a, pair.b});
  }
  std::stable_sort(links.begin(), links.end(), [](const Link& x, const Link& y) {
    return std::tuple(-x.strength, x.a, x.b) < std::tuple(-y.strength, y.a, y.b);
  });
  return links;
}

// Chains of classes that grow by being joined at their ends.
class Chains {
 public:
  explicit Chains(int64_t classes) {
    for (int64_t c = 0; c < classes; ++c) {
      chains_.push_back({c});
      chain_of_.push_back(size_t(c));
    }
  }

  // False if they are one chain already, or would be longer than `max_length`.
  bool join(int64_t a, int64_t b, size_t max_length) {
    const size_t first = chain_of_[size_t(a)];
    const size_t second = chain_of_[size_t(b)];
    if (first == second) return false;
    std::vector<int64_t>&x = chains_[first], &y = chains_[second];
    if (x.size() + y.size() > max_length) return false;
    // Each is turned so that the two classes are as near to each other as it can be.
    if (at(x, a) < x.size() / 2) std::reverse(x.begin(), x.end());
    if (at(y, b) > (y.size() - 1) / 2) std::reverse(y.begin(), y.end());
    for (const int64_t c : y) chain_of_[size_t(c)] = first;
    x.insert(x.end(), y.begin(), y.end());
    std::vector<int64_t>().swap(y);  // clear() would keep the memory, a quadratic amount in all
    return true;
  }

  [[nodiscard]] const std::vector<std::vector<int64_t>>& all() const { return chains_; }

 private:
  static size_t at(const std::vector<int64_t>& chain, int64_t c) {
    return size_t(std::find(chain.begin(), chain.end(), c) - chain.begin());
  }

  std::vector<std::vector<int64_t>> chains_;
  std::vector<size_t> chain_of_;
};

int64_t mistakes_within(const Confusion& confusion, const std::vector<int64_t>& group) {
  int64_t sum = 0;
  for (const int64_t a : group) {
    for (const int64_t b : group) sum += a == b ? 0 : confusion.at(a, b);
  }
  return sum;
}

}  // namespace

double ClassScore::precision() const {
  return share_of(right, predicted);
}
double ClassScore::recall() const {
  return share_of(right, count);
}
double ClassScore::f1() const {
  return share_of(2 * right, count + predicted);
}

Confusion::Confusion(const std::vector<std::vector<int64_t>>& matrix)
    : classes_(int64_t(matrix.size())) {
  for (size_t label = 0; label < matrix.size(); ++label) {
    for (size_t predicted = 0; predicted < matrix[label].size(); ++predicted) {
      add(int64_t(label), int64_t(predicted), matrix[label][predicted]);
    }
  }
}

void Confusion::add(int64_t label, int64_t predicted, int64_t count) {
  if (count != 0) cells_[{label, predicted}] += count;
}

int64_t Confusion::at(int64_t label, int64_t predicted) const {
  const auto found = cells_.find({label, predicted});
  return found == cells_.end() ? 0 : found->second;
}

std::vector<ClassScore> Confusion::scores() const {
  std::vector<ClassScore> scores(static_cast<size_t>(classes_));
  for (const auto& [cell, count] : cells_) {
    if (cell.first < classes_) scores[size_t(cell.first)].count += count;
    if (cell.second < classes_) scores[size_t(cell.second)].predicted += count;
    if (cell.first == cell.second && cell.first < classes_) {
      scores[size_t(cell.first)].right += count;
    }
  }
  return scores;
}

ClassOrder cluster(const Confusion& confusion, size_t max_group) {
  const std::vector<Link> links = links_of(confusion);
  Chains chains(confusion.classes());
  for (const Link& link : links) (void)chains.join(link.a, link.b, max_group);
  ClassOrder result;
  for (const auto& chain : chains.all()) {
    if (chain.size() > 1) result.groups.push_back(chain);
  }
  std::stable_sort(result.groups.begin(), result.groups.end(), [&](const auto& a, const auto& b) {
    return mistakes_within(confusion, a) > mistakes_within(confusion, b);
  });
  // Groups stay whole where they are joined further.
  const auto all = size_t(confusion.classes());
  for (const Link& link : links) (void)chains.join(link.a, link.b, all);
  for (const auto& chain : chains.all()) {
    result.order.insert(result.order.end(), chain.begin(), chain.end());
  }
  return result;
}

std::vector<ConfusedPair> confused_pairs(const Confusion& confusion) {
  std::map<std::pair<int64_t, int64_t>, ConfusedPair> pairs;
  for (const auto& [cell, count] : confusion.cells()) {
    const auto [label, predicted] = cell;
    if (label == predicted || label >= confusion.classes() || predicted >= confusion.classes()) {
      continue;
    }
    const int64_t a = std::min(label, predicted), b = std::max(label, predicted);
    ConfusedPair& pair = pairs.try_emplace({a, b}, ConfusedPair{a, b, 0, 0}).first->second;
    (label == a ? pair.a_as_b : pair.b_as_a) += count;
  }
  std::vector<ConfusedPair> result;
  for (const auto& [classes, pair] : pairs) result.push_back(pair);
  std::stable_sort(result.begin(), result.end(), [](const auto& x, const auto& y) {
    return std::tuple(-x.count(), x.a, x.b) < std::tuple(-y.count(), y.a, y.b);
  });
  return result;
}

}  // namespace tandem
