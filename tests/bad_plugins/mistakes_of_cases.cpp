// Mistakes that only some cases show: values of parameters, the third input, and what a loss makes
// of labels and scores. "mistake.RightScale" and "mistake.RightLoss" have none.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "plugins/sdk.h"

namespace {

using namespace tandem::sdk;

enum class Fault {
  RightScale,
  WrongPairOfSwitches,
  WrongThirdWord,
  WrongAtMinimum,
  WrongAtLargeValue,
  WrongOrderOfAxes,
  WrongThirdInput,
  DropsThirdInput,
  RightLoss,
  ForgetsMaximum,
  LogarithmOfZero,
  DividesByOwnRows,
  TakesAnyLabel,
  CountsIgnored,
  AddsLossWeightTwice,
  LabelBits,
  SoftmaxOverRows,
  ForgetsLossWeight,
  DividesByLabels,
  KeepsIgnoredGradient,
};
constexpr const char* fault_names[] = {
    "mistake.RightScale",      "mistake.WrongPairOfSwitches",  "mistake.WrongThirdWord",
    "mistake.WrongAtMinimum",  "mistake.WrongAtLargeValue",    "mistake.WrongOrderOfAxes",
    "mistake.WrongThirdInput", "mistake.DropsThirdInput",      "mistake.RightLoss",
    "mistake.ForgetsMaximum",  "mistake.LogarithmOfZero",      "mistake.DividesByOwnRows",
    "mistake.TakesAnyLabel",   "mistake.CountsIgnored",        "mistake.AddsLossWeightTwice",
    "mistake.LabelBits",       "mistake.SoftmaxOverRows",      "mistake.ForgetsLossWeight",
    "mistake.DividesByLabels", "mistake.KeepsIgnoredGradient",
};

// The sum of its inputs times a factor that all parameters make.
template <Fault f>
struct ScaleType : LayerType {
  const char* name() const override { return fault_names[static_cast<int>(f)]; }
  const char* help() const override { return "a mistake to be found"; }
  Inputs inputs() const override { return {Input("data").repeated()}; }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING; }
  std::vector<Parameter> parameters() const override {
    const char* block = "mistake_param";
    return {boolean(block, "twice").by_default("false"),
            boolean(block, "thrice").by_default("false"),
            word(block, "mode").by_default("ONE").one_of("ONE|TWO|THREE"),
            integer(block, "times").by_default("3").range(1, 1000), integers(block, "axes")};
  }
};

template <Fault f>
class ScaleCpu {
 public:
  ScaleCpu(const Binding& binding, const Call&)
      : size_(count(binding.input(0).shape)), inputs_(binding.raw.input_count) {
    const auto& a = binding.attributes;
    const bool twice = a.boolean("twice"), thrice = a.boolean("thrice");
    const std::vector<int64_t> axes = a.integers("axes");
    const int64_t times = a.integer("times");
    factor_ = (twice ? 2.0F : 1.0F) * (thrice ? 3.0F : 1.0F) * static_cast<float>(times);
    factor_ *= a.text("mode") == "TWO" ? 0.5F : a.text("mode") == "THREE" ? 0.25F : 1.0F;
    is_wrong_ = (f == Fault::WrongPairOfSwitches && twice && thrice) ||
                (f == Fault::WrongThirdWord && a.text("mode") == "THREE") ||
                (f == Fault::WrongAtMinimum && times == 1) ||
                (f == Fault::WrongAtLargeValue && times >= 64) ||
                (f == Fault::WrongOrderOfAxes && !std::is_sorted(axes.begin(), axes.end()));
  }
  void forward(const Call&, const Pass& pass) const {
    for (int64_t i = 0; i < size_; ++i) {
      float sum = 0;
      for (uint32_t k = 0; k < inputs_; ++k) {
        if (f == Fault::DropsThirdInput && k == 2) continue;
        sum += pass.input(k)[i];
      }
      pass.output(0)[i] = factor_ * sum;
    }
  }
  void backward_data(const Call&, const Pass& pass) const {
    for (uint32_t k = 0; k < inputs_; ++k) {
      if (pass.input_gradient(k) == nullptr) continue;
      const float factor = is_wrong_                               ? 0.9F * factor_
                           : f == Fault::WrongThirdInput && k == 2 ? -factor_
                                                                   : factor_;
      for (int64_t i = 0; i < size_; ++i) {
        pass.input_gradient(k)[i] = factor * pass.output_gradient(0)[i];
      }
    }
  }

 private:
  int64_t size_;
  uint32_t inputs_;
  float factor_ = 1;
  bool is_wrong_ = false;
};

// Cross entropy of softmax, of rows whose label is not the one that is ignored.
template <Fault f>
struct LossType : LayerType {
  std::vector<Parameter> parameters() const override {
    return {integer("mistake_param", "ignore_label")};
  }
  const char* name() const override { return fault_names[static_cast<int>(f)]; }
  const char* help() const override { return "a mistake to be found"; }
  Inputs inputs() const override { return {Input("scores"), Input("label").label()}; }
  uint64_t traits() const override {
    return TANDEM_LOSS | TANDEM_PER_SAMPLE | TANDEM_BACKWARD_READS_INPUTS | TANDEM_SAVES_NOTHING;
  }
  std::vector<Shape> shapes(const Query& query) const override {
    if (query.input(1).h * query.input(1).w > 1) throw invalid("one label for each row");
    return {{1, 1, 1, 1}};
  }
};

template <Fault f>
class LossCpu {
 public:
  LossCpu(const Binding& binding, const Call&) : rows_(binding.input(0).shape.n) {
    classes_ = count(binding.input(0).shape) / rows_;
    const bool ignores = binding.attributes.is_set("ignore_label");
    if (ignores) ignored_ = binding.attributes.integer("ignore_label");
  }
  void forward(const Call&, const Pass& pass) const {
    double sum = 0;
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t label = label_of(pass, row);
      if (label < 0 || label == ignored_) continue;
      const std::vector<float> p = probabilities(pass, row);
      const float* x = pass.input(0) + row * classes_;
      if (f == Fault::LogarithmOfZero || f == Fault::SoftmaxOverRows) {
        sum -= static_cast<double>(std::log(p[static_cast<size_t>(label)]));
      } else {
        sum += log_of_sum(x) - static_cast<double>(x[label]);
      }
    }
    pass.output(0)[0] = static_cast<float>(sum) / divisor(pass);
  }
  void backward_data(const Call&, const Pass& pass) const {
    float scale = pass.output_gradient(0)[0] / divisor(pass);
    if (f == Fault::AddsLossWeightTwice) scale *= pass.output_gradient(0)[0];
    if (f == Fault::ForgetsLossWeight) scale = 1 / divisor(pass);
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t label = label_of(pass, row);
      const bool is_left_out = label < 0 || (label == ignored_ && f != Fault::KeepsIgnoredGradient);
      const std::vector<float> p = probabilities(pass, row);
      for (int64_t c = 0; c < classes_; ++c) {
        const float one = c == label ? 1.0F : 0.0F;
        pass.input_gradient(0)[row * classes_ + c] =
            is_left_out ? 0 : scale * (p[static_cast<size_t>(c)] - one);
      }
    }
  }

 private:
  // -1: none.
  int64_t label_of(const Pass& pass, int64_t row) const {
    const float label = pass.input(1)[row];
    if (!pass.holds_sample(row) && f != Fault::CountsIgnored) return -1;
    if (!(label >= 0)) return -1;
    if (f == Fault::LabelBits) {
      int32_t bits = 0;
      std::memcpy(&bits, &label, sizeof bits);
      return bits < classes_ ? bits : -1;
    }
    if (f == Fault::TakesAnyLabel) return static_cast<int64_t>(label);
    return label < static_cast<float>(classes_) ? static_cast<int64_t>(label) : -1;
  }
  float divisor(const Pass& pass) const {
    if (f == Fault::DividesByLabels) {
      float labels = 0;
      for (int64_t row = 0; row < rows_; ++row) labels += label_of(pass, row) < 0 ? 0 : 1;
      return std::max(labels, 1.0F);
    }
    return f == Fault::DividesByOwnRows ? static_cast<float>(rows_) : pass.normaliser();
  }
  float largest(const float* x) const {
    return f == Fault::ForgetsMaximum ? 0 : *std::max_element(x, x + classes_);
  }
  double log_of_sum(const float* x) const {
    const float top = largest(x);
    float sum = 0;
    for (int64_t c = 0; c < classes_; ++c) sum += std::exp(x[c] - top);
    return static_cast<double>(std::log(sum) + top);
  }
  std::vector<float> probabilities(const Pass& pass, int64_t row) const {
    const float* x = pass.input(0) + row * classes_;
    const float top = largest(x);
    std::vector<float> p(static_cast<size_t>(classes_));
    float sum = 0;
    for (int64_t c = 0; c < classes_; ++c) {
      p[static_cast<size_t>(c)] = std::exp(x[c] - top);
      sum += p[static_cast<size_t>(c)];
    }
    for (float& one : p) one /= sum;
    if (f != Fault::SoftmaxOverRows) return p;
    for (int64_t c = 0; c < classes_; ++c) {
      float of_rows = 0;
      for (int64_t r = 0; r < rows_; ++r) of_rows += std::exp(pass.input(0)[r * classes_ + c]);
      p[static_cast<size_t>(c)] = std::exp(x[c]) / of_rows;
    }
    return p;
  }

  int64_t rows_, classes_ = 1, ignored_ = -1;
};

template <int i>
void add_fault(Plugin& plugin) {
  constexpr auto f = static_cast<Fault>(i);
  if constexpr (f < Fault::RightLoss) {
    plugin.layer<ScaleType<f>>().template kernel<ScaleType<f>, ScaleCpu<f>>("cpu");
  } else {
    plugin.layer<LossType<f>>().template kernel<LossType<f>, LossCpu<f>>("cpu");
  }
  if constexpr (i + 1 < static_cast<int>(std::size(fault_names))) add_fault<i + 1>(plugin);
}

}  // namespace

void add_mistakes_of_cases(Plugin& plugin) {
  add_fault<0>(plugin);
}
