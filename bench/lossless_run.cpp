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
#include "core/base/random.h"

namespace tandem::bench {
namespace {

namespace fs = std::filesystem;

// Noise for pixels, labels in turn.
void fill(std::byte* memory, const BatchLayout& layout, int64_t classes, bool reversed) {
  std::memset(memory, 0, static_cast<size_t>(layout.bytes));
  auto* labels = reinterpret_cast<float*>(memory + layout.label_offset);
  auto* pixels = reinterpret_cast<float*>(memory + layout.data_offset);
  const int64_t each = element_count(layout.sample);
  Random random(1, stream_of("standing batch"));
  for (int64_t sample = 0; sample < layout.rows; ++sample) {
    const int64_t row = reversed ? layout.rows - 1 - sample : sample;
    labels[row] = static_cast<float>(sample % classes);
    for (int64_t i = 0; i < each; ++i) {
      pixels[row * each + i] = static_cast<float>(random.bits() & 0xff) - 127.5F;
    }
  }
}

class StandingBatch {
 public:
  StandingBatch(Session& session, bool reversed) : allocator_(session.allocator()) {
    const Net& net = session.net();
    Shape sample = net.tensors[size_t(net.data)].shape;
    sample.n = 1;
    std::vector<Shape> more;
    for (const int input : net.more_inputs) more.push_back(net.tensors[size_t(input)].shape);
    const BatchLayout layout = make_batch_layout(net.batch, sample, more);
    rows_ = layout.rows;
    memory_ = static_cast<std::byte*>(allocator_.allocate(layout.bytes));
    int64_t classes = 2;
    if (net.prediction >= 0) classes = net.tensors[size_t(net.prediction)].shape.c;
    fill(memory_, layout, classes, reversed);
  }
  ~StandingBatch() { allocator_.free(memory_); }
  StandingBatch(const StandingBatch&) = delete;
  StandingBatch& operator=(const StandingBatch&) = delete;

  std::byte* for_step(int64_t step, float rate) {
    const tandem_step control{1, static_cast<uint64_t>(step), rate, static_cast<float>(rows_), 0,
                              0};
    std::memcpy(memory_, &control, sizeof control);
    return memory_;
  }

 private:
  Loader::Allocator allocator_;
  int64_t rows_ = 0;
  std::byte* memory_ = nullptr;
};

constexpr uint64_t hash_start = 0xcbf29ce484222325ULL;

uint64_t hashed(uint64_t hash, const fs::path& path) {
  constexpr uint64_t prime = 0x100000001b3ULL;
  std::ifstream file(path, std::ios::binary);
  std::vector<char> block(size_t{1} << 16);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())), file.gcount() > 0) {
    for (std::streamsize i = 0; i < file.gcount(); ++i) {
      hash = (hash ^ static_cast<unsigned char>(block[size_t(i)])) * prime;
    }
  }
  return hash;
}

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
  o.strategy = run.way.strategy;
  o.strategy_options = run.way.options;
  o.machine.threads = run.threads;
  o.batch = run.batch;
  o.data = net.input_shape();
  o.data.n = 1;
  o.testing = false;
  o.executor.trace = false;
  o.rule.momentum = 0.9F;
  o.rule.weight_decay = 0.0005F;
  const std::unique_ptr<Session> built = session_of(registry, net, o);
  Session& session = *built;
  LosslessWeights result;
  result.arrays = session.net().weights;
  result.start = initial_weights(session.net(), 1);
  for (const Layer& layer : session.net().layers) {
    result.draws_random_numbers |= layer.has(TANDEM_RANDOM);
  }
  session.set_initial_weights(1);
  StandingBatch batch(session, run.reversed);
  Phase& phase = session.training();
  for (int64_t step = 0; step < run.steps; ++step) {
    phase.executor->issue(step, {{phase.batch_buffer, batch.for_step(step, run.rate)}});
    // The step's control lies in the one batch: it may be written again when it has been copied.
    for (const int task : phase.input_tasks) phase.executor->wait_task(step, task);
  }
  phase.executor->drain();
  result.end = session.weights();
  return result;
}

double difference(const LosslessWeights& one, const LosslessWeights& other) {
  double largest = 0;
  for (const WeightArray& array : one.arrays) {
    double moved = 0, apart = 0;
    for (auto i = size_t(array.offset); i < size_t(array.offset + array.count); ++i) {
      const double there = one.end[i], here = std::abs(there - other.end[i]);
      if (!std::isfinite(here)) return INFINITY;
      moved = std::max(moved, std::abs(there - one.start[i]));
      apart = std::max(apart, here);
    }
    if (apart > 0) largest = std::max(largest, apart / moved);
  }
  return largest;
}

std::string build_id() {
  std::vector<fs::path> files{fs::read_symlink("/proc/self/exe")};
  Dl_info library{};
  if (dladdr(reinterpret_cast<const void*>(&strategies), &library) != 0) {
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
  uint64_t hash = hash_start;
  for (const fs::path& file : files) hash = hashed(hash, file);
  return fmt::format("{:016x}", hash);
}

}  // namespace tandem::bench
