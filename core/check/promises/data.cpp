#include "core/check/promises/data.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <set>
#include <thread>

#include "core/base/guarded_memory.h"
#include "core/check/promises/passes.h"
#include "core/data/dataset.h"

namespace tandem::checker {

namespace {

std::unique_ptr<Dataset> opened(const DataSubject& subject, const char* split,
                                int32_t phase = TANDEM_TRAIN) {
  DatasetOptions options;
  options.source = subject.source.empty() ? subject.name : subject.source;
  options.split = split;
  options.phase = phase;
  options.shape = subject.shape;
  options.class_names = subject.class_names;
  options.parameters = subject.parameters;
  auto dataset = std::make_unique<Dataset>(subject.registry, options);
  if (dataset->type_name() != subject.name) {
    throw error("data '{}' is read by data set '{}'", options.source, dataset->type_name());
  }
  return dataset;
}

// Some samples, spread over all.
std::vector<int64_t> some_of(const Dataset& dataset, int64_t limit) {
  const int64_t count = std::min(dataset.size(), limit);
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < count; ++i) samples.push_back(i * dataset.size() / count);
  return samples;
}

struct Sample {
  std::vector<float> pixels;
  float label = 0;
  std::string damage;  // of the memory around it
  bool operator==(const Sample& other) const {
    return std::memcmp(&label, &other.label, sizeof label) == 0 &&
           pixels.size() == other.pixels.size() &&
           std::memcmp(pixels.data(), other.pixels.data(), 4 * pixels.size()) == 0;
  }
};

Sample sample_of(const Dataset& dataset, int64_t index, uint64_t seed,
                 unsigned char fill = GuardedMemory::nan) {
  const int64_t count = element_count(dataset.shape());
  const GuardedMemory pixels(4 * count, fill), label(4, fill);
  std::string reason;
  static_cast<void>(dataset.get(index, seed, pixels.data(), label.data(), &reason));
  return {{pixels.data(), pixels.data() + count},
          *label.data(),
          pixels.damage().empty() ? label.damage() : pixels.damage()};
}

std::vector<Sample> samples_of(const Dataset& dataset, const std::vector<int64_t>& which) {
  std::vector<Sample> samples;
  for (const int64_t index : which) samples.push_back(sample_of(dataset, index, uint64_t(index)));
  return samples;
}

Outcome opens(const DataSubject& subject) {
  const auto train = opened(subject, "train"), again = opened(subject, "train");
  if (train->size() != again->size() || train->class_count() != again->class_count()) {
    return broken("opened twice, it has other samples or classes");
  }
  if (subject.validates &&
      train->class_names() != opened(subject, "val", TANDEM_TEST)->class_names()) {
    return broken("split 'val' has other classes than 'train'");
  }
  const std::vector<std::string> names = train->class_names();
  if (std::set(names.begin(), names.end()).size() != names.size()) {
    return broken("two classes have one name");
  }
  for (const int64_t index : {int64_t{0}, train->size() - 1}) {
    static_cast<void>(train->sample_name(index));
  }
  static_cast<void>(train->notes());
  try {
    static_cast<void>(opened(subject, "test", TANDEM_TEST));
  } catch (const Error& refusal) {
    return note(fmt::format("it has no split 'test', which 'tandem test' may be asked for: {}",
                            refusal.what()));
  }
  return kept();
}

std::string title(const Dataset& dataset, int64_t index) {
  return fmt::format("sample {} ('{}')", index, dataset.sample_name(index));
}

// "" if there is none.
std::string pixel_not_finite(const DataSubject& subject, const Dataset& dataset) {
  for (const int64_t index : some_of(dataset, subject.samples_once)) {
    const Sample one = sample_of(dataset, index, 1);
    for (size_t i = 0; i < one.pixels.size(); ++i) {
      if (std::isfinite(one.pixels[i])) continue;
      return fmt::format("{}: pixel {} is not written, or is not a finite number",
                         title(dataset, index), i);
    }
  }
  return "";
}

// "same sample" finds a pixel that is another one in each call.
Outcome writes_every_pixel(const DataSubject& subject) {
  const auto dataset = opened(subject, "train");
  for (const int64_t index : some_of(*dataset, subject.samples)) {
    const Sample a = sample_of(*dataset, index, 1),
                 b = sample_of(*dataset, index, 1, GuardedMemory::finite);
    if (!a.damage.empty()) return broken(title(*dataset, index) + ": " + a.damage);
    for (size_t i = 0; i < a.pixels.size(); ++i) {
      if (std::isfinite(a.pixels[i])) continue;
      return broken(
          fmt::format("{}: pixel {} {}", title(*dataset, index), i,
                      std::isfinite(b.pixels[i]) ? "is not written" : "is not a finite number"));
    }
  }
  std::string found = pixel_not_finite(subject, *dataset);
  if (found.empty() && subject.validates) {
    found = pixel_not_finite(subject, *opened(subject, "val", TANDEM_TEST));
    if (!found.empty()) found = "split 'val', " + found;
  }
  return kept_unless(found);
}

// Samples that follow each other, as a data set may keep something of the one that it read before.
Outcome neighbors_agree(const DataSubject& subject, const Dataset& dataset) {
  std::vector<int64_t> which(size_t(std::min(dataset.size(), subject.samples)));
  std::iota(which.begin(), which.end(), int64_t{0});
  const std::vector<Sample> upwards = samples_of(dataset, which);
  std::reverse(which.begin(), which.end());
  std::vector<Sample> downwards = samples_of(dataset, which);
  std::reverse(downwards.begin(), downwards.end());
  for (size_t i = 0; i < upwards.size(); ++i) {
    if (upwards[i] == downwards[i]) continue;
    return broken(fmt::format("sample {} depends on which one is read before it", i));
  }
  return kept();
}

Outcome gives_the_same_again(const DataSubject& subject) {
  const auto dataset = opened(subject, "train"), fresh = opened(subject, "train");
  std::vector<int64_t> which = some_of(*dataset, subject.samples);
  std::vector<Sample> first = samples_of(*dataset, which);
  if (samples_of(*dataset, which) != first) return broken("a sample differs when it is read again");
  std::reverse(which.begin(), which.end());
  std::reverse(first.begin(), first.end());
  if (samples_of(*dataset, which) != first) return broken("a sample differs in another order");
  if (samples_of(*fresh, which) != first) {
    return broken("a sample differs when the data set is opened again");
  }
  return neighbors_agree(subject, *fresh);
}

Outcome reads_in_threads(const DataSubject& subject) {
  const auto dataset = opened(subject, "train");
  const std::vector<int64_t> which = some_of(*dataset, subject.samples);
  const std::vector<Sample> alone = samples_of(*dataset, which);
  constexpr size_t threads = 4, rounds = 6;
  std::vector<std::string> wrong(threads);
  {
    std::vector<std::jthread> running;
    for (size_t t = 0; t < wrong.size(); ++t) {
      running.emplace_back([&, t] {
        try {
          for (size_t n = 0; n < rounds * which.size() && wrong[t].empty(); ++n) {
            const size_t at = (n + t * which.size() / threads) % which.size();
            if (sample_of(*dataset, which[at], uint64_t(which[at])) == alone[at]) continue;
            wrong[t] = fmt::format("sample {} differs while other threads read", which[at]);
          }
        } catch (const std::exception& failure) {
          wrong[t] = failure.what();
        }
      });
    }
  }
  for (const std::string& one : wrong) {
    if (!one.empty()) return broken(one);
  }
  return kept();
}

Outcome labels_agree(const DataSubject& subject) {
  const auto dataset = opened(subject, "train");
  if (dataset->task() != TANDEM_TASK_CLASSES) return not_applicable();
  for (const int64_t index : some_of(*dataset, subject.samples_once)) {
    const auto seed = uint64_t(index);
    const Sample sample = sample_of(*dataset, index, seed);
    if (sample.label < 0) continue;  // it is skipped
    if (sample.label != std::floor(sample.label)) {
      return broken(fmt::format("sample {} has the class {}", index, sample.label));
    }
    const auto told = dataset->label(index);
    if (!told.has_value() && sample_of(*dataset, index, seed + 1).label != sample.label) {
      return broken(fmt::format("the class of sample {} depends on the seed", index));
    }
    if (!told.has_value() || float(*told) == sample.label) continue;
    return broken(fmt::format("of sample {} label() gives {}, but get() gives {}", index, *told,
                              sample.label));
  }
  return kept();
}

Outcome validates_on_others(const DataSubject& subject) {
  if (!subject.validates) return not_applicable();
  const auto train = opened(subject, "train", TANDEM_TEST),
             val = opened(subject, "val", TANDEM_TEST);
  std::set<std::vector<float>> known;
  for (const int64_t index : some_of(*train, subject.samples_once)) {
    known.insert(sample_of(*train, index, 0).pixels);
  }
  const std::vector<int64_t> which = some_of(*val, subject.samples);
  const auto shared = std::count_if(which.begin(), which.end(), [&](int64_t index) {
    return known.contains(sample_of(*val, index, 0).pixels);
  });
  if (shared == 0) return kept();
  const std::string text = fmt::format(
      "{} of {} samples of split 'val' that were compared are in "
      "'train', too",
      shared, which.size());
  return 2 * size_t(shared) >= which.size() ? broken(text) : note(text);
}

Outcome bytes_agree(const DataSubject& subject) {
  const auto dataset = opened(subject, "train");
  if (!dataset->has_bytes()) return not_applicable();
  const int64_t count = element_count(dataset->shape()),
                area = dataset->shape().h * dataset->shape().w;
  const PixelScale scale = dataset->pixel_scale();
  for (const int64_t index : some_of(*dataset, subject.samples)) {
    const Sample sample = sample_of(*dataset, index, 1);
    const GuardedMemory bytes(count);
    float label = 0;
    std::string reason;
    const auto* pixels = reinterpret_cast<const uint8_t*>(bytes.data());
    if (dataset->get_bytes(index, 1, reinterpret_cast<uint8_t*>(bytes.data()), &label, &reason) ==
        SampleStatus::skipped) {
      continue;
    }
    if (!bytes.damage().empty()) return broken(fmt::format("sample {}: {}", index, bytes.damage()));
    if (label != sample.label) return broken(fmt::format("sample {} has another class", index));
    for (int64_t i = 0; i < count; ++i) {
      const double value =
          (double(pixels[i]) - double(scale.means[size_t(i / area)])) * double(scale.scale);
      if (std::abs(value - double(sample.pixels[size_t(i)])) <=
          1.01 * std::abs(double(scale.scale))) {
        continue;
      }
      return broken(fmt::format("pixel {} of sample {} is {} by its byte, but {} by get()", i,
                                index, value, sample.pixels[size_t(i)]));
    }
  }
  return kept();
}

Outcome gives_targets(const DataSubject& subject) {
  const auto dataset = opened(subject, "train");
  if (dataset->task() == TANDEM_TASK_CLASSES) return not_applicable();
  for (const int64_t index : some_of(*dataset, subject.samples)) {
    const GuardedMemory values(4 * dataset->class_count());
    dataset->values(index, values.data());
    if (!values.damage().empty())
      return broken(fmt::format("sample {}: {}", index, values.damage()));
  }
  return kept();
}

Outcome keeps_no_memory(const DataSubject& subject) {
  const auto dataset = opened(subject, "train");
  int64_t next = 0;
  const std::string reading = what_grows([&] {
    static_cast<void>(sample_of(*dataset, next++ % std::min(dataset->size(), subject.samples), 1));
  });
  if (!reading.empty()) return broken(reading + " each time a sample is read");
  return kept_unless(what_grows([&] { static_cast<void>(opened(subject, "train")); }),
                     " each time it is opened and closed");
}

}  // namespace

const std::vector<DataPromise>& data_promises() {
  static const std::vector<DataPromise> all{
      {"opens", "splits open, with the same classes, and tell their names", &opens},
      {"same sample", "a sample is a function of index and seed", &gives_the_same_again},
      {"pixels", "get() writes every pixel, and no other memory", &writes_every_pixel},
      {"threads", "several threads may read samples at the same time", &reads_in_threads},
      {"label", "label() and get() give the same class", &labels_agree},
      {"splits", "validation has other samples than training", &validates_on_others},
      {"bytes", "get_bytes() gives the pixels of get()", &bytes_agree},
      {"targets", "every sample has its labels or numbers", &gives_targets},
      {"growth", "memory, files and threads do not grow", &keeps_no_memory, false},
  };
  return all;
}

void limit_time(DataSubject& subject, double seconds) {
  const auto dataset = opened(subject, "train");
  constexpr int64_t reads = 3;
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < std::min(dataset->size(), reads); ++i) {
    static_cast<void>(sample_of(*dataset, i, 1));
  }
  const std::chrono::duration<double> used = std::chrono::steady_clock::now() - begin;
  // The promises read `samples` about 40 times, most of them in threads, and `samples_once` 4
  // times.
  const double affordable = seconds / std::max(used.count() / reads, 1e-7);
  const auto at_most = [](double count, int64_t limit) {
    return std::clamp(static_cast<int64_t>(std::min(count, 1e9)), int64_t{4}, limit);
  };
  subject.samples = at_most(affordable / 80, subject.samples);
  subject.samples_once = at_most(affordable / 8, subject.samples_once);
}

}  // namespace tandem::checker
