// What one evaluation says of each sample: collected from the predictions as they are made, for the
// report of a run and for `tandem test`.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/file/definition.h"
#include "core/model/net/net.h"
#include "core/report/confusion.h"
#include "core/session/evaluate.h"

namespace tandem {

// Whether the scores of the net's prediction are probabilities: it ends in a Softmax.
[[nodiscard]] bool gives_probabilities(const Net& net);
// Whether the net learns probabilities: it has a Softmax, SoftmaxWithLoss or
// MultinomialLogisticLoss. The softmax of other nets' scores says nothing of their certainty.
[[nodiscard]] bool learns_probabilities(const NetDefinition& net);
// The softmax of the scores, unless they are probabilities already.
[[nodiscard]] std::vector<double> probabilities(const float* scores, int64_t classes, bool already);
// False if a score is NaN or positive infinity, or none is finite: finite weights may give such
// scores if training has diverged. The logarithm of a probability may be negative infinity.
[[nodiscard]] bool are_usable(const float* scores, int64_t classes);

struct Judgement {
  int64_t index = 0;  // of the sample in the data set
  int64_t label = 0, predicted = 0;
  double probability = 0;  // of the predicted class
};

struct Findings {
  int64_t samples = 0, right = 0;
  int64_t without_scores = 0;  // whose scores are of no use
  Confusion confusion;
  std::vector<Judgement> mistakes;    // the most confident first
  std::vector<Judgement> doubts;      // right, the least certain first
  int64_t sure_mistakes = 0;          // of probability sure_probability or more
  std::vector<TargetFigure> figures;  // of several labels or numbers, which have none of these
};
constexpr double sure_probability = 0.95;

// Of several labels or numbers it only counts the samples, and those without scores.
class FindingsCollector {
 public:
  // Keeps at most `kept` mistakes and doubts.
  FindingsCollector(const Net& net, int64_t classes, size_t kept);

  // Refers to this object.
  [[nodiscard]] PredictionSink sink();
  // What was collected; sorted.
  [[nodiscard]] Findings take();

 private:
  void add(int64_t index, int64_t label, const float* scores, int64_t classes);

  bool are_probabilities_, judges_classes_;
  size_t kept_;
  Findings findings_;
};

}  // namespace tandem
