// One layer with every mistake that `tandem plugin check` is to find, each as a type of its own:
// "mistake.<Name>". "mistake.None" is the same layer without a mistake. It has two inputs, a kink,
// two trained weights, and sums over a row:
//   y = factor[c] * max(a, b) + offset * mean of the row of a
#include <fcntl.h>
#include <cstdint>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <thread>

#include "plugins/sdk.h"

namespace {

// The address is volatile, so that the compiler does not know and warn.
void write_to_unmapped_memory() {
  volatile uintptr_t address = 16;
  *reinterpret_cast<volatile float*>(address) = 1;
}

using namespace tandem::sdk;

enum class Mistake {
  None,
  AddsToInputGradient,
  AddsToOutput,
  LeavesLastElement,
  LeavesSecondGradient,
  WrongInputGradient,
  WrongSecondGradient,
  ForgetsRowTerm,
  WrongWeightGradient,
  WrongSecondWeight,
  IgnoresAccumulate,
  AlwaysAccumulates,
  WritesPastOutput,
  WritesFarPastOutput,
  WritesBeforeOutput,
  WritesPastGradient,
  WritesPastScratch,
  WritesPastSaved,
  WritesInput,
  WritesWeight,
  WritesOutputGradient,
  WritesOutputInBackward,
  MixesRows,
  MixesRowsInBackward,
  UsesBatchSize,
  ThreadLocalRandom,
  CountedRandom,
  GlobalRandom,
  MissingRandomTrait,
  RandomByLocalRow,
  RandomWithoutStep,
  RandomInTesting,
  MissingReadsInputs,
  KeepsPointer,
  ReadsUnwrittenScratch,
  ReadsSavedOfEarlierStep,
  NeedsAllGradients,
  ReadsAbsentFlag,
  SwallowsNan,
  SwallowsNanOfWeight,
  SwallowsNanBackward,
  WrongLayout,
  WrongInPlace,
  WrongSlices,
  LeaksEachPass,
  LeaksEachPrepare,
  LeaksFiles,
  ThrowsInBackward,
  Crashes,
  Aborts,
  SavesDespiteTrait,
  MoreRows,
  NoBackwardWeights,
  ThreadCountMatters,
  NegativeSaved,
  NegativeCost,
  HidesNanByFusedRelu,
  AppliesFusedReluTwice,
  AddsBehindFusedRelu,
  ForgetsFusedGradient,
  ForgetsGradientBefore,
  StaticMeans,
  StaticScratch,
  ScalesInTraining,
  NeedsOwnForward,
  ZeroByZeroInForward,
  ZeroByZeroInBackward,
  LogarithmOfExponential,
  SpreadsNan,
  ComparesInputPointers,
  CostOfOneRow,
  CostTooLarge,
  CostTooSmall,
  CostNotANumber,
};

constexpr const char* names[] = {
    "mistake.None",
    "mistake.AddsToInputGradient",
    "mistake.AddsToOutput",
    "mistake.LeavesLastElement",
    "mistake.LeavesSecondGradient",
    "mistake.WrongInputGradient",
    "mistake.WrongSecondGradient",
    "mistake.ForgetsRowTerm",
    "mistake.WrongWeightGradient",
    "mistake.WrongSecondWeight",
    "mistake.IgnoresAccumulate",
    "mistake.AlwaysAccumulates",
    "mistake.WritesPastOutput",
    "mistake.WritesFarPastOutput",
    "mistake.WritesBeforeOutput",
    "mistake.WritesPastGradient",
    "mistake.WritesPastScratch",
    "mistake.WritesPastSaved",
    "mistake.WritesInput",
    "mistake.WritesWeight",
    "mistake.WritesOutputGradient",
    "mistake.WritesOutputInBackward",
    "mistake.MixesRows",
    "mistake.MixesRowsInBackward",
    "mistake.UsesBatchSize",
    "mistake.ThreadLocalRandom",
    "mistake.CountedRandom",
    "mistake.GlobalRandom",
    "mistake.MissingRandomTrait",
    "mistake.RandomByLocalRow",
    "mistake.RandomWithoutStep",
    "mistake.RandomInTesting",
    "mistake.MissingReadsInputs",
    "mistake.KeepsPointer",
    "mistake.ReadsUnwrittenScratch",
    "mistake.ReadsSavedOfEarlierStep",
    "mistake.NeedsAllGradients",
    "mistake.ReadsAbsentFlag",
    "mistake.SwallowsNan",
    "mistake.SwallowsNanOfWeight",
    "mistake.SwallowsNanBackward",
    "mistake.WrongLayout",
    "mistake.WrongInPlace",
    "mistake.WrongSlices",
    "mistake.LeaksEachPass",
    "mistake.LeaksEachPrepare",
    "mistake.LeaksFiles",
    "mistake.ThrowsInBackward",
    "mistake.Crashes",
    "mistake.Aborts",
    "mistake.SavesDespiteTrait",
    "mistake.MoreRows",
    "mistake.NoBackwardWeights",
    "mistake.ThreadCountMatters",
    "mistake.NegativeSaved",
    "mistake.NegativeCost",
    "mistake.HidesNanByFusedRelu",
    "mistake.AppliesFusedReluTwice",
    "mistake.AddsBehindFusedRelu",
    "mistake.ForgetsFusedGradient",
    "mistake.ForgetsGradientBefore",
    "mistake.StaticMeans",
    "mistake.StaticScratch",
    "mistake.ScalesInTraining",
    "mistake.NeedsOwnForward",
    "mistake.ZeroByZeroInForward",
    "mistake.ZeroByZeroInBackward",
    "mistake.LogarithmOfExponential",
    "mistake.SpreadsNan",
    "mistake.ComparesInputPointers",
    "mistake.CostOfOneRow",
    "mistake.CostTooLarge",
    "mistake.CostTooSmall",
    "mistake.CostNotANumber",
};
constexpr int mistakes = sizeof names / sizeof *names;

constexpr bool draws(Mistake m) {
  return m >= Mistake::ThreadLocalRandom && m <= Mistake::RandomInTesting;
}
// These fuse a ReLU, or a sum.
constexpr bool fuses(Mistake m) {
  return m == Mistake::HidesNanByFusedRelu || m == Mistake::AppliesFusedReluTwice ||
         m == Mistake::AddsBehindFusedRelu || m == Mistake::ForgetsFusedGradient;
}
// These have one input and no weights.
constexpr bool is_plain(Mistake m) {
  return m == Mistake::WrongLayout || m == Mistake::WrongInPlace || m == Mistake::WrongSlices;
}

template <Mistake m>
struct Type : LayerType {
  const char* name() const override { return names[static_cast<int>(m)]; }
  const char* help() const override { return "a mistake to be found"; }
  Inputs inputs() const override {
    return is_plain(m) ? Inputs{Input("a")} : Inputs{Input("a"), Input("b")};
  }
  uint64_t traits() const override {
    uint64_t traits = TANDEM_PER_SAMPLE;
    if (m != Mistake::MissingReadsInputs) traits |= TANDEM_BACKWARD_READS_INPUTS;
    if (draws(m) && m != Mistake::MissingRandomTrait) traits |= TANDEM_RANDOM;
    if (m == Mistake::WrongInPlace) traits |= TANDEM_IN_PLACE;
    if (m == Mistake::WrongSlices) traits |= TANDEM_SLICED_OUTPUTS;
    if (m == Mistake::SavesDespiteTrait || m == Mistake::NeedsOwnForward) {
      traits |= TANDEM_SAVES_NOTHING;
    }
    return traits;
  }
  std::vector<Shape> shapes(const Query& query) const override {
    Shape shape = query.input(0);
    if (m == Mistake::MoreRows) ++shape.n;
    return {shape};
  }
  std::vector<Weight> weights(const Query& query) const override {
    if (is_plain(m)) return {};
    return {{.name = "factor", .shape = {query.input(0).c, 1, 1, 1}, .initial = 1},
            {.name = "offset", .shape = {1, 1, 1, 1}}};
  }
  tandem_layer_cost cost(const Query& query) const override {
    const Shape& x = query.input(0);
    auto size = static_cast<double>(count(x));
    if (m == Mistake::CostOfOneRow) size = static_cast<double>(x.c * x.h * x.w);
    if (m == Mistake::CostTooLarge) size *= 1e6;
    if (m == Mistake::CostTooSmall) size *= 1e-6;
    if (m == Mistake::CostNotANumber) size = NAN;
    return make_cost(5 * size, 5 * size, 5 * size, 12 * size, 20 * size,
                     m == Mistake::NegativeCost ? -1 : 12 * size);
  }
};

// A scheme of random numbers: the factor of row `row`.
template <Mistake m>
float draw(const Pass& pass, int64_t begin, int64_t row) {
  if (!draws(m)) return 1;
  if (m == Mistake::ThreadLocalRandom) {
    thread_local std::mt19937 generator(7);
    return static_cast<float>(generator() % 3);
  }
  if (m == Mistake::CountedRandom) {
    static std::atomic<uint32_t> calls{0};
    return static_cast<float>(calls++ % 3);
  }
  if (m == Mistake::GlobalRandom) return static_cast<float>(std::rand() % 3);
  const uint64_t step = m == Mistake::RandomWithoutStep ? 0 : pass.step().step;
  const int64_t position =
      m == Mistake::RandomByLocalRow ? row : begin + pass.step().first_row + row;
  const tandem_random4 block =
      tandem_random_block(pass.step().seed, step, 3, static_cast<uint64_t>(position), 0);
  return tandem_uniform(block.value[0]) < 0.5F ? 0.5F : 2.0F;
}

constexpr int64_t max_rows = 256;
float static_means[max_rows];
const float* kept_pointer = nullptr;
char* volatile leaked = nullptr;  // otherwise the compiler leaves the allocations out

template <Mistake m>
class Cpu : public Needs {
 public:
  Cpu(const Binding& binding, const Call& call)
      : shape_(binding.input(0).shape),
        begin_(binding.raw.batch_begin),
        batch_(binding.raw.batch_size),
        threads_(call.threads),
        draws_(draws(m) && (binding.training() || m == Mistake::RandomInTesting)),
        is_training_(binding.training()),
        wants_data_(binding.has(TANDEM_WANTS_BACKWARD_DATA)),
        rectifies_(binding.fuses_relu()) {
    saved_bytes = m == Mistake::NegativeSaved     ? -4
                  : m == Mistake::NeedsOwnForward ? 0
                                                  : 4 * shape_.n;
    scratch_bytes = 4 * shape_.n;
    if (m == Mistake::LeaksEachPrepare) leaked = new char[100];
    if (m == Mistake::LeaksFiles) static_cast<void>(::open("/dev/null", O_RDONLY));
  }

  static constexpr uint32_t fused_activations = fuses(m) ? relu_only : 0;
  static constexpr uint32_t fused_gradients = m == Mistake::ForgetsFusedGradient ? relu_only : 0;
  static constexpr uint32_t gradients_before = m == Mistake::ForgetsGradientBefore ? relu_only : 0;
  static constexpr bool fuses_sum = m == Mistake::AddsBehindFusedRelu;
  static LayoutOptions layouts(const Binding& binding) {
    if (m == Mistake::WrongLayout) return any_layout(binding.input(0).shape.c);
    return {{TANDEM_NCHW, TANDEM_NCHW, 0}};
  }

  void forward(const Call&, const Pass& pass) const {
    const float *a = pass.input(0), *b = pass.input(1);
    float* y = pass.output(0);
    const int64_t last = count(shape_) - 1;
    for (int64_t row = 0; row < shape_.n; ++row) {
      const float of_row = mean(a, m == Mistake::MixesRows ? 0 : row);
      if (keeps_static) static_means[row % max_rows] = of_row;
      if (m == Mistake::NeedsOwnForward) means_[row % max_rows] = of_row;
    }
    if (m == Mistake::StaticScratch) std::this_thread::yield();
    for (int64_t row = 0; row < shape_.n; ++row) {
      float factor = draws_ ? draw<m>(pass, begin_, row) : 1;
      if (m == Mistake::ScalesInTraining && is_training_) factor = 2;
      const float of_row = m == Mistake::StaticScratch ? static_means[row % max_rows]
                                                       : mean(a, m == Mistake::MixesRows ? 0 : row);
      float term = pass.weight(1)[0] * of_row;
      if (m == Mistake::ZeroByZeroInForward) term *= of_row / of_row;
      if (m == Mistake::SpreadsNan) term += 0 * mean(a, 0);
      each(row, [&](int64_t i, int64_t c) {
        float larger = a[i] < b[i] || b[i] != b[i] ? b[i] : a[i];
        if (m == Mistake::SwallowsNan && larger != larger) larger = 0;
        if (m == Mistake::LogarithmOfExponential) larger = std::log(std::exp(larger));
        if (m == Mistake::ComparesInputPointers && a == b) larger = 0;
        float weight = pass.weight(0)[c];
        if (m == Mistake::SwallowsNanOfWeight && weight != weight) weight = 1;
        const float before = m == Mistake::AddsToOutput ? y[i] : 0;
        if (m == Mistake::LeavesLastElement && i == last) return;
        y[i] = before + factor * (weight * larger + term);
        if (m == Mistake::UsesBatchSize) y[i] += static_cast<float>(shape_.n) * 0.1F;
        if (m == Mistake::ThreadCountMatters) y[i] += static_cast<float>(threads_);
        if (m == Mistake::ReadsAbsentFlag && !wants_data_) y[i] += 1;
        if (rectifies_ && m == Mistake::HidesNanByFusedRelu) y[i] = y[i] > 0 ? y[i] : 0;
        if (rectifies_ && m != Mistake::HidesNanByFusedRelu) y[i] = y[i] < 0 ? 0 : y[i];
        if (pass.addend() != nullptr) y[i] += pass.addend()[i];
      });
      if (m == Mistake::NeedsOwnForward) continue;
      pass.saved()[row] =
          m == Mistake::ReadsSavedOfEarlierStep && row == 0 ? pass.saved()[row] : factor;
    }
    if (m == Mistake::WritesPastOutput) y[last + 1] = 1;
    if (m == Mistake::WritesFarPastOutput) y[last + 100000] = 1;
    if (m == Mistake::WritesBeforeOutput) y[-1] = 1;
    if (m == Mistake::WritesPastScratch) pass.scratch()[shape_.n] = 1;
    if (m == Mistake::WritesPastSaved) pass.saved()[shape_.n] = 1;
    if (m == Mistake::WritesInput) const_cast<float*>(a)[0] = 1;
    if (m == Mistake::WritesWeight) pass.state(0)[0] = 1;
    if (m == Mistake::KeepsPointer) kept_pointer = a;
    if (m == Mistake::LeaksEachPass) leaked = new char[1];
    if (m == Mistake::ReadsUnwrittenScratch) y[0] += 1e-30F * pass.scratch()[0];
  }

  void backward_data(const Call&, const Pass& pass) const {
    if (m == Mistake::ThrowsInBackward) throw std::runtime_error("no luck today");
    if (m == Mistake::Crashes) write_to_unmapped_memory();
    if (m == Mistake::Aborts) std::abort();
    const float *a = pass.input(0), *b = pass.input(1), *dy = pass.output_gradient(0);
    float *da = pass.input_gradient(0), *db = pass.input_gradient(1);
    const auto size = static_cast<float>(shape_.c * shape_.h * shape_.w);
    for (int64_t row = 0; row < shape_.n; ++row) {
      const float factor = factor_of(pass, row);
      double sum = 0;
      each(row, [&](int64_t i, int64_t) { sum += static_cast<double>(dy[i]); });
      float term = factor * pass.weight(1)[0] * static_cast<float>(sum) / size;
      if (m == Mistake::MixesRowsInBackward) term += dy[0] + a[0];
      if (m == Mistake::ForgetsRowTerm) term = 0;
      each(row, [&](int64_t i, int64_t c) {
        float slope = factor * pass.weight(0)[c] * dy[i];
        if (m == Mistake::SwallowsNanBackward && slope != slope) slope = 0;
        if (m == Mistake::WrongInputGradient) slope *= 1.1F;
        if (m == Mistake::ZeroByZeroInBackward) slope *= a[i] / a[i];
        if (m == Mistake::AppliesFusedReluTwice && rectifies_ && (a[i] < b[i] ? b : a)[i] < 0) {
          slope = 0;
        }
        const bool first = !(a[i] < b[i]);
        if (da != nullptr || m == Mistake::NeedsAllGradients) {
          const float before = m == Mistake::AddsToInputGradient ? da[i] : 0;
          da[i] = before + (first ? slope : 0) + term;
        }
        if (db != nullptr && m != Mistake::LeavesSecondGradient) {
          db[i] = first ? 0 : m == Mistake::WrongSecondGradient ? -slope : slope;
        }
      });
    }
    if (m == Mistake::WritesPastGradient && da != nullptr) da[count(shape_)] = 1;
    if (m == Mistake::WritesOutputGradient) const_cast<float*>(dy)[0] = 1;
    if (m == Mistake::WritesOutputInBackward) pass.output(0)[0] = 1;
  }

  void backward_weights(const Call&, const Pass& pass) const {
    const float* a = m == Mistake::KeepsPointer ? kept_pointer : pass.input(0).data();
    const float *b = pass.input(1), *dy = pass.output_gradient(0);
    std::vector<double> sums(static_cast<size_t>(shape_.c) + 1);
    for (int64_t row = 0; row < shape_.n; ++row) {
      const float factor = factor_of(pass, row);
      const float mean_of_row = m == Mistake::StaticMeans       ? static_means[row % max_rows]
                                : m == Mistake::NeedsOwnForward ? means_[row % max_rows]
                                                                : mean(a, row);
      each(row, [&](int64_t i, int64_t c) {
        const float larger = a[i] < b[i] ? b[i] : a[i];
        sums[static_cast<size_t>(c)] += static_cast<double>(factor * larger * dy[i]);
        sums.back() += static_cast<double>(factor * mean_of_row * dy[i]);
      });
    }
    if (m == Mistake::WrongWeightGradient) sums[0] = 0;
    if (m == Mistake::WrongSecondWeight) sums.back() *= -1;
    const bool adds =
        (pass.accumulate() && m != Mistake::IgnoresAccumulate) || m == Mistake::AlwaysAccumulates;
    for (size_t c = 0; c < sums.size(); ++c) {
      const bool is_last = c + 1 == sums.size();
      float& gradient = is_last ? pass.weight_gradient(1)[0] : pass.weight_gradient(0)[c];
      gradient = static_cast<float>(sums[c] + (adds ? double{gradient} : 0));
    }
  }

 private:
  static constexpr bool keeps_static = m == Mistake::StaticMeans || m == Mistake::StaticScratch;

  static float factor_of(const Pass& pass, int64_t row) {
    return m == Mistake::NeedsOwnForward ? 1 : pass.saved()[row];
  }
  template <class Body>
  void each(int64_t row, const Body& body) const {
    const int64_t area = shape_.h * shape_.w, size = shape_.c * area;
    for (int64_t i = row * size; i < (row + 1) * size; ++i) body(i, i / area % shape_.c);
  }
  float mean(const float* a, int64_t row) const {
    double sum = 0;
    each(row, [&](int64_t i, int64_t) { sum += static_cast<double>(a[i]); });
    return static_cast<float>(sum / static_cast<double>(shape_.c * shape_.h * shape_.w));
  }

  Shape shape_;
  int64_t begin_, batch_;
  int32_t threads_;
  bool draws_, is_training_, wants_data_, rectifies_;
  mutable float means_[max_rows] = {};  // of NeedsOwnForward
};

// Channel c times c + 1.
template <Mistake m>
class PlainCpu {
 public:
  PlainCpu(const Binding& binding, const Call&)
      : shape_(binding.input(0).shape), begin_(binding.raw.slice_begin) {}
  static LayoutOptions layouts(const Binding& binding) {
    if (m == Mistake::WrongLayout) return any_layout(binding.input(0).shape.c);
    return {{TANDEM_NCHW, TANDEM_NCHW, 0}};
  }
  void forward(const Call&, const Pass& pass) const { scale(pass.input(0), pass.output(0)); }
  void backward_data(const Call&, const Pass& pass) const {
    scale(pass.output_gradient(0), pass.input_gradient(0));
  }

 private:
  // WrongLayout: as if every layout were plain. WrongSlices: as if a slice began at channel 0.
  // WrongInPlace: reads an element after its neighbor was written.
  void scale(const float* x, float* y) const {
    const int64_t area = shape_.h * shape_.w, begin = m == Mistake::WrongSlices ? 0 : begin_;
    for (int64_t i = 0; i < count(shape_); ++i) {
      const auto factor = static_cast<float>(begin + i / area % shape_.c + 1);
      const int64_t from = m == Mistake::WrongInPlace ? i / area * area + (area - 1 - i % area) : i;
      y[i] = factor * x[from];
    }
  }
  Shape shape_;
  int64_t begin_;
};

// Only the passes that a kernel has.
struct WithoutBackwardWeights {
  WithoutBackwardWeights(const Binding& binding, const Call& call) : whole(binding, call) {}
  void forward(const Call& call, const Pass& pass) const {
    tandem_pass raw = pass.raw;
    float unused[64];
    raw.saved = unused;
    whole.forward(call, Pass(raw, pass.sizes));
  }
  void backward_data(const Call&, const Pass& pass) const {
    std::fill_n(pass.input_gradient(0).data(), 1, 0.0F);
  }
  Cpu<Mistake::None> whole;
};

template <int i>
void add(Plugin& plugin) {
  constexpr auto m = static_cast<Mistake>(i);
  using T = Type<m>;
  plugin.layer<T>();
  if constexpr (m == Mistake::NoBackwardWeights) {
    plugin.kernel<T, WithoutBackwardWeights>("cpu");
  } else if constexpr (is_plain(m)) {
    plugin.kernel<T, PlainCpu<m>>("cpu");
  } else {
    plugin.kernel<T, Cpu<m>>("cpu");
  }
  if constexpr (i + 1 < mistakes) add<i + 1>(plugin);
}

}  // namespace

void add_mistakes_of_cases(Plugin& plugin);     // mistakes_of_cases.cpp
void add_mistakes_of_authors(Plugin& plugin);   // mistakes_of_authors.cpp
void add_mistakes_of_promises(Plugin& plugin);  // mistakes_of_promises.cpp
void add_mistakes_of_statics(Plugin& plugin);   // mistakes_of_statics.cpp

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  Plugin plugin(host, "mistakes", "1.0");
  add<0>(plugin);
  add_mistakes_of_cases(plugin);
  add_mistakes_of_authors(plugin);
  add_mistakes_of_promises(plugin);
  add_mistakes_of_statics(plugin);
  return plugin.table();
}
