// Evaluation: one pass over a data set with the testing plan, exact with a partial last batch.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "core/data/loader/loader.h"
#include "core/ranks/agreement.h"
#include "core/session/session.h"
#include "include/tandem/observer.h"

namespace tandem {

struct EvaluateOptions {
  int decode_threads = 0;
  bool allow_none = false;                  // no Error if every image is damaged
  const std::atomic<bool>* stop = nullptr;  // becomes true: end early, with the samples so far
  BatchAgreement* agreement = nullptr;      // of several ranks; it has the stop then
  int64_t sample_limit = 0;  // 0: all; else this number, always the same ones, drawn with `seed`
  uint64_t seed = 1;
  double threshold = 0.5;  // probability from which on a label counts as predicted
};

// Error unless a batch's samples have the shape that the net was built for.
void require_sample(const Net& net, const Shape& sample);

// Called for every sample in order (drawn samples: in the order drawn) with its index in the data
// set and its class scores.
using PredictionSink =
    std::function<void(int64_t index, int64_t label, const float* scores, int64_t classes)>;

// Finds out whether all samples of an evaluation have the same scores, to 1e-6 of the largest: such
// a net tells none apart.
class EqualScores {
 public:
  // Hands all on to `next`, where there is one.
  [[nodiscard]] PredictionSink sink(PredictionSink next);
  // Of at least two samples.
  [[nodiscard]] bool holds() const { return samples_ > 1 && are_equal_; }
  [[nodiscard]] int64_t samples() const { return samples_; }

 private:
  void add(const float* scores, int64_t classes);

  std::vector<float> first_;
  int64_t samples_ = 0;
  bool are_equal_ = true;
};

[[nodiscard]] Evaluation evaluate(Session& session, const Dataset& dataset,
                                  const EvaluateOptions& options, const PredictionSink& sink = {});

// A search among the samples of an evaluation.
struct SearchForNan {
  std::string found;          // "value 3 of sample 57 ('cat/1.jpg') is infinite"; "": nothing
  int64_t samples = 0;        // that were read
  bool is_cut_short = false;  // there are more
};

// After an evaluation whose loss is not finite. Reads its samples again, until options.stop, some
// 2000 at most.
[[nodiscard]] SearchForNan first_sample_not_finite(Session& session, const Dataset& dataset,
                                                   const EvaluateOptions& options);

// The same of several views of the same samples (other crops, mirrored): each sample's scores are
// the means over its views, and the loss the mean of theirs.
[[nodiscard]] Evaluation evaluate_views(Session& session, const std::vector<const Dataset*>& views,
                                        const EvaluateOptions& options,
                                        const PredictionSink& sink = {});

}  // namespace tandem
