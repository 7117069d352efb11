#include "core/session/evaluate.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>

#include "core/base/error.h"
#include "core/data/sample_order.h"
#include "core/model/passes/results.h"

namespace tandem {
namespace {

constexpr int64_t max_confusion = 1000;

// Adds up the batches of one evaluation.
class Tally {
 public:
  Tally(const Phase& phase, int64_t classes) : phase_(phase), means_(phase.net.scalars.size()) {
    if (phase.net.prediction >= 0) {
      const Shape& shape = phase.net.tensors[size_t(phase.net.prediction)].shape;
      width_ = shape.c * shape.h * shape.w;
    }
    if (width_ > 0 && classes <= max_confusion && classes <= width_) {
      result_.confusion.assign(size_t(classes), std::vector<int64_t>(size_t(classes), 0));
    }
  }

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
      rank(label, mine);
      if (sink) sink(order.index(first + static_cast<int64_t>(row)), label, mine, width_);
    }
  }

  Evaluation finish(int64_t data_size, bool complete) {
    const double samples = std::max<double>(1, static_cast<double>(result_.samples));
    for (size_t i = 0; i < means_.size(); ++i) {
      const Scalar& scalar = phase_.net.scalars[i];
      const double mean = means_[i].sum / std::max<double>(1, static_cast<double>(means_[i].rows));
      result_.scalars.emplace_back(scalar.name, mean);
      result_.has_loss = result_.has_loss || scalar.loss_weight != 0;
      result_.loss += scalar.loss_weight * mean;
    }
    result_.has_accuracy = width_ > 1;
    result_.top1 = static_cast<double>(correct_) / samples;
    result_.top5 = static_cast<double>(correct_of_five_) / samples;
    if (complete) result_.skipped = data_size - result_.samples;
    return result_;
  }

 private:
  struct Mean {
    double sum = 0;
    int64_t rows = 0;
  };

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
    const auto classes = static_cast<int64_t>(result_.confusion.size());
    if (label < classes && best < classes) {
      ++result_.confusion[size_t(label)][size_t(best)];
    }
  }

  const Phase& phase_;
  std::vector<Mean> means_;  // of the net's scalars
  Evaluation result_;
  int64_t width_ = 0;
  int64_t correct_ = 0, correct_of_five_ = 0;
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

  Tally tally(phase, dataset.class_count());
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

Evaluation evaluate(Session& session, const Dataset& dataset, const EvaluateOptions& options,
                    const PredictionSink& sink) {
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
  loading.pixels = session.testing().pixels;
  loading.rows = session.testing().rows;
  auto loader = std::make_unique<Loader>(dataset, loading, session.allocator());
  try {
    Evaluation result = run(session, dataset, loading, *loader, options, sink);
    const Communicator* ranks = session.options().ranks;
    const bool knows_all = ranks == nullptr || ranks->rank() == 0;
    if (knows_all && result.samples == 0 && !result.bad.empty() && !options.allow_none) {
      throw error("all {} images are damaged, none is left to test with (the first: {}: {})",
                  samples, result.bad[0].name, result.bad[0].reason);
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

}  // namespace tandem
