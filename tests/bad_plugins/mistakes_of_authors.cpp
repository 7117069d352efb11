// Mistakes that authors of layers make while they write one that is right on their own data: a
// PReLU with a bias, a soft ReLU in place, average pooling, a dilated sum, and others, each with
// one of them. Those whose names begin with "mistake.Right" have none.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "plugins/sdk.h"

namespace {

using namespace tandem::sdk;

enum class Blunder {
  RightSlope,
  SlopeOfOtherAxis,
  SlopeOfLastRow,
  SkipsZeroGradient,
  OverwritesBias,
  WrongInOneCall,
  FixedBuffer,
  LosesRows,
  ClipsGradient,
  CachesFirstShape,
  WritesStateGradient,
  RightCurve,
  SlopeOfOutput,
  RightPool,
  PoolsPastBorder,
  PoolsWithoutRemainder,
  RightDilation,
  ForgetsDilation,
  RightMean,
  LeavesEmptyMean,
  SumsInHalf,
  RightState,
  UpdatesStateInTesting,
  RightDrop,
  ForgetsDropoutScale,
};
constexpr const char* blunder_names[] = {
    "mistake.RightSlope",
    "mistake.SlopeOfOtherAxis",
    "mistake.SlopeOfLastRow",
    "mistake.SkipsZeroGradient",
    "mistake.OverwritesBias",
    "mistake.WrongInOneCall",
    "mistake.FixedBuffer",
    "mistake.LosesRows",
    "mistake.ClipsGradient",
    "mistake.CachesFirstShape",
    "mistake.WritesStateGradient",
    "mistake.RightCurve",
    "mistake.SlopeOfOutput",
    "mistake.RightPool",
    "mistake.PoolsPastBorder",
    "mistake.PoolsWithoutRemainder",
    "mistake.RightDilation",
    "mistake.ForgetsDilation",
    "mistake.RightMean",
    "mistake.LeavesEmptyMean",
    "mistake.SumsInHalf",
    "mistake.RightState",
    "mistake.UpdatesStateInTesting",
    "mistake.RightDrop",
    "mistake.ForgetsDropoutScale",
};

template <Blunder b>
struct AuthorsType : LayerType {
  const char* name() const override { return blunder_names[static_cast<int>(b)]; }
  const char* help() const override { return "a mistake to be found"; }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING | TANDEM_BACKWARD_READS_INPUTS;
  }
};

// y = x, or slope[channel] * x below zero, plus bias[channel].
template <Blunder b>
struct SlopeType : AuthorsType<b> {
  std::vector<Weight> weights(const Query& query) const override {
    const Shape of_channel{query.input(0).c, 1, 1, 1};
    std::vector<Weight> all{{.name = "slope", .shape = of_channel, .initial = 0.25},
                            {.name = "bias", .shape = of_channel}};
    if (b == Blunder::WritesStateGradient) {
      all.push_back({.name = "steps", .shape = {1, 1, 1, 1}, .kind = TANDEM_STATE});
    }
    return all;
  }
};

int64_t first_size = 0;  // of CachesFirstShape

template <Blunder b>
class SlopeCpu {
 public:
  SlopeCpu(const Binding& binding, const Call& call)
      : shape_(binding.input(0).shape), area_(shape_.h * shape_.w), threads_(call.threads) {
    if (first_size == 0) first_size = count(shape_);
  }
  void forward(const Call&, const Pass& pass) const {
    const float* x = pass.input(0);
    // So many rows for each thread, and nobody has the others.
    const int64_t of_thread = shape_.n / threads_;
    const int64_t rows = b == Blunder::LosesRows ? of_thread * threads_ : shape_.n;
    int64_t size = rows * shape_.c * area_;
    if (b == Blunder::CachesFirstShape) size = std::min(size, first_size);
    for (int64_t i = 0; i < size; ++i) {
      const int64_t c = channel(i);
      pass.output(0)[i] = (x[i] > 0 ? 1 : pass.weight(0)[c]) * x[i] + pass.weight(1)[c];
    }
  }
  void backward_data(const Call&, const Pass& pass) const { data(pass, 1); }
  void backward_weights(const Call&, const Pass& pass) const {
    const float *x = pass.input(0), *dy = pass.output_gradient(0);
    float of_channels[64] = {};
    std::vector<float> slopes(static_cast<size_t>(shape_.c)), biases(slopes);
    float* slope = b == Blunder::FixedBuffer ? of_channels : slopes.data();
    for (int64_t i = 0; i < count(shape_); ++i) {
      const bool is_last = i >= (shape_.n - 1) * shape_.c * area_;
      if (b == Blunder::SlopeOfLastRow && !is_last) continue;
      if (x[i] <= 0) slope[channel(i)] += x[i] * dy[i];
      biases[static_cast<size_t>(channel(i))] += dy[i];
    }
    for (int64_t c = 0; c < shape_.c; ++c) {
      const bool adds = pass.accumulate();
      float &of_slope = pass.weight_gradient(0)[c], &of_bias = pass.weight_gradient(1)[c];
      if (b != Blunder::SkipsZeroGradient || slope[c] != 0) {
        of_slope = (adds ? of_slope : 0) + slope[c];
      }
      of_bias =
          (adds && b != Blunder::OverwritesBias ? of_bias : 0) + biases[static_cast<size_t>(c)];
    }
    if constexpr (b == Blunder::WritesStateGradient) pass.weight_gradient(2)[0] = 0;
  }
  void backward(const Call& call, const Pass& pass) const
      requires(b == Blunder::WrongInOneCall || b == Blunder::RightSlope) {
    data(pass, b == Blunder::WrongInOneCall ? 0.5F : 1);
    backward_weights(call, pass);
  }

 private:
  int64_t channel(int64_t i) const { return i / area_ % shape_.c; }
  void data(const Pass& pass, float factor) const {
    const float *x = pass.input(0), *dy = pass.output_gradient(0);
    for (int64_t i = 0; i < count(shape_); ++i) {
      const int64_t c = b == Blunder::SlopeOfOtherAxis ? i % shape_.c : channel(i);
      const float slope = (x[i] > 0 ? 1 : pass.weight(0)[c]) * dy[i];
      pass.input_gradient(0)[i] =
          factor * (b == Blunder::ClipsGradient ? std::clamp(slope, -5.0F, 5.0F) : slope);
    }
  }
  Shape shape_;
  int64_t area_, threads_;
};

// y = log(1 + exp(x)), from whose output the gradient follows: 1 - exp(-y).
template <Blunder b>
struct CurveType : AuthorsType<b> {
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING | TANDEM_BACKWARD_READS_OUTPUTS |
           TANDEM_IN_PLACE;
  }
};
template <Blunder b>
struct CurveCpu {
  CurveCpu(const Binding& binding, const Call&) : size(count(binding.input(0).shape)) {}
  void forward(const Call&, const Pass& pass) const {
    for (int64_t i = 0; i < size; ++i) {
      const float x = pass.input(0)[i];
      pass.output(0)[i] = x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
    }
  }
  void backward_data(const Call&, const Pass& pass) const {
    for (int64_t i = 0; i < size; ++i) {
      const float y = pass.output(0)[i];
      const float slope = b == Blunder::SlopeOfOutput ? 1 / (1 + std::exp(-y)) : -std::expm1(-y);
      pass.input_gradient(0)[i] = slope * pass.output_gradient(0)[i];
    }
  }
  int64_t size;
};

// The mean of each pair of pixels of a line; of an odd width the last one is alone.
template <Blunder b>
struct PoolType : AuthorsType<b> {
  std::vector<Shape> shapes(const Query& query) const override {
    Shape shape = query.input(0);
    const bool drops = b == Blunder::PoolsWithoutRemainder && shape.w > 1;
    shape.w = (shape.w + (drops ? 0 : 1)) / 2;
    return {shape};
  }
};
template <Blunder b>
struct PoolCpu {
  PoolCpu(const Binding& binding, const Call&)
      : x_shape(binding.input(0).shape), y_shape(binding.output(0).shape) {}
  template <class Visit>
  void each(const Visit& visit) const {
    for (int64_t line = 0; line < x_shape.n * x_shape.c * x_shape.h; ++line) {
      for (int64_t w = 0; w < y_shape.w; ++w) {
        const bool is_alone = 2 * w + 1 >= x_shape.w && b != Blunder::PoolsPastBorder;
        visit(line * y_shape.w + w, line * x_shape.w + 2 * w, is_alone ? 1 : 2);
      }
    }
  }
  void forward(const Call&, const Pass& pass) const {
    each([&](int64_t to, int64_t from, int64_t size) {
      const float* x = pass.input(0) + from;
      pass.output(0)[to] = size == 1 ? x[0] : (x[0] + x[1]) / 2;
    });
  }
  void backward_data(const Call&, const Pass& pass) const {
    each([&](int64_t to, int64_t from, int64_t size) {
      const bool is_last = from + 1 == count(x_shape);
      for (int64_t k = 0; k < size && !(is_last && k == 1); ++k) {
        pass.input_gradient(0)[from + k] = pass.output_gradient(0)[to] / static_cast<float>(size);
      }
    });
  }
  Shape x_shape, y_shape;
};

// The sum of a pixel and the one that lies `dilation` to the left.
template <Blunder b>
struct DilationType : AuthorsType<b> {
  std::vector<Parameter> parameters() const override {
    return {integer("mistake_param", "dilation").by_default("1").range(1, 16)};
  }
};
template <Blunder b>
struct DilationCpu {
  DilationCpu(const Binding& binding, const Call&)
      : shape(binding.input(0).shape), dilation(binding.attributes.integer("dilation")) {}
  void forward(const Call&, const Pass& pass) const {
    for (int64_t i = 0; i < count(shape); ++i) {
      const float left = i % shape.w >= dilation ? pass.input(0)[i - dilation] : 0;
      pass.output(0)[i] = pass.input(0)[i] + left;
    }
  }
  void backward_data(const Call&, const Pass& pass) const {
    const int64_t step = b == Blunder::ForgetsDilation ? 1 : dilation;
    for (int64_t i = 0; i < count(shape); ++i) {
      const float right = i % shape.w + step < shape.w ? pass.output_gradient(0)[i + step] : 0;
      pass.input_gradient(0)[i] = pass.output_gradient(0)[i] + right;
    }
  }
  Shape shape;
  int64_t dilation;
};

// The mean of the positive elements of a row; 0 where there are none. As a float with 7 bits where
// it is summed so.
float rounded(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  bits &= 0xffff0000U;
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}
template <Blunder b>
struct MeanType : AuthorsType<b> {
  std::vector<Shape> shapes(const Query& query) const override {
    return {{query.input(0).n, 1, 1, 1}};
  }
};
template <Blunder b>
struct MeanCpu {
  MeanCpu(const Binding& binding, const Call&)
      : rows(binding.input(0).shape.n), size(count(binding.input(0).shape) / rows) {}
  void forward(const Call&, const Pass& pass) const {
    for (int64_t row = 0; row < rows; ++row) {
      const float* x = pass.input(0) + row * size;
      float sum = 0;
      for (int64_t i = 0; i < size; ++i) {
        sum += x[i] <= 0 ? 0 : x[i];  // a NaN stays
        if (b == Blunder::SumsInHalf) sum = rounded(sum);
      }
      const float number = positive(x);
      if (number == 0 && b == Blunder::LeavesEmptyMean) continue;
      pass.output(0)[row] = number == 0 ? 0 : sum / number;
    }
  }
  void backward_data(const Call&, const Pass& pass) const {
    for (int64_t row = 0; row < rows; ++row) {
      const float* x = pass.input(0) + row * size;
      const float number = positive(x);
      for (int64_t i = 0; i < size; ++i) {
        pass.input_gradient(0)[row * size + i] =
            x[i] <= 0 ? 0 : pass.output_gradient(0)[row] / number;
      }
    }
  }
  float positive(const float* x) const {
    return static_cast<float>(std::count_if(x, x + size, [](float v) { return !(v <= 0); }));
  }
  int64_t rows, size;
};

// x minus a running mean of all elements, which each step moves by a tenth.
template <Blunder b>
struct StateType : AuthorsType<b> {
  uint64_t traits() const override { return TANDEM_BATCH_STATISTICS | TANDEM_SAVES_NOTHING; }
  std::vector<Weight> weights(const Query&) const override {
    return {{.name = "mean", .shape = {1, 1, 1, 1}, .kind = TANDEM_STATE}};
  }
  Statistics statistics(const Query&) const override { return {.forward = 2}; }
};
template <Blunder b>
struct StateCpu {
  StateCpu(const Binding& binding, const Call&)
      : size(count(binding.input(0).shape)),
        updates(binding.training() || b == Blunder::UpdatesStateInTesting) {}
  void forward_statistics(const Call&, const Pass& pass) const {
    double sum = 0;
    for (const float value : pass.input(0)) sum += double{value};
    pass.statistics()[0] = static_cast<float>(sum);
    pass.statistics()[1] = static_cast<float>(size);
  }
  void forward(const Call&, const Pass& pass) const {
    const float mean = pass.state(0)[0];
    for (int64_t i = 0; i < size; ++i) pass.output(0)[i] = pass.input(0)[i] - mean;
    const float now = pass.statistics()[0] / pass.statistics()[1];
    if (updates) pass.state(0)[0] = 0.9F * mean + 0.1F * now;
  }
  void backward_data(const Call&, const Pass& pass) const {
    std::copy_n(pass.output_gradient(0).data(), size, pass.input_gradient(0).data());
  }
  int64_t size;
  bool updates;
};

// Drops half of the rows in training, and doubles the others.
template <Blunder b>
struct DropType : AuthorsType<b> {
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING | TANDEM_RANDOM;
  }
};
template <Blunder b>
struct DropCpu {
  DropCpu(const Binding& binding, const Call&)
      : rows(binding.input(0).shape.n),
        size(count(binding.input(0).shape) / rows),
        begin(binding.raw.batch_begin),
        layer(binding.raw.layer_index),
        draws(binding.training()) {}
  void forward(const Call&, const Pass& pass) const { scale(pass, pass.input(0), pass.output(0)); }
  void backward_data(const Call&, const Pass& pass) const {
    scale(pass, pass.output_gradient(0), pass.input_gradient(0));
  }
  void scale(const Pass& pass, const float* from, float* to) const {
    for (int64_t row = 0; row < rows; ++row) {
      const auto position = static_cast<uint64_t>(begin + pass.step().first_row + row);
      const tandem_random4 block =
          tandem_random_block(pass.step().seed, pass.step().step, layer, position, 0);
      const float more = b == Blunder::ForgetsDropoutScale ? 1 : 2;
      const float factor = !draws ? 1 : tandem_uniform(block.value[0]) < 0.5F ? 0 : more;
      for (int64_t i = row * size; i < (row + 1) * size; ++i) to[i] = factor * from[i];
    }
  }
  int64_t rows, size, begin;
  uint32_t layer;
  bool draws;
};

template <int i>
void add_blunder(Plugin& plugin) {
  constexpr auto b = static_cast<Blunder>(i);
  if constexpr (b < Blunder::RightCurve) {
    plugin.layer<SlopeType<b>>().template kernel<SlopeType<b>, SlopeCpu<b>>("cpu");
  } else if constexpr (b < Blunder::RightPool) {
    plugin.layer<CurveType<b>>().template kernel<CurveType<b>, CurveCpu<b>>("cpu");
  } else if constexpr (b < Blunder::RightDilation) {
    plugin.layer<PoolType<b>>().template kernel<PoolType<b>, PoolCpu<b>>("cpu");
  } else if constexpr (b < Blunder::RightMean) {
    plugin.layer<DilationType<b>>().template kernel<DilationType<b>, DilationCpu<b>>("cpu");
  } else if constexpr (b < Blunder::RightState) {
    plugin.layer<MeanType<b>>().template kernel<MeanType<b>, MeanCpu<b>>("cpu");
  } else if constexpr (b < Blunder::RightDrop) {
    plugin.layer<StateType<b>>().template kernel<StateType<b>, StateCpu<b>>("cpu");
  } else {
    plugin.layer<DropType<b>>().template kernel<DropType<b>, DropCpu<b>>("cpu");
  }
  if constexpr (i + 1 < static_cast<int>(std::size(blunder_names))) add_blunder<i + 1>(plugin);
}

}  // namespace

void add_mistakes_of_authors(Plugin& plugin) {
  add_blunder<0>(plugin);
}
