#include "core/report/findings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/model/passes/results.h"

namespace tandem {
namespace {

bool more_probable(const Judgement& a, const Judgement& b) {
  return a.probability > b.probability;
}
bool less_probable(const Judgement& a, const Judgement& b) {
  return a.probability < b.probability;
}

using Comes = bool (*)(const Judgement&, const Judgement&);

void sort_and_cut(std::vector<Judgement>& list, size_t kept, Comes comes) {
  std::stable_sort(list.begin(), list.end(), comes);
  if (list.size() > kept) list.resize(kept);
}

void keep(std::vector<Judgement>& list, const Judgement& one, size_t kept, Comes comes) {
  list.push_back(one);
  if (list.size() > 8 * (kept + 1)) sort_and_cut(list, kept, comes);
}

}  // namespace

bool gives_probabilities(const Net& net) {
  const int producer = net.tensors[size_t(net.prediction)].producer;
  return producer >= 0 && std::string(net.layers[size_t(producer)].type->name) == "Softmax";
}

bool learns_probabilities(const NetDefinition& net) {
  // Of a plugin's loss nothing is known: it is taken for one of probabilities.
  constexpr std::array others{"HingeLoss", "EuclideanLoss", "HuberLoss", "SigmoidCrossEntropyLoss",
                              "ContrastiveLoss"};
  return std::any_of(net.layers.begin(), net.layers.end(), [&](const LayerDefinition& layer) {
    return layer.type == "Softmax" ||
           (layer.type.find("Loss") != std::string::npos &&
            std::find(others.begin(), others.end(), layer.type) == others.end());
  });
}

std::vector<double> probabilities(const float* scores, int64_t classes, bool already) {
  std::vector<double> values(scores, scores + classes);
  if (already) return values;
  const double largest = *std::max_element(values.begin(), values.end());
  double sum = 0;
  for (double& value : values) sum += value = std::exp(value - largest);
  for (double& value : values) value /= sum;
  return values;
}

bool are_usable(const float* scores, int64_t classes) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto is_below_infinity = [](float score) { return score < infinity; };  // and no NaN
  return std::all_of(scores, scores + classes, is_below_infinity) &&
         std::any_of(scores, scores + classes, [](float score) { return std::isfinite(score); });
}

FindingsCollector::FindingsCollector(const Net& net, int64_t classes, size_t kept)
    : are_probabilities_(net.prediction >= 0 && gives_probabilities(net)),
      judges_classes_(net.more_inputs.empty() || !is_targets(net, net.more_inputs.back())),
      kept_(kept) {
  findings_.confusion = Confusion(classes);
}

PredictionSink FindingsCollector::sink() {
  return [this](int64_t index, int64_t label, const float* scores, int64_t classes) {
    add(index, label, scores, classes);
  };
}

void FindingsCollector::add(int64_t index, int64_t label, const float* scores, int64_t classes) {
  if (!are_usable(scores, classes)) ++findings_.without_scores;
  if (!judges_classes_) {
    ++findings_.samples;
    return;
  }
  const auto best = std::max_element(scores, scores + classes) - scores;
  float sum = 0;  // in single precision: a validation set has many samples times classes
  for (int64_t c = 0; c < classes && !are_probabilities_; ++c) {
    sum += std::exp(scores[c] - scores[best]);
  }
  const Judgement one{index, label, best, double(are_probabilities_ ? scores[best] : 1 / sum)};
  ++findings_.samples;
  findings_.confusion.add(label, best);
  if (best == label) {
    ++findings_.right;
    keep(findings_.doubts, one, kept_, less_probable);
    return;
  }
  if (one.probability >= sure_probability) ++findings_.sure_mistakes;
  keep(findings_.mistakes, one, kept_, more_probable);
}

Findings FindingsCollector::take() {
  sort_and_cut(findings_.mistakes, kept_, more_probable);
  sort_and_cut(findings_.doubts, kept_, less_probable);
  return std::move(findings_);
}

}  // namespace tandem
