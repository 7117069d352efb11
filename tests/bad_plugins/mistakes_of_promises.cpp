// Layers that do what they say in every pass, but say, keep or merge something wrong: an activation
// that is none, a label in 8 bits, a default of the kernel's own, statistics of two parts alone.
// "mistake.RightRectifier" has no mistake.
#include <algorithm>
#include <cmath>
#include <vector>

#include "plugins/sdk.h"
#include "tests/bad_plugins/on_purpose.h"
#include "tests/bad_plugins/row_loss.h"

namespace {

using namespace tandem::sdk;
using tandem::test::add_on_purpose;
using tandem::test::Purpose;
using tandem::test::PurposeSlip;
using tandem::test::RowLoss;

// A ReLU, as its type says.
enum class Bend { Right, Leaks, EndsAtSix };
template <Bend bend>
struct Rectifier : LayerType {
  const char* name() const override {
    return bend == Bend::Right   ? "mistake.RightRectifier"
           : bend == Bend::Leaks ? "mistake.NamesReluButLeaks"
                                 : "mistake.NamesReluButEndsAtSix";
  }
  const char* help() const override { return "a mistake to be found"; }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING | TANDEM_BACKWARD_READS_OUTPUTS;
  }
  int32_t activation(const Query&) const override { return TANDEM_ACTIVATION_RELU; }
};
template <Bend bend>
struct RectifierCpu {
  RectifierCpu(const Binding& binding, const Call&) : size(count(binding.input(0).shape)) {}
  static constexpr float slope = bend == Bend::Leaks ? 0.1F : 0;
  void forward(const Call&, const Pass& pass) const {
    for (int64_t i = 0; i < size; ++i) {
      const float x = pass.input(0)[i];
      const bool is_past = bend == Bend::EndsAtSix && x > 6;
      pass.output(0)[i] = x < 0 ? slope * x : is_past ? 6 : x;
    }
  }
  void backward_data(const Call&, const Pass& pass) const {
    for (int64_t i = 0; i < size; ++i) {
      const float y = pass.output(0)[i], dy = pass.output_gradient(0)[i];
      const bool is_past = bend == Bend::EndsAtSix && y >= 6;
      pass.input_gradient(0)[i] = is_past ? 0 : y > 0 ? dy : slope * dy;
    }
  }
  int64_t size;
};

// x times a factor that a parameter gives, beside the mistakes that need one.
enum class Slip { OwnDefault, DividesByZero, CountsCalls };
constexpr const char* slip_names[] = {"mistake.HasADefaultOfItsOwn", "mistake.DividesByAZero",
                                      "mistake.CountsItsCalls"};
template <Slip slip>
struct Factor : LayerType {
  const char* name() const override { return slip_names[static_cast<int>(slip)]; }
  const char* help() const override { return "a mistake to be found"; }
  Inputs inputs() const override { return {Input("data").repeated()}; }
  std::vector<Parameter> parameters() const override {
    return {number("mistake_param", "scale").by_default("0.5"),
            integer("mistake_param", "divisor").by_default("2"),
            numbers("mistake_param", "coefficients")};
  }
  std::vector<Shape> shapes(const Query& query) const override {
    const int64_t divisor = query.attributes.integer("divisor");
    if (slip != Slip::DividesByZero && divisor < 1) throw invalid("divisor: 1 or more");
    if (query.input(0).w % divisor > 1'000'000) throw invalid("so much is left over");
    return {query.input(0)};
  }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING; }
};
template <Slip slip>
struct FactorCpu {
  FactorCpu(const Binding& binding, const Call&)
      : rows(binding.input(0).shape.n),
        size(count(binding.input(0).shape) / rows),
        inputs(binding.input_count()),
        coefficients(binding.attributes.numbers("coefficients")) {
    const bool is_given = slip != Slip::OwnDefault || binding.attributes.is_set("scale");
    scale = is_given ? static_cast<float>(binding.attributes.number("scale")) : 0.1F;
    if (coefficients.size() < inputs) coefficients.assign(inputs, 1);
  }
  [[nodiscard]] float factor(size_t input) const {
    return scale * static_cast<float>(coefficients.data()[input]);
  }
  void forward(const Call&, const Pass& pass) const {
    ++calls;
    const float fades = slip == Slip::CountsCalls && calls > 250 ? 0.5F : 1.0F;
    for (int64_t i = 0; i < rows * size; ++i) {
      float sum = 0;
      for (size_t k = 0; k < inputs; ++k) sum += factor(k) * pass.input(k)[i];
      pass.output(0)[i] = fades * sum;
    }
  }
  void backward_data(const Call&, const Pass& pass) const {
    for (size_t k = 0; k < inputs; ++k) {
      if (pass.input_gradient(k) == nullptr) continue;
      for (int64_t i = 0; i < rows * size; ++i) {
        pass.input_gradient(k)[i] = factor(k) * pass.output_gradient(0)[i];
      }
    }
  }
  int64_t rows, size;
  size_t inputs;
  std::vector<double> coefficients;
  float scale = 1;
  mutable int64_t calls = 0;
};

// x over 1 + the largest whole number below 20 |x| in the batch.
struct MergesFirst : LayerType {
  const char* name() const override { return "mistake.MergesFirstSource"; }
  const char* help() const override { return "a mistake to be found"; }
  uint64_t traits() const override { return TANDEM_BATCH_STATISTICS; }
  Statistics statistics(const Query&) const override { return {.forward = 1}; }
};
struct MergesFirstCpu : Needs {
  MergesFirstCpu(const Binding& binding, const Call&) : size(count(binding.input(0).shape)) {
    saved_bytes = sizeof(float);
  }
  void forward_statistics(const Call&, const Pass& pass) const {
    float largest = 0;
    for (int64_t i = 0; i < size; ++i) {
      largest = std::max(largest, std::floor(20 * std::abs(pass.input(0)[i])));
    }
    pass.statistics()[0] = largest;
  }
  void merge_forward_statistics(const Call&, float* target, const float* const* sources,
                                uint32_t) const {
    target[0] = std::max(target[0], sources[0][0]);
  }
  void forward(const Call&, const Pass& pass) const {
    pass.saved()[0] = 1 / (1 + pass.statistics()[0]);
    for (int64_t i = 0; i < size; ++i) pass.output(0)[i] = pass.input(0)[i] * pass.saved()[0];
  }
  void backward_data(const Call&, const Pass& pass) const {
    for (int64_t i = 0; i < size; ++i) {
      pass.input_gradient(0)[i] = pass.output_gradient(0)[i] * pass.saved()[0];
    }
  }
  int64_t size;
};

// The log of softmax of the label's class, with labels of 8 bits.
struct ByteLabel : RowLoss {
  const char* name() const override { return "mistake.KeepsLabelInAByte"; }
  const char* help() const override { return "a mistake to be found"; }
};
struct ByteLabelCpu {
  ByteLabelCpu(const Binding& binding, const Call&) : rows(binding.input(0).shape.n) {
    classes = count(binding.input(0).shape) / rows;
  }
  [[nodiscard]] int64_t label_of(const Pass& pass, int64_t row) const {
    const float label = pass.input(1)[row];
    const bool is_class = label >= 0 && label < static_cast<float>(classes);
    if (!is_class || !pass.holds_sample(row)) return -1;
    return static_cast<uint8_t>(static_cast<int>(label));
  }
  [[nodiscard]] double log_of_sum(const float* x) const {
    const double top = double{*std::max_element(x, x + classes)};
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(double{x[c]} - top);
    return top + std::log(sum);
  }
  void forward(const Call&, const Pass& pass) const {
    double sum = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const float* x = pass.input(0) + row * classes;
      const int64_t label = label_of(pass, row);
      if (label >= 0) sum += log_of_sum(x) - double{x[label]};
    }
    pass.output(0)[0] = static_cast<float>(sum / double{pass.normaliser()});
  }
  void backward_data(const Call&, const Pass& pass) const {
    const double scale = double{pass.output_gradient(0)[0]} / double{pass.normaliser()};
    for (int64_t row = 0; row < rows; ++row) {
      const float* x = pass.input(0) + row * classes;
      const int64_t label = label_of(pass, row);
      for (int64_t c = 0; c < classes; ++c) {
        const double share = std::exp(double{x[c]} - log_of_sum(x)) - (c == label ? 1 : 0);
        pass.input_gradient(0)[row * classes + c] =
            label < 0 ? 0.0F : static_cast<float>(scale * share);
      }
    }
  }
  int64_t rows, classes = 1;
};

template <Slip slip>
void add(Plugin& plugin) {
  plugin.layer<Factor<slip>>().template kernel<Factor<slip>, FactorCpu<slip>>("cpu");
}

template <Bend bend>
void add(Plugin& plugin) {
  plugin.layer<Rectifier<bend>>().template kernel<Rectifier<bend>, RectifierCpu<bend>>("cpu");
}

}  // namespace

void add_mistakes_of_promises(Plugin& plugin) {
  add<Bend::Right>(plugin);
  add<Bend::Leaks>(plugin);
  add<Bend::EndsAtSix>(plugin);
  add<Slip::OwnDefault>(plugin);
  add<Slip::DividesByZero>(plugin);
  add<Slip::CountsCalls>(plugin);
  plugin.layer<MergesFirst>().kernel<MergesFirst, MergesFirstCpu>("cpu");
  add_on_purpose<Purpose::Reversal, PurposeSlip::MixesRows>(plugin);
  add_on_purpose<Purpose::BinaryScale, PurposeSlip::ForgetsToAdd>(plugin);
  add_on_purpose<Purpose::RowsDropped, PurposeSlip::DrawsInTesting>(plugin);
  plugin.layer<ByteLabel>().kernel<ByteLabel, ByteLabelCpu>("cpu");
}
