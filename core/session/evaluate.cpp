#include "core/session/evaluate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>

#include "core/base/error.h"
#include "core/data/loader/batch_filler.h"
#include "core/data/loader/sample_order.h"
#include "core/model/passes/results.h"
#include "core/session/target_figures.h"

namespace tandem {
namespace {

constexpr int64_t max_confusion = 1000;

int64_t width_of(const Net& net) {
  if (net.prediction < 0) return 0;
  const Shape& shape = net.tensors[size_t(net.prediction)].shape;
  return shape.c * shape.h * shape.w;
}

// Adds up what the scores of samples say.
class ScoreTally {
 public:
  ScoreTally(const Dataset& dataset, int64_t width, double threshold) : width_(width) {
    const int64_t classes = dataset.class_count();
    if (dataset.task() != TANDEM_TASK_CLASSES) {
      if (width_ == classes) targets_.emplace(dataset, threshold);
      is_of_classes_ = false;
    } else if (width_ > 0 && classes <= max_confusion && classes <= width_) {
      confusion_.assign(size_t(classes), std::vector<int64_t>(size_t(classes), 0));
    }
  }

  void add(int64_t index, int64_t label, const float* scores) {
    ++samples_;
    if (targets_) targets_->add(index, scores);
    if (is_of_classes_) rank(label, scores);
  }

  void finish(Evaluation& result) const {
    const double samples = std::max<double>(1, static_cast<double>(result.samples));
    result.has_accuracy = result.has_score = is_of_classes_ && width_ > 1;
    result.top1 = result.score = static_cast<double>(correct_) / samples;
    result.top5 = static_cast<double>(correct_of_five_) / samples;
    result.confusion = confusion_;
    if (targets_ && samples_ > 0) targets_->finish(result);
  }

 private:
  void rank(int64_t label, const float* scores) {
    if (label >= width_) return;
    // Among equal scores the lower class comes first, as in a stable sort. A score that is not a
    // number ranks after all others.
    int64_t before = 0, best = 0;
    for (int64_t c = 0; c < width_; ++c) {
      if (c != label &&
          (!(scores[c] <= scores[label]) || (scores[c] == scores[label] && c < label)))
        ++before;
      if (scores[c] > scores[best]) best = c;
    }
    correct_ += before < 1 ? 1 : 0;
    correct_of_five_ += before < 5 ? 1 : 0;
    const auto classes = static_cast<int64_t>(confusion_.size());
    if (label < classes && best < classes) ++confusion_[size_t(label)][size_t(best)];
  }

  int64_t width_ = 0, samples_ = 0;
  bool is_of_classes_ = true;
  std::optional<TargetTally> targets_;  // of several labels or numbers
  int64_t correct_ = 0, correct_of_five_ = 0;
  std::vector<std::vector<int64_t>> confusion_;
};

// Adds up the batches of one evaluation.
class Tally {
 public:
  Tally(const Phase& phase, const Dataset& dataset, double threshold)
      : phase_(phase),
        means_(phase.net.scalars.size()),
        width_(width_of(phase.net)),
        scores_(dataset, width_, threshold) {}

  // `first`: the place of the first sample in `order`.
  void add(int64_t number, const std::vector<float>& labels, int64_t first,
           const SampleOrder& order, const PredictionSink& sink) {
    const std::vector<float> scalars = phase_.scalars(number);
    for (size_t i = 0; i < scalars.size(); ++i) {
      const int64_t rows = rows_of_mean(phase_.net, phase_.net.scalars[i], labels);
      if (rows == 0) continue;
      means_[i].sum += static_cast<double>(scalars[i]) * static_cast<double>(rows);
      means_[i].rows += rows;
    }
    const float* scores = phase_.predictions(number);
    for (size_t row = 0; row < labels.size(); ++row) {
      if (!has_label(labels[row])) continue;
      ++result_.samples;
      if (scores == nullptr || width_ == 0) continue;
      const auto label = static_cast<int64_t>(labels[row]);
      const float* mine = scores + static_cast<int64_t>(row) * width_;
      const int64_t index = order.index(first + static_cast<int64_t>(row));
      scores_.add(index, label, mine);
      if (sink) sink(index, label, mine, width_);
    }
  }

  Evaluation finish(int64_t data_size, bool complete) {
    for (size_t i = 0; i < means_.size(); ++i) {
      const Scalar& scalar = phase_.net.scalars[i];
      const double mean = means_[i].sum / std::max<double>(1, static_cast<double>(means_[i].rows));
      result_.scalars.emplace_back(scalar.name, mean);
      result_.has_loss = result_.has_loss || scalar.loss_weight != 0;
      result_.loss += scalar.loss_weight * mean;
    }
    scores_.finish(result_);
    if (complete) result_.skipped = data_size - result_.samples;
    return result_;
  }

 private:
  struct Mean {
    double sum = 0;
    int64_t rows = 0;
  };

  const Phase& phase_;
  std::vector<Mean> means_;  // of the net's scalars
  Evaluation result_;
  int64_t width_;
  ScoreTally scores_;
};

int64_t samples_of(const Dataset& dataset, const EvaluateOptions& options) {
  const int64_t limit = options.sample_limit;
  return limit > 0 ? std::min(limit, dataset.size()) : dataset.size();
}

struct InFlight {
  int64_t number;
  std::vector<float> labels;
};

Evaluation run(Session& session, const Dataset& dataset, const LoaderOptions& loading,
               Loader& loader, const EvaluateOptions& options, const PredictionSink& sink) {
  const int64_t samples = samples_of(dataset, options);
  Phase& phase = session.testing();
  const int64_t batch = loading.batch;
  const BatchLayout& layout = loader.layout();
  require_sample(phase.net, layout.sample);

  Tally tally(phase, dataset, options.threshold);
  const SampleOrder order(dataset.size(), loading.seed, loading.shuffle);  // the loader's
  std::deque<InFlight> flying;
  std::optional<Batch> held;
  const auto finish_oldest = [&] {
    const auto& [number, labels] = flying.front();
    phase.executor->wait(number);
    tally.add(number, labels, number * batch, order, sink);
    flying.pop_front();
  };
  bool complete = true;
  for (int64_t number = 0; number < loading.batch_count; ++number) {
    const bool stops = options.agreement != nullptr ? options.agreement->stopping()
                                                    : options.stop != nullptr && *options.stop;
    if (stops) {
      complete = false;
      break;
    }
    const Batch current = loader.next();
    auto* labels = reinterpret_cast<float*>(current.memory + layout.label_offset);
    for (int64_t row = std::max<int64_t>(0, samples - number * batch); row < batch; ++row) {
      labels[row] = -1;
    }
    // Rows without a label are no part of the means that the net computes.
    const int64_t present = options.agreement != nullptr
                                ? options.agreement->agree(labels, batch)
                                : std::count_if(labels, labels + batch, has_label);
    const tandem_step step{0, static_cast<uint64_t>(number), 0.0F, static_cast<float>(present), 0,
                           0};
    std::memcpy(current.memory, &step, sizeof(step));
    if (flying.size() == 2) finish_oldest();
    phase.executor->issue(number, {{phase.batch_buffer, current.memory}});
    flying.push_back({number, std::vector<float>(labels, labels + batch)});
    if (held) {
      for (const int task : phase.input_tasks) phase.executor->wait_task(number - 1, task);
      loader.release(*held);
    }
    held = current;
  }
  while (!flying.empty()) finish_oldest();
  phase.executor->drain();
  if (held) loader.release(*held);
  Evaluation result = tally.finish(samples, complete);
  result.bad = loader.bad_samples();
  return result;
}

}  // namespace

void require_sample(const Net& net, const Shape& sample) {
  const Shape& wanted = net.tensors[size_t(net.data)].shape;
  if (sample.c == wanted.c && sample.h == wanted.h && sample.w == wanted.w) return;
  throw error("the images come as {}x{}x{}, the net takes {}x{}x{}", sample.c, sample.h, sample.w,
              wanted.c, wanted.h, wanted.w);
}

PredictionSink EqualScores::sink(PredictionSink next) {
  return [this, next = std::move(next)](int64_t index, int64_t label, const float* scores,
                                        int64_t classes) {
    add(scores, classes);
    if (next) next(index, label, scores, classes);
  };
}

void EqualScores::add(const float* scores, int64_t classes) {
  ++samples_;
  if (!are_equal_) return;
  if (first_.empty()) first_.assign(scores, scores + classes);
  float largest = 0;
  for (const float score : first_) largest = std::max(largest, std::abs(score));
  for (int64_t c = 0; c < classes; ++c) {
    const float away = std::abs(scores[c] - first_[size_t(c)]);
    are_equal_ = are_equal_ && away <= 1e-6F * largest;  // false of what is not a number
  }
}

namespace {

LoaderOptions loading_of(Session& session, const Dataset& dataset, const EvaluateOptions& options) {
  const int64_t batch = session.options().batch;
  LoaderOptions loading;
  loading.batch = batch;
  const int64_t samples = samples_of(dataset, options);
  loading.batch_count = (samples + batch - 1) / batch;
  loading.wrap = false;
  // The first ones would be of the first classes only.
  loading.shuffle = samples < dataset.size();
  loading.seed = options.seed;
  loading.threads = options.decode_threads;
  loading.bad_share_limit = 1;
  const Net& net = session.testing().net;
  loading.targets.wanted = !net.more_inputs.empty() && is_targets(net, net.more_inputs.back());
  loading.pixels = session.testing().pixels;
  loading.rows = session.testing().rows;
  return loading;
}

}  // namespace

SearchForNan first_sample_not_finite(Session& session, const Dataset& dataset,
                                     const EvaluateOptions& options) {
  constexpr int64_t most = 2000;
  SearchForNan search;
  const LoaderOptions loading = loading_of(session, dataset, options);
  if (loading.pixels != PixelForm::floats) return search;  // all bytes are finite
  const BatchFiller filler(dataset, loading);
  for (int64_t number = 0; number < loading.batch_count && search.found.empty(); ++number) {
    const bool stops = options.stop != nullptr && *options.stop;
    search.is_cut_short = stops || search.samples >= most;
    if (search.is_cut_short) break;
    search.found = filler.not_finite(number);
    search.samples += filler.rows_with_data(number);
  }
  return search;
}

Evaluation evaluate(Session& session, const Dataset& dataset, const EvaluateOptions& options,
                    const PredictionSink& sink) {
  const LoaderOptions loading = loading_of(session, dataset, options);
  auto loader = std::make_unique<Loader>(dataset, loading, session.allocator());
  try {
    Evaluation result = run(session, dataset, loading, *loader, options, sink);
    const Communicator* ranks = session.options().ranks;
    const bool knows_all = ranks == nullptr || ranks->rank() == 0;
    if (knows_all && result.samples == 0 && !result.bad.empty() && !options.allow_none) {
      throw error("all {} images cannot be used, none is left to test with (the first: {}: {})",
                  samples_of(dataset, options), result.bad[0].name, result.bad[0].reason);
    }
    return result;
  } catch (...) {
    // Copies out of the ring may still run: the executor waits for them, or abandons the machine.
    if (const Communicator* ranks = session.options().ranks) ranks->abort();
    session.testing().executor.reset();
    if (session.runtime().abandoned()) static_cast<void>(loader.release());
    throw;
  }
}

Evaluation evaluate_views(Session& session, const std::vector<const Dataset*>& views,
                          const EvaluateOptions& options, const PredictionSink& sink) {
  if (views.size() == 1) return evaluate(session, *views[0], options, sink);
  const Dataset& first = *views.at(0);
  const int64_t width = width_of(session.testing().net);
  std::vector<float> sums(size_t(first.size() * width), 0.0F);
  std::vector<int64_t> counts(size_t(first.size()), 0), labels(size_t(first.size()), 0);
  Evaluation result;
  double loss = 0;
  for (const Dataset* view : views) {
    const PredictionSink add = [&](int64_t index, int64_t label, const float* scores, int64_t) {
      ++counts[size_t(index)];
      labels[size_t(index)] = label;
      for (int64_t c = 0; c < width; ++c) sums[size_t(index * width + c)] += scores[c];
    };
    Evaluation one = evaluate(session, *view, options, add);
    loss += one.loss / static_cast<double>(views.size());
    result = std::move(one);
  }
  result.loss = loss;
  result.scalars.clear();  // of the last view
  result.figures.clear();
  result.metrics.clear();
  ScoreTally tally(first, width, options.threshold);
  for (int64_t index = 0; index < first.size() && width > 0; ++index) {
    const int64_t count = counts[size_t(index)];
    if (count == 0) continue;
    float* scores = sums.data() + index * width;
    for (int64_t c = 0; c < width; ++c) scores[c] /= static_cast<float>(count);
    tally.add(index, labels[size_t(index)], scores);
    if (sink) sink(index, labels[size_t(index)], scores, width);
  }
  tally.finish(result);
  return result;
}

}  // namespace tandem
