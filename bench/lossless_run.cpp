#include "bench/lossless_run.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "core/base/error.h"
#include "core/base/numbers/random.h"
#include "core/model/net/initial_weights.h"
#include "plugins/fnv.h"

namespace tandem::bench {
namespace {

// Labels go from 0 to this.
int64_t class_count(const Net& net) {
  return net.prediction < 0 ? 2 : net.tensors[size_t(net.prediction)].shape.c;
}

namespace fs = std::filesystem;

// The batch in parts of equal size, each in memory of its own. Noise for pixels, labels in turn.
class StandingBatch {
 public:
  StandingBatch(Session& session, const LosslessRun& run) : allocator_(session.allocator()) {
    const Net& net = session.net();
    Shape sample = net.tensors[size_t(net.data)].shape;
    sample.n = 1;
    std::vector<Shape> more;
    for (const int input : net.more_inputs) more.push_back(net.tensors[size_t(input)].shape);
    layout_ = make_batch_layout(net.batch, sample, more);
    for (int64_t part = 0; part < run.parts; ++part) {
      parts_.push_back(static_cast<std::byte*>(allocator_.allocate(layout_.bytes)));
      std::memset(parts_.back(), 0, static_cast<size_t>(layout_.bytes));
    }
    fill(class_count(net), run.reversed);
  }
  ~StandingBatch() {
    for (std::byte* part : parts_) allocator_.free(part);
  }
  StandingBatch(const StandingBatch&) = delete;
  StandingBatch& operator=(const StandingBatch&) = delete;

  std::byte* for_step(int64_t step, int64_t part, float rate) {
    const tandem_step control{1,
                              static_cast<uint64_t>(step),
                              rate,
                              static_cast<float>(layout_.rows),
                              static_cast<int32_t>(part * layout_.rows),
                              0};
    std::byte* const memory = parts_[size_t(part)];
    std::memcpy(memory, &control, sizeof control);
    return memory;
  }

 private:
  void fill(int64_t classes, bool reversed) {
    const int64_t each = element_count(layout_.sample);
    const int64_t rows = layout_.rows * static_cast<int64_t>(parts_.size());
    Random random(1, stream_of("standing batch"));
    for (int64_t sample = 0; sample < rows; ++sample) {
      const int64_t position = reversed ? rows - 1 - sample : sample;
      std::byte* const memory = parts_[size_t(position / layout_.rows)];
      const int64_t row = position % layout_.rows;
      reinterpret_cast<float*>(memory + layout_.label_offset)[row] =
          static_cast<float>(sample % classes);
      auto* pixels = reinterpret_cast<float*>(memory + layout_.data_offset) + row * each;
      for (int64_t i = 0; i < each; ++i) {
        pixels[i] = static_cast<float>(random.bits() & 0xff) - 127.5F;
      }
    }
  }

  Loader::Allocator allocator_;
  BatchLayout layout_;
  std::vector<std::byte*> parts_;
};

// A loss that leaves out labels below `classes` divides by fewer samples in one part than in the
// other.
bool leaves_out(const Layer& loss, int64_t classes) {
  if (loss.attributes->find("ignore_label") == nullptr) return false;
  if (!loss.attributes->is_set("ignore_label")) return false;
  const int64_t label = loss.attributes->integer("ignore_label");
  return label >= 0 && label < classes;
}

// Whether the gradient of a batch is the mean of those of its parts: no layer looks at several
// samples at once (statistics of a loss only count its labels), and every loss is a mean over all.
bool adds_up_samples(const Net& net, int64_t classes) {
  for (size_t i = 0; i < net.layers.size(); ++i) {
    const Layer& layer = net.layers[i];
    if (!layer.has(TANDEM_LOSS) && !layer.has(TANDEM_METRIC)) {
      const tandem_layer_statistics floats = net.statistics(static_cast<int>(i));
      if (!layer.has(TANDEM_PER_SAMPLE) || floats.forward + floats.backward > 0) return false;
      continue;
    }
    if (leaves_out(layer, classes)) return false;
    const bool is_explicit = layer.attributes->find("normalization") != nullptr;
    if (is_explicit && layer.attributes->text("normalization") == "NONE") return false;
  }
  return true;
}

uint64_t hashed(uint64_t hash, const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> block(size_t{1} << 16);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())), file.gcount() > 0) {
    for (std::streamsize i = 0; i < file.gcount(); ++i) {
      hash = fnv::add(hash, static_cast<unsigned char>(block[size_t(i)]));
    }
  }
  return hash;
}

double ulp(double magnitude) {
  const auto value = static_cast<float>(magnitude);
  return double(std::nextafter(value, INFINITY)) - value;
}

// Of an array's elements.
class Apart {
 public:
  void add(double size, double apart) {
    size_ = std::max(size_, std::abs(size));
    apart_ = std::max(apart_, apart);
    is_finite_ &= std::isfinite(size) && std::isfinite(apart);
  }
  void take_to(Difference& result, const std::string& name) const {
    const double ratio = !is_finite_ ? INFINITY : apart_ > 0 ? apart_ / size_ : 0;
    if (ratio > result.most) result = {ratio, name};
  }

 private:
  double size_ = 0, apart_ = 0;
  bool is_finite_ = true;
};

std::unique_ptr<Session> session_of(Registry& registry, const NetDefinition& net,
                                    const SessionOptions& options) {
  try {
    return std::make_unique<Session>(registry, net, options);
  } catch (const Error& refusal) {
    throw Refused(refusal.what());
  }
}

}  // namespace

LosslessWeights run_lossless(Registry& registry, const NetDefinition& net, const LosslessRun& run) {
  SessionOptions o;
  o.devices = run.devices;
  o.strategy = run.strategy;
  o.strategy_options = run.options;
  o.machine.threads = run.threads;
  if (run.batch % run.parts != 0) {
    throw Refused(fmt::format("a batch of {} is not {} equal parts", run.batch, run.parts));
  }
  o.batch = run.batch / run.parts;
  o.data = net.input_shape();
  o.data.n = 1;
  o.testing = false;
  o.executor.trace = false;
  o.rule.momentum = 0.9F;
  o.rule.weight_decay = 0.0005F;
  o.rule.micro_batches = static_cast<int>(run.parts);
  const std::unique_ptr<Session> built = session_of(registry, net, o);
  Session& session = *built;
  LosslessWeights result;
  result.arrays = session.net().weights;
  result.start = initial_weights(session.net(), 1);
  result.steps = run.steps;
  for (const Layer& layer : session.net().layers) {
    result.draws_random_numbers |= layer.has(TANDEM_RANDOM);
  }
  result.adds_up_samples = adds_up_samples(session.net(), class_count(session.net()));
  session.set_initial_weights(1);
  StandingBatch batch(session, run);
  Phase& phase = session.training();
  for (int64_t number = 0; number < run.steps * run.parts; ++number) {
    std::byte* const memory = batch.for_step(number / run.parts, number % run.parts, run.rate);
    phase.executor->issue(number, {{phase.batch_buffer, memory}});
    // The step's control lies in the one batch: it may be written again when it has been copied.
    for (const int task : phase.input_tasks) phase.executor->wait_task(number, task);
  }
  phase.executor->drain();
  result.end = session.weights();
  result.momentum = session.state();
  return result;
}

Difference difference(const LosslessWeights& one, const LosslessWeights& other) {
  Difference result;
  for (const WeightArray& array : one.arrays) {
    const auto first = size_t(array.offset), end = size_t(array.offset + array.count);
    Apart weights, momentum;
    for (size_t i = first; i < end; ++i) {
      const double magnitude = std::max(std::abs(one.start[i]), std::abs(one.end[i]));
      const double apart = std::abs(double(one.end[i]) - other.end[i]);
      const double rounding = apart > 0 ? std::min(apart, one.steps * ulp(magnitude)) : 0;
      weights.add(double(one.end[i]) - one.start[i], apart - rounding);
      momentum.add(one.momentum[i], std::abs(double(one.momentum[i]) - other.momentum[i]));
    }
    weights.take_to(result, array.name);
    // What is not trained has none.
    if (array.trained()) momentum.take_to(result, "momentum of " + array.name);
  }
  return result;
}

std::string build_id() {
  std::vector<fs::path> files{fs::read_symlink("/proc/self/exe")};
  Dl_info library{};
  if (dladdr(reinterpret_cast<const void*>(&built_in_strategies), &library) != 0) {
    files.emplace_back(library.dli_fname);
  }
  for (const fs::path& folder : Registry::default_folders()) {
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(folder, missing)) {
      const bool is_cuda = entry.path().filename().string().find("cuda") != std::string::npos;
      if (entry.path().extension() == ".so" && !is_cuda) files.push_back(entry.path());
    }
  }
  std::sort(files.begin() + 1, files.end());
  uint64_t hash = fnv::begin;
  for (const fs::path& file : files) hash = hashed(hash, file);
  return fmt::format("{:016x}", hash);
}

}  // namespace tandem::bench
